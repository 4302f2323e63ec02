"""The overview of a fleet as one HTML file: a table to sort, readable without a script."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from stabdiag.fleet.rows import HEALTHS, Fleet, FleetRow
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.first_screen import cause_name
from stabdiag.reporters.html.blocks_html import inline
from stabdiag.reporters.html.document import document, table, text
from stabdiag.reporters.numbers import count, percent
from stabdiag.reporters.view import View

_HEADER = ("run", "health", "cause", "sure", "onset", "severity", "findings", "layers", "summary")

_SORTS = '<span class="script" hidden> A click on a column name sorts by it.</span>'


def render(fleet: Fleet, view: View) -> str:
    """Return the whole page; `view` does not matter to it."""
    totals = ", ".join(f"{fleet.count(health):,} {health}" for health in HEALTHS)
    if fleet.unread:
        totals += f", {fleet.unread:,} not judged"
    left = (
        f"; {count(len(fleet.left_out), 'file')} left out: no metric log" if fleet.left_out else ""
    )
    folder = _folder([row.log for row in fleet.rows])
    rows = [_row(row, folder) for row in fleet.rows]
    body = [
        f"<header><p>stabdiag {text(fleet.version)}</p></header>",
        '<main class="broad">',
        f"<h1>{count(len(fleet.rows), 'run')}</h1>",
        f'<p class="summary">{text(totals + left)}</p>',
        f'<p class="dim">Those that need a look come first.{_SORTS}{_named_from(folder)}</p>',
        table(_HEADER, rows, right=(3, 4), attributes={"id": "fleet"}, stacked=True),
        "</main>",
    ]
    return document("stabdiag fleet", body, styles=("page.css",), scripts=("sort.js",))


def _folder(logs: Sequence[str]) -> str:
    """The folder that all logs are in, with its slash; "" where there is none."""
    folders = (log.split("/")[:-1] for log in logs)
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    return "".join(f"{level[0]}/" for level in shared) if len(logs) > 1 else ""


def _named_from(folder: str) -> str:
    return f" Names are paths within <code>{text(folder)}</code>." if folder else ""


def _row(row: FleetRow, folder: str) -> list[str]:
    name = text(f"{row.log.removeprefix(folder)} {row.run}".strip())
    if row.status != "analysed":
        cells = [f'<span class="warn">{text(row.status)}</span>', "", "", "", "", "", ""]
        return [name, *cells, inline(prose(row.error))]
    tone = {"healthy": "good", "diverged": "bad"}.get(row.health, "warn")
    return [
        name,
        f'<span class="{tone}">{text(row.health)}</span>',
        text(cause_name(row.cause)),
        text(percent(row.probability or 0.0)),
        "" if row.onset_step is None else str(row.onset_step),
        text(row.severity),
        text(" ".join(row.findings)),
        text(", ".join(row.layers[:2])),
        text(row.summary),
    ]
