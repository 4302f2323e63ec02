"""The report as one HTML file: the answer first, charts to zoom, then all that it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stabdiag.findings import Report
from stabdiag.reporters.blocks import Labelled, prose
from stabdiag.reporters.first_screen import HEALTH_SIGNS, actions, answers, log_header
from stabdiag.reporters.html.basis import basis, notes
from stabdiag.reporters.html.blocks_html import as_html, inline
from stabdiag.reporters.html.charts import charts, events
from stabdiag.reporters.html.document import document, text
from stabdiag.reporters.html.evidence import evidence, probabilities
from stabdiag.reporters.html.findings import findings, steps
from stabdiag.reporters.html.layers import layers
from stabdiag.reporters.part_pages import part_page, spike_score_section
from stabdiag.reporters.sections import section
from stabdiag.reporters.view import PARTS, View, findings_of, workflow_of

_STYLES = ("uplot-1.6.32.min.css", "page.css")
_SCRIPTS = ("uplot-1.6.32.min.js", "charts.js", "page.js")
_LICENCES = ("uplot-LICENSE.txt",)  # asks to be in every copy
_LIKELIEST = 3
_MOST_LAYERS = 50  # of the verdict, named in the answer
_SHORT = {
    "The five steps": "Steps",
    "Spike score": "",
    "Layers over time": "Over time",
    "What was logged": "Logging",
    "Checks behind the verdict": "Checks",
    "Notes on the log": "Notes",
    "Thresholds in force": "Thresholds",
    "Minimal reproduction": "",  # stands right below how to bisect
}
_HEADING = re.compile(r'<section id="([^"]+)" aria-labelledby="[^"]+">\n<h2[^>]*>([^<]+)</h2>')


def render(report: Report, view: View) -> str:
    """Return the whole page; `view` does not matter to it."""
    body = [
        *charts(report),
        *events(report),
        *as_html(spike_score_section(report)),
        *steps(report, report.workflow),
        *findings(report, range(len(report.findings))),
        *evidence(report),
        *layers(report),
        *basis(report),
    ]
    return _page(report, [*_answer(report), *_contents(body), *body], report.verdict.health)


def render_part(report: Report, part: str, view: View) -> str:
    """Return the page of one command, such as `timeline`."""
    spec = PARTS[part]
    bare = report if part != "audit" else replace(report, charts=())  # it has nothing to show there
    body = [
        f"<h1>{text(part.capitalize())}</h1>",
        *steps(bare, workflow_of(bare, spec)),
        *_PARTS[part](bare, view),
        *(findings(bare, findings_of(bare, spec)) if part != "audit" else ()),
        *(notes(bare) if part != "audit" else ()),
    ]
    return _page(report, body, part)


def _layers_part(report: Report, view: View) -> list[str]:
    return [
        *layers(report),
        *as_html(section("Do this next", actions(report))),
        *charts(report, ("grad_norm", "param_norm")),
    ]


def _timeline_part(report: Report, view: View) -> list[str]:
    return [*charts(report), *events(report), *as_html(spike_score_section(report))]


def _numerics_part(report: Report, view: View) -> list[str]:
    return [*charts(report, ("grad_norm", "loss_scale")), *events(report)]


def _audit_part(report: Report, view: View) -> list[str]:
    return as_html(part_page(report, "audit", view)[1:])


_PARTS: Mapping[str, Callable[[Report, View], list[str]]] = {
    "timeline": _timeline_part,
    "numerics": _numerics_part,
    "layers": _layers_part,
    "audit": _audit_part,
}


def _page(report: Report, body: Sequence[str], what: str) -> str:
    header = " · ".join(text(span.text.strip()) for span in log_header(report.version, report.run))
    whole = [
        '<a class="skip" href="#report">Skip to the report</a>',
        f"<header><p>{header}</p></header>",
        '<main id="report">',
        *body,
        "</main>",
        f"<footer><p>stabdiag {text(report.version)}. This file loads nothing.</p></footer>",
    ]
    name = report.run.files[0] if report.run.files else report.run.name
    return document(
        f"stabdiag: {name}, {what}", whole, styles=_STYLES, scripts=_SCRIPTS, licences=_LICENCES
    )


def _answer(report: Report) -> list[str]:
    """What happened, when, where, why, how sure, what now: before anything is scrolled."""
    verdict = report.verdict
    health = text(verdict.health)
    return [
        f'<div class="answer {health}">',
        f'<p class="health"><span aria-hidden="true">{HEALTH_SIGNS[verdict.health]}</span> '
        f"{health.upper()}</p>",
        f"<h1>{inline(prose(verdict.summary))}</h1>",
        '<div class="beside"><div>',
        *as_html((Labelled(answers(report, _MOST_LAYERS)),)),
        "</div>",
        '<aside aria-label="How sure">',
        probabilities(report.causes[:_LIKELIEST], caption="How sure"),
        "</aside></div></div>",
        *as_html(section("Do this next", actions(report))),
    ]


def _contents(body: Sequence[str]) -> list[str]:
    """Links to the sections that the page has."""
    found = _HEADING.findall("\n".join(body))
    links = "".join(
        f'<li><a href="#{name}">{short}</a></li>'
        for name, title in found
        if (short := _SHORT.get(title, title))
    )
    return [f'<nav aria-label="Sections"><ul>{links}</ul></nav>']
