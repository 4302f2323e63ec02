"""Charts in characters: one column a stretch of steps, as high as its largest value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stabdiag.drawings import ChartSeries
from stabdiag.reporters.numbers import number

HIGH, LOW = 6, 3  # rows of a chart: of what tells the story, of what goes with it
HEIGHTS: Mapping[str, int] = {"loss": HIGH, "grad_norm": HIGH}
MARGIN = 12  # columns left of the plot, for the labels of the axis
MIN_PLOT = 16
_HELD_GAPS = 3  # a stretch without points longer than this many usual gaps stays empty


@dataclass(frozen=True)
class Ink:
    """The characters of a chart: `bars` from the lowest to a full cell, then axis and corner."""

    bars: str
    axis: str
    corner: str
    floor: str


BLOCKS = Ink("▁▂▃▄▅▆▇█", "│", "└", "─")
ASCII = Ink(".:#", "|", "+", "-")


@dataclass(frozen=True)
class Columns:
    """A series over the columns of a plot: largest finite value (None: no point) and where bad."""

    largest: tuple[float | None, ...]
    not_finite: tuple[bool, ...]


@dataclass(frozen=True)
class Marks:
    """A line under the axis: `at` are labels with their steps; `spans` reach to the next label."""

    name: str
    at: tuple[tuple[str, int], ...]
    spans: bool = False


def charts(
    series: Sequence[ChartSeries],
    marks: Sequence[Marks],
    width: int,
    ascii_only: bool,
) -> tuple[str, ...]:
    """Return the charts of `series` below one another on one axis of steps.

    `marks` are drawn under the axis, a line each. A column whose points are all or in part not
    finite has an x above it. Lines are at most `width` columns.
    """
    drawn = [one for one in series if one.step]
    if not drawn:
        return ()
    ink = ASCII if ascii_only else BLOCKS
    plot = max(MIN_PLOT, width - MARGIN - 1)
    first = min(one.step[0] for one in drawn)
    last = max(one.step[-1] for one in drawn)
    lines: list[str] = []
    for one in drawn:
        lines.extend(_chart(one, first, last, plot, ink))
    lines.append(" " * MARGIN + _ends(str(first), str(last), plot))
    for line in marks:
        seen = [(label, step) for label, step in line.at if first <= step <= last]
        if seen:
            draw = _span_line if line.spans else _mark_line
            lines.append(line.name.rjust(MARGIN - 1) + " " + draw(seen, first, last, plot))
    if any(not math.isfinite(value) for one in drawn for value in one.value):
        lines.append(" " * MARGIN + "x: NaN or Inf logged here")
    return tuple(line.rstrip() for line in lines)


def _chart(one: ChartSeries, first: int, last: int, plot: int, ink: Ink) -> list[str]:
    height = HEIGHTS.get(one.name, LOW)
    columns = _binned(one, first, last, plot)
    finite = [value for value in columns.largest if value is not None]
    if not finite:
        return [f"{one.name}: no finite value", *_floor(columns, plot, ink)]
    low, high = min(finite), max(finite)
    log = low > 0 and high > low
    levels = [_level(value, low, high, log, height * len(ink.bars)) for value in columns.largest]
    rows = [f"{one.name}{' (log scale)' if log else ''}"]
    for row in range(height - 1, -1, -1):
        label = number(high) if row == height - 1 else number(low) if row == 0 else ""
        cells = (_cell(level, row, ink) for level in levels)
        rows.append(f"{label.rjust(MARGIN - 2)} {ink.axis}{''.join(cells)}")
    return [*rows, *_floor(columns, plot, ink)]


def _floor(columns: Columns, plot: int, ink: Ink) -> list[str]:
    """The line under a plot; an x stands where points were not finite."""
    bad = "".join("x" if bad else ink.floor for bad in columns.not_finite)
    return [" " * (MARGIN - 1) + ink.corner + bad]


def _binned(one: ChartSeries, first: int, last: int, plot: int) -> Columns:
    """Put points into columns; between points of the usual cadence the last value is held."""
    largest: list[float | None] = [None] * plot
    bad = [False] * plot
    for step, value in zip(one.step, one.value, strict=True):
        column = _column(step, first, last, plot)
        if not math.isfinite(value):
            bad[column] = True
            continue
        seen = largest[column]
        largest[column] = value if seen is None else max(seen, value)
    return Columns(tuple(_held(largest, bad)), tuple(bad))


def _held(largest: list[float | None], bad: list[bool]) -> list[float | None]:
    filled = [place for place, value in enumerate(largest) if value is not None or bad[place]]
    gaps = sorted(right - left for left, right in pairwise(filled))
    limit = _HELD_GAPS * gaps[len(gaps) // 2] if gaps else 0
    held = list(largest)
    for left, right in pairwise(filled):
        if 1 < right - left <= limit:
            held[left + 1 : right] = [largest[left]] * (right - left - 1)
    return held


def _column(step: int, first: int, last: int, plot: int) -> int:
    return min(plot - 1, (step - first) * plot // (last - first + 1))


def _level(value: float | None, low: float, high: float, log: bool, most: int) -> int:
    """Height of a value in parts of a cell: 1 for the lowest, `most` for the highest."""
    if value is None:
        return 0
    if high == low:
        return most // 2
    if log:
        share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    else:
        share = (value / 2 - low / 2) / (high / 2 - low / 2)  # halves: no overflow near the limit
    return 1 + round(share * (most - 1))


def _cell(level: int, row: int, ink: Ink) -> str:
    parts = len(ink.bars)
    inside = min(parts, level - row * parts)
    return ink.bars[inside - 1] if inside > 0 else " "


def _ends(left: str, right: str, plot: int) -> str:
    return left + right.rjust(max(len(right) + 1, plot - len(left)))


def _span_line(marks: Sequence[tuple[str, int]], first: int, last: int, plot: int) -> str:
    """Labels from their columns on, each behind a |, cut where the next one begins."""
    line = ""
    for label, step in marks:
        line = line[: _column(step, first, last, plot)]
        line = line.ljust(_column(step, first, last, plot)) + f"|{label}"
    return line[:plot].rstrip()


def _mark_line(marks: Sequence[tuple[str, int]], first: int, last: int, plot: int) -> str:
    """Labels under their columns; where two would meet, a + stands for the later one."""
    line = [" "] * plot
    free = 0
    for label, step in sorted(marks, key=lambda mark: mark[1]):
        column = min(_column(step, first, last, plot), plot - len(label))
        if column < free:
            line[max(0, free - 1)] = "+"
            continue
        line[column : column + len(label)] = label
        free = column + len(label)
    return "".join(line).rstrip()
