"""Series as pictures in SVG: readable without a script, in print, and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from stabdiag.drawings import ChartSeries
from stabdiag.findings import Report
from stabdiag.reporters.html.axes import Axis, axis_of, marks, nice
from stabdiag.reporters.html.document import text
from stabdiag.reporters.html.traces import Trace, label, panels, traces
from stabdiag.reporters.numbers import number

Place = Callable[[float], float]

WIDTH, HEIGHT = 880, 208
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 34, 24
_PLOT = HEIGHT - _TOP - _BOTTOM
_APART = 16  # pixels between two labels, at the least
_PHASE_CHAR = 6.2  # pixels of a character of a phase's name, about
_DOTTED = 60  # points: of fewer each one is a dot
_TONES = ("first", "second")  # of the series of one picture
_SAMPLES = ("—", "- -")


def figures(
    report: Report, names: Sequence[str], shown: Sequence[ChartSeries] | None = None
) -> list[str]:
    """Return figures of those of the named series that are logged, on one axis of steps."""
    every = report.charts if shown is None else shown
    drawn = [one for name in names for one in every if one.name == name and one.step]
    if not drawn:
        return []
    first, last = min(min(one.step) for one in drawn), max(max(one.step) for one in drawn)
    return [_figure(members, report, first, last) for members in panels(drawn)]


def said(one: ChartSeries) -> str:
    """Return in words what a picture of the series shows."""
    finite = [value for value in one.value if math.isfinite(value)]
    bad = sum(stretch.points for stretch in one.not_finite)
    span = f"{label(one.name)}, steps {min(one.step)} to {max(one.step)}"
    if not finite:
        return f"{span}: never finite"
    course = f"from {number(finite[0])} to {number(finite[-1])}"
    extremes = f"lowest {number(min(finite))}, highest {number(max(finite))}"
    return f"{span}: {course}, {extremes}" + (f", {number(bad)} points not finite" if bad else "")


def _figure(members: Sequence[ChartSeries], report: Report, first: int, last: int) -> str:
    axis = axis_of([value for one in members for value in one.value])
    span = max(1, last - first)

    def x(step: float) -> float:
        return _LEFT + (step - first) / span * (WIDTH - _LEFT - _RIGHT)

    parts = [*_bands(report, x, first, last), _steps(x, first, last)]
    if axis is not None:
        parts.append(_levels(axis))
        drawn = [(tone, *traces(one)) for tone, one in zip(_TONES, members, strict=False)]
        parts += [_line(one, axis, x, "over") for _, _, passes in drawn for one in passes]
        parts += [_line(current, axis, x, f"line {tone}") for tone, current, _ in drawn]
    parts += [_bad(one, x, first, last) for one in members]
    return (
        f'<figure class="chart"><svg role="img" aria-label="{text("; ".join(map(said, members)))}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{_title(members, axis)}{"".join(parts)}</svg></figure>'
    )


def _title(members: Sequence[ChartSeries], axis: Axis | None) -> str:
    """The names of the series, each with a sample of its line."""
    names = "".join(
        f'<tspan class="{tone}" dx="{12 * (place > 0)}">{sample}</tspan><tspan dx="6">'
        f"{text(label(one.name))}</tspan>"
        for place, (tone, sample, one) in enumerate(zip(_TONES, _SAMPLES, members, strict=False))
    )
    log = '<tspan class="tick" dx="12">log scale</tspan>' if axis is not None and axis.log else ""
    return f'<text x="0" y="13" class="name">{names}{log}</text>'


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
    yield from _phases(report, x, first, last)


def _phases(report: Report, x: Place, first: int, last: int) -> Iterator[str]:
    """A tick where each phase of the learning rate begins, and its name where there is room."""
    starts = [*(one.first_step for one in report.lr_phases[1:]), math.inf]
    for phase, end in zip(report.lr_phases, starts, strict=False):
        if phase.first_step >= last:
            return
        at = x(max(first, phase.first_step))
        if phase.first_step >= first:
            yield f'<path class="phase" d="M{at:.1f} {_TOP - 8}v8"/>'
        if x(end) - at >= _PHASE_CHAR * (len(phase.kind) + 1):
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


def _line(one: Trace, axis: Axis, x: Place, name: str) -> str:
    """The finite stretches as lines, of each pixel the ends and extremes; lone points as dots."""
    lines, dots, stretch = [], [], list[tuple[float, float]]()
    for step, value in (*zip(one.step, one.value, strict=True), (0, math.nan)):
        if math.isfinite(value):
            stretch.append((x(step), _y(axis, value)))
        elif stretch:
            points = list(_by_pixel(stretch))
            if len(points) > 1:
                lines.append("M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points))
            if len(points) == 1 or len(one.step) < _DOTTED:
                dots += [f"M{px:.1f} {py:.1f}h0" for px, py in points]
            stretch = []
    drawn = [f'<path class="{name}" d="{"".join(lines)}"/>'] if lines else []
    drawn += [f'<path class="{name} dots" d="{"".join(dots)}"/>'] if dots else []
    return "".join(drawn)


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
