"""The view of a report in a notebook: the verdict, its evidence, a still chart; no script."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.first_screen import cause_name, first_screen
from stabdiag.reporters.html.blocks_html import as_html, inline
from stabdiag.reporters.html.document import asset, table, text
from stabdiag.reporters.html.svg import figures
from stabdiag.reporters.numbers import nats

_SHOWN = 6


def fragment(report: Report) -> str:
    """Return HTML for one cell of a notebook; its styles reach no further than it."""
    verdict = report.verdict
    rank = next((one for one in report.causes if one.cause == verdict.cause), None)
    pieces = sorted(rank.evidence, key=lambda one: -abs(one.weight)) if rank else []
    rows = [[nats(piece.weight), text(piece.text)] for piece in pieces[:_SHOWN]]
    evidence = [table(("weight", f"for and against: {cause_name(verdict.cause)}"), rows)]
    return "\n".join(
        [
            '<div class="stabdiag">',
            f"<style>{asset('notebook.css')}</style>",
            f'<p class="health {text(verdict.health)}">{text(verdict.health.upper())}</p>',
            f"<p>{inline(prose(verdict.summary, 'strong'))}</p>",
            *as_html(first_screen(report)[2:]),
            *(evidence if rows else []),
            *figures(report, ("loss", "grad_norm")),
            "</div>",
        ]
    )
