"""The chart of a page: the run on one axis of steps with its marks, then the episode close up."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import Blank, Block, Drawing, Heading, Paragraph, prose
from stabdiag.reporters.chart import Marks, charts
from stabdiag.reporters.view import View

STORY = ("loss", "grad_norm")


def chart_section(report: Report, names: tuple[str, ...], view: View) -> tuple[Block, ...]:
    """Return the chart of the named series under its heading, with the close-up where there is one.

    Events bear the numbers that the `timeline` command lists them under.
    """
    drawn = drawing(report, names, view)
    return (Heading("Chart"), *drawn, *_close_up(report, view)) if drawn else ()


def drawing(report: Report, names: tuple[str, ...], view: View) -> tuple[Block, ...]:
    """Return the chart of the whole run, or nothing where none of `names` is logged."""
    shown = [series for series in report.charts if series.name in names]
    restarts = tuple(("R", first) for first, _ in report.run.segments[1:])
    phases = tuple((phase.kind, phase.first_step) for phase in report.lr_phases)
    marks = (_events(report), Marks("restarts", restarts), Marks("lr", phases, spans=True))
    lines = charts(shown, marks, view.width, view.ascii_only)
    return (Drawing(lines),) if lines else ()


def _close_up(report: Report, view: View) -> tuple[Block, ...]:
    near = report.close_up
    if near is None:
        return ()
    lines = charts(near.series, (_events(report),), view.width, view.ascii_only)
    title = f" Close up, {report.run.axis}s {near.first_step} to {near.last_step}"
    return (Blank(), Paragraph(prose(title, "strong")), Drawing(lines)) if lines else ()


def _events(report: Report) -> Marks:
    """The episodes as marks, numbered in order."""
    numbered = enumerate(report.episodes, start=1)
    return Marks("events", tuple((str(place), e.onset_step) for place, e in numbered))
