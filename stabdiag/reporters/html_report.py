"""The report as one HTML file: the first screen, charts to zoom, then all that it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabdiag.findings import Report
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.first_screen import episode_kind, first_screen, log_header, recovery
from stabdiag.reporters.html.blocks_html import as_html, inline
from stabdiag.reporters.html.document import data, document, table, text
from stabdiag.reporters.html.heat import heat
from stabdiag.reporters.html.svg import axis_of, figures
from stabdiag.reporters.numbers import number
from stabdiag.reporters.text_report import details
from stabdiag.reporters.view import View

_MAIN = ("loss", "val_loss", "grad_norm")
_BESIDE = ("param_norm", "lr", "loss_scale")
_STYLES = ("uplot-1.6.32.min.css", "page.css")
_SCRIPTS = ("uplot-1.6.32.min.js", "charts.js")


def render(report: Report, view: View) -> str:
    """Return the whole page; `view` does not matter to it."""
    verdict = report.verdict
    body = [
        '<a class="skip" href="#report">Skip to the report</a>',
        f"<header><p>{inline(log_header(report.version, report.run))}</p></header>",
        '<main id="report">',
        f'<h1 class="{text(verdict.health)}">{text(verdict.health.upper())}</h1>',
        f'<p class="summary">{inline(prose(verdict.summary, "strong"))}</p>',
        *as_html(first_screen(report)[2:]),
        *_charts(report),
        *as_html(details(report)),
        *_heat_maps(report),
        *_thresholds(report),
        "</main>",
        data("charts", _points(report)),
    ]
    name = report.run.files[0] if report.run.files else report.run.name
    return document(f"stabdiag: {name}, {verdict.health}", body, styles=_STYLES, scripts=_SCRIPTS)


def _charts(report: Report) -> list[str]:
    main, beside = figures(report, _MAIN), figures(report, _BESIDE)
    if not main and not beside:
        return []
    points = max((len(one.step) for one in report.charts), default=0)
    logged = max((info.points for info in report.run.series.values()), default=0)
    reduced = (
        f" Drawn from up to {points:,} of {logged:,} points: of each stretch the first, the lowest, "
        "the highest, the last and the ends of what is not finite."
        if logged > points
        else ""
    )
    jumps = "".join(
        f'<button type="button" data-from="{e.onset_step}" data-to="{e.end_step or ""}">'
        f"{place}: step {e.onset_step}</button>"
        for place, e in enumerate(report.episodes[:12], start=1)
    )
    return [
        '<section aria-labelledby="charts-title">',
        '<h2 id="charts-title">Charts</h2>',
        '<div class="controls" hidden><button type="button" data-all>Whole run</button>'
        '<button type="button" data-in>Zoom in</button>'
        '<button type="button" data-out>Zoom out</button>'
        f"{jumps}</div>",
        '<div id="drawn"></div>',
        f'<div id="static">{"".join(main)}',
        f"<details><summary>Parameter norm, learning rate, loss scale</summary>{''.join(beside)}"
        "</details>" * bool(beside),
        "</div>",
        f'<p class="dim">Bands: events, numbered as in the list; dashed: restarts; crosses: NaN or '
        f"Inf logged there.{reduced}</p>",
        *_events(report),
        "</section>",
    ]


def _events(report: Report) -> list[str]:
    rows = [
        [
            str(place),
            text(f"{e.onset_step}" + (f" to {e.end_step}" if e.end_step is not None else " on")),
            text(episode_kind(e)),
            text(recovery(e)),
        ]
        for place, e in enumerate(report.episodes, start=1)
    ]
    return [table(("event", "steps", "what", "end"), rows)] if rows else []


def _heat_maps(report: Report) -> list[str]:
    maps = [line for one in report.heat_maps for line in heat(one, report.verdict.onset_step)]
    title = '<section aria-labelledby="heat"><h2 id="heat">Layers over time</h2>'
    return [title, *maps, "</section>"] if maps else []


def _thresholds(report: Report) -> list[str]:
    rows = [[text(name), text(number(v, 6))] for name, v in sorted(report.thresholds.items())]
    return [
        "<details><summary>Thresholds in force</summary>",
        table(("threshold", "value"), rows, right=(1,)),
        "</details>",
    ]


def _points(report: Report) -> Mapping[str, Any]:
    """What the script draws: the same points as the pictures, and the close-up's finer ones."""
    near = report.close_up
    series = {
        one.name: {
            "step": one.step,
            "value": one.value,
            "log": (axis := axis_of(one)) is not None and axis.log,
            "bad": [s for s, v in zip(one.step, one.value, strict=True) if not math.isfinite(v)],
        }
        for one in report.charts
    }
    return {
        "axis": report.run.axis,
        "series": series,
        "near": {one.name: {"step": one.step, "value": one.value} for one in near.series}
        if near is not None
        else {},
        "episodes": [[e.onset_step, e.end_step] for e in report.episodes],
        "restarts": [first for first, _ in report.run.segments[1:]],
    }
