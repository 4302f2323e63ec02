"""The ledger of evidence as tables: what speaks for a cause and against it, with bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabdiag.findings import CauseRank, Evidence, Report
from stabdiag.reporters.first_screen import cause_name
from stabdiag.reporters.html.document import folded, section, table, text
from stabdiag.reporters.html.places import place
from stabdiag.reporters.numbers import nats, percent

_OPEN = 2  # causes whose ledger is open at first
_HALF = 60  # pixels of a bar to either side


def evidence(report: Report) -> list[str]:
    """Return the causes with their probabilities, then the ledger of each."""
    weighed = [rank for rank in report.causes if rank.evidence]
    weights = [abs(one.weight) for rank in weighed for one in rank.evidence]
    most = max((w for w in weights if math.isfinite(w)), default=0.0)
    body = [
        '<p class="dim">A weight is in nats: +1 makes a cause 2.7 times as likely beside the others. '
        "The probabilities are the softmax of the sums.</p>",
        probabilities(report.causes, caption="How likely each cause is"),
    ]
    for order, rank in enumerate(weighed):
        body += folded(
            f"{cause_name(rank.cause)}, {percent(rank.probability)}",
            [_ledger(report, rank.evidence, most)],
            unfolded=order < _OPEN,
        )
    return section("evidence", "Evidence", body if report.causes else [])


def probabilities(causes: Sequence[CauseRank], *, caption: str) -> str:
    """Return causes with their probabilities, in words and as bars."""
    rows = [
        [text(cause_name(one.cause)), text(percent(one.probability)), _bar(one.probability)]
        for one in causes
    ]
    return table(("cause", "probability", "bar"), rows, right=(1,), caption=caption)


def _ledger(report: Report, pieces: Sequence[Evidence], most: float) -> str:
    ordered = sorted(pieces, key=lambda piece: -piece.weight)
    rows = [
        [
            nats(piece.weight),
            _both_ways(piece.weight, most),
            "for" if piece.weight > 0 else "against" if piece.weight < 0 else "neither",
            text(piece.text),
            place(report, min(piece.steps), max(piece.steps)) if piece.steps else "",
            text(", ".join(piece.series)),
        ]
        for piece in ordered
    ]
    header = ("weight", "bar", "speaks", "observation", "where", "series")
    return table(header, rows, right=(0,), stacked=True)


def _bar(share: float) -> str:
    width = round(100 * share, 1) if math.isfinite(share) else 0.0
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" width="100" height="8"/><rect class="fill" width="{width}" height="8"/>'
        "</svg>"
    )


def _both_ways(weight: float, most: float) -> str:
    share = min(1.0, abs(weight) / most) if most and not math.isnan(weight) else 0.0
    width = round(share * _HALF, 1)
    left, name = (_HALF, "for") if weight > 0 else (_HALF - width, "against")
    return (
        f'<svg class="both" viewBox="0 0 {2 * _HALF} 10" width="{2 * _HALF}" height="10" '
        f'aria-hidden="true"><rect class="{name}" x="{left}" y="1" width="{width}" height="8"/>'
        f'<path class="zero" d="M{_HALF} 0v10"/></svg>'
    )
