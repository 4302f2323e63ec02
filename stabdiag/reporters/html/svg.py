"""A series as a picture in SVG: readable without a script, in print, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stabdiag.findings import ChartSeries, Report
from stabdiag.reporters.html.document import text
from stabdiag.reporters.numbers import number

Place = Callable[[float], float]

WIDTH, HEIGHT = 880, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 12, 24, 26
_SPREAD = 20.0  # highest over lowest: from there on the axis is logarithmic


@dataclass(frozen=True)
class Axis:
    """From values to pixels: the range, and whether the values' logarithms are drawn."""

    low: float
    high: float
    log: bool

    def y(self, value: float) -> float:
        """Pixel of a value."""
        low, high, at = (_log(v) if self.log else v for v in (self.low, self.high, value))
        share = (at / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)


def _log(value: float) -> float:
    return math.log10(value)


def figures(report: Report, names: Sequence[str]) -> list[str]:
    """Return a figure for each of the named series that is logged, on one axis of steps."""
    shown = [one for name in names for one in report.charts if one.name == name and one.step]
    if not shown:
        return []
    first, last = min(one.step[0] for one in shown), max(one.step[-1] for one in shown)
    return [_figure(one, report, first, last) for one in shown]


def axis_of(one: ChartSeries) -> Axis | None:
    """Return the axis of a series, None where nothing is finite."""
    finite = [value for value in one.value if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    return Axis(low, high, log=low > 0 and high / low > _SPREAD)


def _figure(one: ChartSeries, report: Report, first: int, last: int) -> str:
    axis = axis_of(one)
    span = max(1, last - first)

    def x(step: float) -> float:
        return _LEFT + (step - first) / span * (WIDTH - _LEFT - _RIGHT)

    parts = [_bands(report, x, last), _frame(first, last)]
    if axis is not None:
        parts += [_scale(axis), *_lines(one, axis, x)]
    parts.append(_bad(one, x))
    title = f"{one.name}{', log scale' if axis is not None and axis.log else ''}"
    said = _said(one, first, last)
    return (
        f'<figure><svg class="chart" role="img" aria-label="{text(said)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">'
        f'<text x="{_LEFT}" y="15" class="name">{text(title)}</text>{"".join(parts)}</svg></figure>'
    )


def _said(one: ChartSeries, first: int, last: int) -> str:
    finite = [value for value in one.value if math.isfinite(value)]
    bad = len(one.value) - len(finite)
    span = f"{one.name}, steps {first} to {last}"
    if not finite:
        return f"{span}: never finite"
    text_ = (
        f"{span}: from {number(finite[0])} to {number(finite[-1])}, lowest {number(min(finite))}"
    )
    return f"{text_}, highest {number(max(finite))}" + (", partly not finite" if bad else "")


def _bands(report: Report, x: Place, last: int) -> str:
    """Episodes as bands with their numbers, restarts as dashed lines."""
    out = []
    for place, episode in enumerate(report.episodes, start=1):
        left = x(episode.onset_step)
        right = x(episode.end_step if episode.end_step is not None else last)
        width = max(2.0, right - left)
        out.append(
            f'<rect class="band" x="{left:.1f}" y="{_TOP}" width="{width:.1f}" '
            f'height="{HEIGHT - _TOP - _BOTTOM}"/>'
            f'<text class="mark" x="{left + 2:.1f}" y="{_TOP + 10}">{place}</text>'
        )
    for start, _ in report.run.segments[1:]:
        out.append(
            f'<line class="restart" x1="{x(start):.1f}" x2="{x(start):.1f}" y1="{_TOP}" '
            f'y2="{HEIGHT - _BOTTOM}"/>'
        )
    return "".join(out)


def _frame(first: int, last: int) -> str:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    return (
        f'<path class="frame" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
        f'<text class="tick" x="{_LEFT}" y="{HEIGHT - 8}">{first}</text>'
        f'<text class="tick" x="{right}" y="{HEIGHT - 8}" text-anchor="end">{last}</text>'
    )


def _scale(axis: Axis) -> str:
    marks = {axis.low, axis.high}
    if axis.log:
        powers = range(math.ceil(_log(axis.low)), math.floor(_log(axis.high)) + 1)
        step = max(1, len(powers) // 4)
        marks |= {10.0**p for p in list(powers)[::step]}
    else:
        marks.add(axis.low / 2 + axis.high / 2)
    out: list[tuple[float, float]] = []
    for value in sorted(marks, key=lambda v: (v not in (axis.low, axis.high), v)):
        y = axis.y(value)
        if all(abs(y - other) >= 12 for other, _ in out):
            out.append((y, value))
    return "".join(
        f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(v)}</text>'
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for y, v in out
    )


def _lines(one: ChartSeries, axis: Axis, x: Place) -> list[str]:
    """The finite stretches as lines; a lone point as a dot."""
    runs: list[list[str]] = [[]]
    for step, value in zip(one.step, one.value, strict=True):
        if math.isfinite(value):
            runs[-1].append(f"{x(step):.1f} {axis.y(value):.1f}")
        elif runs[-1]:
            runs.append([])
    return [
        f'<polyline class="line" points="{" ".join(points if len(points) > 1 else points * 2)}"/>'
        for points in runs
        if points
    ]


def _bad(one: ChartSeries, x: Place) -> str:
    """A cross on the axis for each point that is not finite; neighbours are one."""
    y, out, before = HEIGHT - _BOTTOM, [], -math.inf
    for step, value in zip(one.step, one.value, strict=True):
        at = x(step)
        if not math.isfinite(value) and at - before > 5:
            before = at
            out.append(f"M{at - 3:.1f} {y - 3}l6 6m0 -6l-6 6")
    return f'<path class="bad-mark" d="{"".join(out)}"/>' if out else ""
