"""A series as lines to draw: what counts, and what a restart wrote over."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stabdiag.findings import ChartSeries


@dataclass(frozen=True)
class Trace:
    """Points of a line, steps rising."""

    step: tuple[int, ...]
    value: tuple[float, ...]


def traces(one: ChartSeries) -> tuple[Trace, Trace]:
    """Return the points that count, and those whose steps were trained again after a restart.

    The second ones may hold several passes; a NaN parts them.
    """
    kept: list[tuple[int, float]] = []
    over: list[tuple[int, float]] = []
    lowest = math.inf
    for step, value in zip(reversed(one.step), reversed(one.value), strict=True):
        if step < lowest:
            lowest = step
            kept.append((step, value))
        else:
            if over and step > over[-1][0]:
                over.append((step, math.nan))
            over.append((step, value))
    return _trace(kept), _trace(over)


def _trace(backwards: list[tuple[int, float]]) -> Trace:
    return Trace(tuple(s for s, _ in reversed(backwards)), tuple(v for _, v in reversed(backwards)))
