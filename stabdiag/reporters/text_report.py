"""The report in the terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import Block
from stabdiag.reporters.chart_pages import STORY, chart_section
from stabdiag.reporters.first_screen import first_screen
from stabdiag.reporters.layer_pages import ranking
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.part_pages import part_page
from stabdiag.reporters.sections import (
    checks_section,
    evidence_section,
    findings_section,
    monitoring_section,
    notes_section,
    section,
    steps_section,
)
from stabdiag.reporters.view import View

_SHOWN_LAYERS = 10


def render(report: Report, view: View) -> str:
    """Return the whole report as text of at most `view.width` columns."""
    return laid_out(page(report, view), view)


def render_part(report: Report, part: str, view: View) -> str:
    """Return the page of one command, such as `timeline`."""
    return laid_out(part_page(report, part, view), view)


def page(report: Report, view: View) -> tuple[Block, ...]:
    """Return the blocks of the whole report, the verdict first."""
    return (
        *first_screen(report),
        *chart_section(report, STORY, view),
        *details(report, view.width),
    )


def details(report: Report, width: int = 80) -> tuple[Block, ...]:
    """Return what the verdict rests on: all sections below the first screen and its chart."""
    return (
        *section("The five steps", steps_section(report, report.workflow)),
        *section("Findings", findings_section(report.findings)),
        *section("Evidence", evidence_section(report.causes)),
        *section("Layers", ranking(report, _SHOWN_LAYERS, width)),
        *section("What was logged", monitoring_section(report.monitoring)),
        *section("Checks behind the verdict", checks_section(report)),
        *section("Notes on the log", notes_section(report)),
    )
