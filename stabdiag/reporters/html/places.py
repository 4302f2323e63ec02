"""Where something happened: steps as a link that shows them in the charts, layers by name."""

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


def layer(name: str) -> str:
    """Return a layer's name; where it is too long for its line it breaks between its parts."""
    return f'<span class="layer">{text(name).replace(".", ".<wbr>").replace("/", "/<wbr>")}</span>'
