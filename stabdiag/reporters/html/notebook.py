"""The view of a report in a notebook: the verdict, its evidence, a still chart; no script."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import Labelled, prose
from stabdiag.reporters.first_screen import HEALTH_SIGNS, actions, answers, cause_name
from stabdiag.reporters.html.blocks_html import as_html, inline
from stabdiag.reporters.html.document import asset, table, text
from stabdiag.reporters.html.svg import figures
from stabdiag.reporters.numbers import nats

_SHOWN = 6


def fragment(report: Report) -> str:
    """Return HTML for one cell of a notebook; its styles reach no further than it.

    It has no ids, since a notebook holds many, and nothing that needs one.
    """
    verdict = report.verdict
    next_steps = as_html(actions(report))
    return "\n".join(
        [
            '<div class="stabdiag">',
            f"<style>{asset('notebook.css')}</style>",
            f'<p class="health {text(verdict.health)}"><span aria-hidden="true">'
            f"{HEALTH_SIGNS[verdict.health]}</span> {text(verdict.health.upper())}</p>",
            f'<p class="summary">{inline(prose(verdict.summary))}</p>',
            *as_html((Labelled(answers(report)),)),
            *figures(report, ("loss", "val_loss", "grad_norm")),
            *(["<p><strong>Do this next</strong></p>", *next_steps] if next_steps else []),
            *_evidence(report),
            "</div>",
        ]
    )


def _evidence(report: Report) -> list[str]:
    cause = report.verdict.cause
    pieces = [piece for rank in report.causes if rank.cause == cause for piece in rank.evidence]
    weighty = sorted(pieces, key=lambda piece: -abs(piece.weight))[:_SHOWN]
    rows = [
        [nats(one.weight), "for" if one.weight > 0 else "against", text(one.text)]
        for one in sorted(weighty, key=lambda piece: -piece.weight)
    ]
    title = f"What speaks for and against: {cause_name(cause)}"
    return (
        [table(("weight", "speaks", "observation"), rows, right=(0,), caption=title)]
        if rows
        else []
    )
