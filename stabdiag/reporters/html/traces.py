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


def traces(one: ChartSeries) -> tuple[Trace, list[Trace]]:
    """Return the points that count, and those whose steps were trained again, pass by pass."""
    kept: list[tuple[int, float]] = []
    passes: list[list[tuple[int, float]]] = []
    lowest = math.inf
    for step, value in zip(reversed(one.step), reversed(one.value), strict=True):
        if step < lowest:
            lowest = step
            kept.append((step, value))
        elif passes and step < passes[-1][-1][0]:
            passes[-1].append((step, value))
        else:
            passes.append([(step, value)])
    return _trace(kept), [_trace(points) for points in reversed(passes)]


def _trace(backwards: list[tuple[int, float]]) -> Trace:
    return Trace(tuple(s for s, _ in reversed(backwards)), tuple(v for _, v in reversed(backwards)))
