"""The data: a table as read, then a Run of series. Arrays and names only, no rule and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

EXACT = 2**53  # whole numbers up to here are exact in float64

ColumnKind = Literal["number", "text", "list"]
MAIN_SERIES = ("loss", "grad_norm", "param_norm")  # of which a non-finite point is told
LAYER_METRICS = ("grad_norm", "param_norm", "grad_param_ratio", "activation_max", "update_norm")

# Kinds of a note that says: the log was not read as it stands.
NOT_AS_WRITTEN = ("dropped", "repaired", "guessed")


@dataclass(frozen=True)
class Note:
    """Something that a reader dropped, repaired or guessed; it is said in the report.

    `kind` is one of "dropped", "repaired", "guessed", "ending" (how the run ended, as the log's
    own text says); `count` is the number of rows or cells, `rows` some of their 1-based file lines
    (or record numbers), at most 20.
    """

    kind: Literal["dropped", "repaired", "guessed", "ending"]
    text: str
    count: int = 1
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column as logged, shape [R] each, R rows.

    `logged` is False where the cell is missing (empty, null, absent key). `value` holds NaN there
    too, so `logged & isnan(value)` is a NaN that the training loop wrote. `text` and `lists` are
    set for columns of those kinds only (None where missing). `whole` holds the whole numbers
    themselves where float64 rounds some of them (ids from 2^53 on; 0 where missing).
    """

    kind: ColumnKind
    value: F64
    logged: Mask
    text: tuple[str | None, ...] | None = None
    lists: tuple[tuple[float | str, ...] | None, ...] | None = None
    whole: I64 | None = None


@dataclass(frozen=True)
class LogTable:
    """What a reader returns: rows in file order, columns loaded on demand.

    `load` reads the named columns; it may be called several times and must return them with the
    same row order. `line` is the 1-based line (or record) of each row in its file. `facts` holds
    settings that the log itself states (e.g. {"fp16": "True", "max_grad_norm": "1.0"}).
    `counted_step` is True where the format has no step and rows were counted.
    `place` is the 0-based row of the log that each row is, where rows of a very long one are left
    out, else None. `row_kind`, where the format itself tells rows apart, gives each row's kind ("train", "eval",
    "summary", ...), else None. `detection` says which format was recognised by which sign.
    """

    files: tuple[str, ...]
    format: str
    names: tuple[str, ...]
    kinds: Mapping[str, ColumnKind]
    rows: int
    load: Callable[[Sequence[str]], dict[str, Column]]
    line: I64
    notes: tuple[Note, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    row_kind: tuple[str, ...] | None = None
    counted_step: bool = False
    place: I64 | None = None
    detection: str = ""

    @property
    def rows_left_out(self) -> int:
        """Rows of the log that are not among these."""
        return 0 if self.place is None else int(self.place[-1]) + 1 - self.rows


def cadence_of(step: I64) -> int:
    """Median difference of sorted steps [N] where they rise; 1 when unknown."""
    gaps = np.diff(step)
    gaps = gaps[gaps > 0]
    if not gaps.size:
        return 1
    even = gaps[0] == gaps[-1] and gaps.min() == gaps.max()
    return max(1, int(gaps[0] if even else np.median(gaps)))


@dataclass(frozen=True)
class Series:
    """One metric over steps: only the points that were logged, shape [N] each, N points.

    `step` is non-decreasing; where a restart repeated steps only the last write is here (the
    overwritten points are in `Run.abandoned`). `value` may hold NaN and infinities, each written
    by the training loop, or inferred from its silence where `inferred` is True. `row` is the
    0-based table row, `segment` the index into `Run.segments`.
    """

    name: str
    column: str
    step: I64
    value: F64
    row: I64
    segment: I64
    inferred: Mask

    @property
    def points(self) -> int:
        """Number of logged points."""
        return int(self.step.size)

    @cached_property
    def cadence(self) -> int:
        """Usual number of steps between two points: the median difference, 1 when unknown."""
        return cadence_of(self.step)

    @property
    def non_finite(self) -> int:
        """Number of points that are NaN or infinite."""
        return int(np.count_nonzero(~np.isfinite(self.value)))


@dataclass(frozen=True)
class Segment:
    """A stretch of a run between restarts, in file order; steps as logged, inclusive."""

    first_step: int
    last_step: int
    first_row: int
    last_row: int


@dataclass(frozen=True)
class LayerBlock:
    """Some layers of one per-layer metric on their common grid of logged rows.

    `step` [T]; `value` and `logged` [T, B] for the B layers. `value` is NaN where not logged.
    Points that a restart overwrote are left out.
    """

    metric: str
    layers: tuple[str, ...]
    columns: tuple[str, ...]
    step: I64
    value: F64
    logged: Mask


@dataclass(frozen=True)
class BatchTable:
    """What the log says about the data of each step, shape [T] each.

    `ids` are the index columns (batch id, sample ids, shard, seed; text where not numeric), `parts`
    the same with the elements of a list apart (None where missing), `statistics` the batch
    statistics (mean length, entropy, repetition, source share ...).
    """

    step: I64
    row: I64
    ids: Mapping[str, tuple[str | None, ...]]
    statistics: Mapping[str, F64]
    parts: Mapping[str, tuple[tuple[str, ...] | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One training run: global series in memory, per-layer series in blocks on demand.

    `series` is keyed by canonical name (`loss`, `val_loss`, `grad_norm`, `grad_norm_clipped`,
    `param_norm`, `lr`, `loss_scale`, `skipped`, `grad_param_ratio`, `update_norm`,
    `activation_max`, `attn_logit_max`, `epoch`, `tokens`, `wall_time`, ...; other numeric columns
    as `other/<column>`; extra losses as `loss/<column>`).
    `abandoned` holds, under the same names, the points that a later restart overwrote.
    `layers` maps a per-layer metric to its layer names in file order; `layer_blocks(metric)` reads
    them, a bounded number of layers at a time. `axis` says what the steps count ("step", "epoch",
    "row" when counted, "tokens" ...). `siblings` names all runs of the file this one is from. Of a
    very long log `rows_left_out` rows were not looked at; each that was stands for `weight` rows.
    """

    name: str
    files: tuple[str, ...]
    format: str
    rows: int
    axis: str
    series: Mapping[str, Series]
    abandoned: Mapping[str, Series]
    segments: tuple[Segment, ...]
    layers: Mapping[str, tuple[str, ...]]
    layer_blocks: Callable[[str], Iterator[LayerBlock]]
    batch: BatchTable | None
    notes: tuple[Note, ...]
    facts: Mapping[str, str]
    siblings: tuple[str, ...]
    rows_left_out: int = 0
    weight: float = 1.0
