"""The charts of a page: still pictures, the points for the script, and the same facts as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from stabdiag.drawings import ChartSeries
from stabdiag.findings import Report
from stabdiag.reporters.first_screen import cause_name, episode_kind, handbook_reading, lead
from stabdiag.reporters.html.axes import Axis, axis_of
from stabdiag.reporters.html.document import data, folded, section, table, text
from stabdiag.reporters.html.places import place
from stabdiag.reporters.html.svg import figures
from stabdiag.reporters.html.traces import Trace, label, panels, traces
from stabdiag.reporters.numbers import count, number, percent, times

STORY = ("loss", "val_loss", "grad_norm")
_ALL = (*STORY, "param_norm", "lr", "loss_scale")
_LISTED = 40  # series in the table


def charts(report: Report, story: Sequence[str] = STORY) -> list[str]:
    """Return the charts with their tables; `story` names the series that are shown at first."""
    if not any(one.step for one in report.charts):
        return []
    beside = [name for name in _ALL if name not in story]
    more = figures(report, beside)
    still = [
        *figures(report, story),
        *_close_up(report),
        *(folded(", ".join(label(name) for name in _logged(report, beside)), more) if more else ()),
    ]
    body = [
        *_controls(report, story),
        '<div id="drawn" tabindex="0" role="group" aria-describedby="keys" '
        'aria-label="Charts of the run" hidden></div>',
        '<p id="keys" class="dim script" hidden>Drag over a chart to zoom, double-click for the whole '
        "run. With the keyboard, on the charts: arrow keys read the points, Page Up and Page Down ten "
        "at a time, + and − zoom, 0 shows the whole run.</p>",
        f'<div id="still">{"".join(still)}</div>',
        f'<p class="dim">{text(_key(report))}</p>',
        *_reduced(report),
        *_series(report),
        data("points", points(report, story)),
    ]
    return section("charts", "Charts", body)


def events(report: Report) -> list[str]:
    """Return the events as a table; a link in it shows the event in the charts."""
    rows = [
        [
            str(number_),
            place(report, e.onset_step, e.end_step, _span(e.onset_step, e.end_step)),
            text(episode_kind(e)),
            text(times(e.ratio)),
            text(number(e.score)),
            text(lead(e)),
            text(e.recovery),
            text(number(e.steps_lost)),
            text(f"{cause_name(e.cause)}, {percent(e.probability)}"),
            text(handbook_reading(e)),
        ]
        for number_, e in enumerate(report.episodes, start=1)
    ]
    names = ("event", "steps", "what", "size", "score", "lead", "recovery", "lost", "likely cause")
    header = (*names, "handbook's rule")
    return section(
        "events", "Events", [table(header, rows, right=(3, 4, 5, 7), stacked=True)] if rows else []
    )


def _span(first: int, last: int | None) -> str:
    if last is None:
        return f"{first} on"
    return f"{first}" if last == first else f"{first} to {last}"


def _logged(report: Report, names: Sequence[str]) -> list[str]:
    there = {one.name for one in report.charts if one.step}
    return [name for name in names if name in there]


def _controls(report: Report, story: Sequence[str]) -> list[str]:
    """Buttons and boxes, hidden until the script is there to obey them."""
    boxes = "".join(
        f'<label><input type="checkbox" data-series="{name}"'
        f"{' checked' if name in story else ''}> {text(label(name))}</label>"
        for name in _logged(report, _ALL)
    )
    buttons = "".join(
        f'<button type="button" data-move="{move}" aria-label="{words}">{sign}</button>'
        for move, sign, words in (
            ("whole", "Whole run", "Show the whole run"),
            ("in", "+", "Zoom in"),
            ("out", "−", "Zoom out"),
            ("left", "◀", "Earlier steps"),
            ("right", "▶", "Later steps"),
        )
    )
    return [
        '<div class="controls script" hidden>',
        f'<fieldset><legend>Series</legend>{boxes}<label><input type="checkbox" data-log> '
        "log scale everywhere</label></fieldset>",
        f'<div class="moves">{buttons}<span id="range" role="status"></span></div>',
        '<output id="readout" aria-live="polite"></output>',
        "</div>",
    ]


def _close_up(report: Report) -> list[str]:
    near = report.close_up
    if near is None:
        return []
    title = f"<h3>Close up, {text(report.run.axis)}s {near.first_step} to {near.last_step}</h3>"
    return [title, *figures(report, STORY, near.series)]


def _key(report: Report) -> str:
    """What the marks mean, as far as there are any."""
    marks = []
    if report.episodes:
        marks.append("shaded bands are events, numbered as in the list")
    if len(report.run.segments) > 1:
        marks.append("dashed lines are restarts, faint lines what was trained again after one")
    if report.lr_phases:
        marks.append("words above a chart name the phases of the learning rate")
    if any(one.not_finite for one in report.charts):
        marks.append("a cross on the axis is NaN, a triangle Inf")
    said = "; ".join(marks)
    return f"{said[:1].upper()}{said[1:]}." if said else "One axis of steps for all."


def _reduced(report: Report) -> list[str]:
    few = [one for one in report.charts if _left_out(report, one)]
    if not few:
        return []
    said = ", ".join(
        f"{label(one.name)} {number(len(one.step))} of {number(report.run.series[one.name].points)}"
        for one in few
    )
    return [
        '<p class="note" id="reduced"><strong>Drawn from fewer points than were logged.</strong> '
        f"{text(said)}. Of each stretch of points the first, the lowest, the highest and the last are "
        "kept, all points near the worst events, and every point that is not finite.</p>"
    ]


def _left_out(report: Report, one: ChartSeries) -> bool:
    info = report.run.series.get(one.name)
    return info is not None and info.points > len(one.step)


def _series(report: Report) -> list[str]:
    """The charts in figures: what was logged of each series, and between which values it lies."""
    drawn = {one.name: one for one in report.charts}
    named = sorted(report.run.series, key=lambda name: (name not in drawn, name))
    rows = []
    for name in named[:_LISTED]:
        info = report.run.series[name]
        rows.append(
            [
                text(name),
                text(info.column),
                number(info.points),
                number(info.cadence),
                number(info.non_finite),
                *_extent(drawn.get(name)),
            ]
        )
    if not rows:
        return []
    header = (
        "series",
        "column",
        "points",
        "every",
        "not finite",
        "first",
        "last",
        "lowest",
        "highest",
    )
    more = len(named) - len(rows)
    left = [f'<p class="dim">and {count(more, "series", "series")} more</p>'] if more > 0 else []
    shown = [table(header, rows, right=tuple(range(2, 9))), *left, *_bad_stretches(report)]
    return folded("The series in figures", shown)


def _extent(one: ChartSeries | None) -> list[str]:
    finite = [value for value in one.value if math.isfinite(value)] if one else []
    if one is None or not one.value:
        return [""] * 4
    ends = [number(one.value[0]), number(one.value[-1])]
    return [*ends, number(min(finite)), number(max(finite))] if finite else [*ends, "-", "-"]


def _bad_stretches(report: Report) -> list[str]:
    rows = [
        [
            text(one.name),
            place(report, bad.first_step, bad.last_step, _span(bad.first_step, bad.last_step)),
            bad.kind,
            number(bad.points),
        ]
        for one in report.charts
        for bad in one.not_finite[:_LISTED]
    ]
    if not rows:
        return []
    header = ("series", "steps", "what", "points")
    more = sum(len(one.not_finite) for one in report.charts) - len(rows)
    left = (
        [f'<p class="dim">and {count(more, "stretch", "stretches")} more, marked in the charts</p>']
        if more
        else []
    )
    caption = "Points that are not finite; of very many, neighbours are in one stretch"
    return [table(header, rows, right=(3,), caption=caption), *left]


def points(report: Report, story: Sequence[str]) -> dict[str, Any]:
    """Return what the script draws: the same points as the pictures."""
    there = [one for name in _ALL for one in report.charts if one.name == name and one.step]
    series = [
        _points(one, members[0].name, axis, on=one.name in story)
        for members in panels(there)
        for axis in [axis_of([value for one in members for value in one.value])]
        for one in members
    ]
    return {
        "axis": report.run.axis,
        "series": series,
        "episodes": [[e.onset_step, e.end_step, episode_kind(e)] for e in report.episodes],
        "restarts": [first for first, _ in report.run.segments[1:]],
        "phases": [[phase.kind, phase.first_step] for phase in report.lr_phases],
    }


def _points(one: ChartSeries, panel: str, axis: Axis | None, *, on: bool) -> dict[str, Any]:
    current, passes = traces(one)
    return {
        "name": one.name,
        "label": label(one.name),
        "panel": panel,
        "on": on,
        "log": axis is not None and axis.log,
        "positive": axis is not None and axis.low > 0,
        **_drawn(current),
        "over": [_drawn(before) for before in passes],
        "bad": [[b.first_step, b.last_step, b.kind] for b in one.not_finite],
    }


def _drawn(one: Trace) -> dict[str, Any]:
    """The points; of the steps the first, then how far each is from the one before: that is short."""
    gaps = [after - before for before, after in pairwise((0, *one.step))]
    finite = [value if math.isfinite(value) else None for value in one.value]
    return {"gaps": gaps, "value": finite}
