"""The records of what is drawn: series as reduced points, layers over time, phases of the LR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PhaseKind = Literal["warmup", "rise", "constant", "decay"]


@dataclass(frozen=True)
class NotFinite:
    """Logged points in a row that are not finite: `kind` is "NaN", "Inf" or "NaN or Inf"."""

    first_step: int
    last_step: int
    points: int
    kind: str


@dataclass(frozen=True)
class ChartSeries:
    """Points of one series for drawing, in the order logged: reduced, but every extreme is kept.

    Near the onset, peak and end of the worst events all points are there. `not_finite` has every
    point that is not finite, none left out.
    """

    name: str
    step: tuple[int, ...]
    value: tuple[float, ...]
    not_finite: tuple[NotFinite, ...] = ()


@dataclass(frozen=True)
class HeatBlock:
    """A block of the model over time: the `layers` that share its number, as one row [C].

    `value` is the highest of its layers' levels, the farthest one where none is at twice its usual
    level or more; `bad` where one of them was not finite.
    """

    name: str
    layers: int
    value: tuple[float | None, ...]
    bad: tuple[str, ...]


@dataclass(frozen=True)
class HeatMap:
    """One per-layer metric over time, reduced to cells: layers in model order by ranges of steps.

    `value` [L][C] is the base-10 logarithm of the value over the layer's own median, of the point
    in the cell that is farthest from it: -Inf where it was zero, None where no finite point is in
    it. `bad` [L][C] is "NaN" or "Inf" where a point in the cell was that, else "". `left_out`
    layers are not shown, but are in their `blocks` (() where no layers share one).
    """

    metric: str
    layers: tuple[str, ...]
    first_step: tuple[int, ...]
    last_step: tuple[int, ...]
    value: tuple[tuple[float | None, ...], ...]
    bad: tuple[tuple[str, ...], ...]
    left_out: int
    blocks: tuple[HeatBlock, ...] = ()


@dataclass(frozen=True)
class LrPhase:
    """A stretch over which the learning rate goes one way; `kind` says which."""

    kind: PhaseKind
    first_step: int
    last_step: int


@dataclass(frozen=True)
class CloseUp:
    """The steps around the episode that the verdict is about, with their own finer points."""

    first_step: int
    last_step: int
    series: tuple[ChartSeries, ...]
