"""A series as lines to draw: with which others, what counts, and what a restart wrote over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stabdiag.drawings import ChartSeries

_WORDS = {"lr": "learning rate", "val_loss": "validation loss"}
_BESIDE = {"val_loss": "loss"}  # drawn into the panel of another series


@dataclass(frozen=True)
class Trace:
    """Points of a line, steps rising."""

    step: tuple[int, ...]
    value: tuple[float, ...]


def label(name: str) -> str:
    """Return a series' name in words."""
    return _WORDS.get(name, name.replace("_", " "))


def panels(series: Sequence[ChartSeries]) -> list[list[ChartSeries]]:
    """Return the series by the picture that they are drawn into, in order."""
    found: dict[str, list[ChartSeries]] = {}
    for one in series:
        found.setdefault(_BESIDE.get(one.name, one.name), []).append(one)
    return list(found.values())


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
