"""A series as a picture in SVG: readable without a script, in print, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from stabdiag.findings import ChartSeries, Report
from stabdiag.reporters.html.axes import Axis, axis_of, marks, nice
from stabdiag.reporters.html.document import text
from stabdiag.reporters.html.traces import Trace, traces
from stabdiag.reporters.numbers import number

Place = Callable[[float], float]

WIDTH, HEIGHT = 880, 208
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 34, 24
_PLOT = HEIGHT - _TOP - _BOTTOM
_APART = 16  # pixels between two labels, at the least


def figures(
    report: Report, names: Sequence[str], shown: Sequence[ChartSeries] | None = None
) -> list[str]:
    """Return a figure for each of the named series that is logged, on one axis of steps."""
    every = report.charts if shown is None else shown
    drawn = [one for name in names for one in every if one.name == name and one.step]
    if not drawn:
        return []
    first, last = min(min(one.step) for one in drawn), max(max(one.step) for one in drawn)
    return [_figure(one, report, first, last) for one in drawn]


def said(one: ChartSeries) -> str:
    """Return in words what a picture of the series shows."""
    finite = [value for value in one.value if math.isfinite(value)]
    bad = sum(stretch.points for stretch in one.not_finite)
    span = f"{one.name}, steps {min(one.step)} to {max(one.step)}"
    if not finite:
        return f"{span}: never finite"
    course = f"from {number(finite[0])} to {number(finite[-1])}"
    extremes = f"lowest {number(min(finite))}, highest {number(max(finite))}"
    return f"{span}: {course}, {extremes}" + (f", {number(bad)} points not finite" if bad else "")


def _figure(one: ChartSeries, report: Report, first: int, last: int) -> str:
    axis = axis_of(one.value)
    span = max(1, last - first)

    def x(step: float) -> float:
        return _LEFT + (step - first) / span * (WIDTH - _LEFT - _RIGHT)

    parts = [*_bands(report, x, first, last), _steps(x, first, last)]
    if axis is not None:
        current, passes = traces(one)
        over = [line for before in passes for line in _lines(before, axis, x, "over")]
        parts += [_levels(axis), *over, *_lines(current, axis, x)]
    parts.append(_bad(one, x, first, last))
    title = f"{one.name}{' (log scale)' if axis is not None and axis.log else ''}"
    return (
        f'<figure class="chart"><svg role="img" aria-label="{text(said(one))}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<text x="0" y="13" class="name">{text(title)}</text>{"".join(parts)}</svg></figure>'
    )


def _bands(report: Report, x: Place, first: int, last: int) -> Iterator[str]:
    """Episodes as bands with their numbers, restarts as dashed lines, phases of the LR in words."""
    free = -math.inf
    for place, episode in enumerate(report.episodes, start=1):
        end = episode.end_step if episode.end_step is not None else last
        if end < first or episode.onset_step > last:
            continue
        left, right = x(max(first, episode.onset_step)), x(min(last, end))
        yield (
            f'<rect class="band" x="{left:.1f}" y="{_TOP}" width="{max(2.0, right - left):.1f}" '
            f'height="{_PLOT}"/>'
        )
        if left >= free:
            free = left + _APART
            yield f'<text class="mark" x="{left + 2:.1f}" y="{_TOP + 11}">{place}</text>'
    for start, _ in report.run.segments[1:]:
        if first <= start <= last:
            yield _upright("restart", x(start))
    for phase in report.lr_phases:
        if first <= phase.first_step < last:
            at = x(phase.first_step)
            yield f'<path class="phase" d="M{at:.1f} {_TOP - 8}v8"/>'
            yield f'<text class="tick" x="{at + 3:.1f}" y="{_TOP - 3}">{text(phase.kind)}</text>'


def _upright(name: str, at: float) -> str:
    return f'<path class="{name}" d="M{at:.1f} {_TOP}v{_PLOT}"/>'


def _steps(x: Place, first: int, last: int) -> str:
    bottom = HEIGHT - _BOTTOM
    ticks = "".join(
        f'<text class="tick" x="{x(at):.1f}" y="{bottom + 15}" text-anchor="middle">{at:.0f}</text>'
        for at in nice(first, last, 8)
        if x(at) < WIDTH - _RIGHT - 12
    )
    return f'<path class="frame" d="M{_LEFT} {bottom}H{WIDTH - _RIGHT}"/>{ticks}'


def _levels(axis: Axis) -> str:
    return "".join(
        f'<text class="tick" x="{_LEFT - 6}" y="{_y(axis, v) + 4:.1f}" text-anchor="end">'
        f"{number(v)}</text>"
        f'<path class="grid" d="M{_LEFT} {_y(axis, v):.1f}H{WIDTH - _RIGHT}"/>'
        for v in marks(axis)
    )


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.share(value) * _PLOT


def _lines(one: Trace, axis: Axis, x: Place, name: str = "line") -> list[str]:
    """The finite stretches as lines, of each pixel the ends and extremes; a lone point as a dot."""
    out, stretch = [], list[tuple[float, float]]()
    for step, value in (*zip(one.step, one.value, strict=True), (0, math.nan)):
        if math.isfinite(value):
            stretch.append((x(step), _y(axis, value)))
        elif stretch:
            points = list(_by_pixel(stretch))
            drawn = " ".join(f"{px:.1f} {py:.1f}" for px, py in points * (1 + (len(points) == 1)))
            out.append(f'<polyline class="{name}" points="{drawn}"/>')
            stretch = []
    return out


def _by_pixel(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Points without those that the others in their pixel column hide."""
    column: list[tuple[float, float]] = []
    for point in (*points, (math.inf, 0.0)):
        if column and (point[0] == math.inf or int(point[0]) != int(column[0][0])):
            low, high = min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])
            yield from sorted({column[0], low, high, column[-1]}, key=column.index)
            column = []
        column.append(point)


def _bad(one: ChartSeries, x: Place, first: int, last: int) -> str:
    """On the axis a cross for NaN and a triangle for Inf; what would overlap is one mark."""
    y, out, free = HEIGHT - _BOTTOM, [], {"NaN": -math.inf, "Inf": -math.inf}
    for stretch in one.not_finite:
        if stretch.last_step < first or stretch.first_step > last:
            continue
        kind = "NaN" if "NaN" in stretch.kind else "Inf"
        at, end = x(max(first, stretch.first_step)), x(min(last, stretch.last_step))
        at = max(at, free[kind])
        while at <= end:
            shape = f"M{at - 3:.1f} {y - 3}l6 6m0 -6l-6 6"
            out.append(shape if kind == "NaN" else f"M{at - 4:.1f} {y + 3}l4 -7l4 7z")
            at += 8
            free[kind] = at
    return f'<path class="bad-mark" d="{"".join(out)}"/>' if out else ""
