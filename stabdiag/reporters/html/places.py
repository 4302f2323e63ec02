"""Where something happened, as a link that shows it in the charts."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.html.document import text
from stabdiag.reporters.numbers import steps


def place(report: Report, first: int | None, last: int | None = None, words: str = "") -> str:
    """Return "steps 700 to 720" as a link to the charts, as plain words where there are none."""
    said = text(words or steps(first, last))
    if first is None or not any(one.step for one in report.charts):
        return said
    end = first if last is None else last
    return f'<a class="step" href="#charts" data-from="{first}" data-to="{end}">{said}</a>'
