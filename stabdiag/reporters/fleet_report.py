"""A fleet of runs as text, JSON, CSV or Parquet: one row a run, who needs a look first."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from stabdiag.fleet.rows import HEALTHS, Fleet, FleetRow
from stabdiag.reporters.blocks import (
    Block,
    Heading,
    Labelled,
    Paragraph,
    Span,
    Table,
    Words,
    prose,
    words,
)
from stabdiag.reporters.first_screen import HEALTH_TONES, cause_name
from stabdiag.reporters.html import fleet_page
from stabdiag.reporters.json_report import document
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.numbers import count, number, percent, strict_json
from stabdiag.reporters.untrusted import not_a_formula, printable
from stabdiag.reporters.view import View

_SHOWN = 40  # rows of the page; the other formats have all
_SHOWN_ERRORS = 10
_COLUMNS = tuple(field.name for field in fields(FleetRow))


def text(fleet: Fleet, view: View) -> str:
    """Return the page: how many of each, then those that need a look."""
    judged = [row for row in fleet.rows if row.status == "analysed"]
    look = [row for row in judged if row.health != "healthy" or row.severity in _SERIOUS]
    broken = [row for row in fleet.rows if row.status != "analysed"]
    blocks: tuple[Block, ...] = (
        Paragraph(words(Span(f"stabdiag {fleet.version}", "dim"), "  fleet")),
        Labelled(_totals(fleet)),
    )
    if look:
        rows = tuple(map(_cells, look[:_SHOWN]))
        header = ("run", "health", "cause", "sure", "onset", "findings")
        blocks += (Heading("Look at these first"), Table(header, rows, right=(3, 4), narrowest=11))
        blocks += _more(len(look) - _SHOWN, "run")
        blocks += (Paragraph(words(" ", Span(_command(look[0]), "command"))),)
    if broken:
        errors = tuple((words(Span(row.status, "warn")), _error(row)) for row in broken)
        blocks += (Heading("Not judged"), Labelled(errors[:_SHOWN_ERRORS]))
        blocks += _more(len(broken) - _SHOWN_ERRORS, "log")
    return laid_out(blocks, view)


_SERIOUS = ("error", "warning")


def _totals(fleet: Fleet) -> tuple[tuple[Words, Words], ...]:
    named = [(health, f"{fleet.count(health):,}") for health in HEALTHS]
    rows = [
        (words(Span(health.upper(), HEALTH_TONES[health])), words(many))  # type: ignore[index]
        for health, many in named
    ]
    if fleet.unread:
        rows.append((words(Span("NOT JUDGED", "warn")), words(f"{fleet.unread:,}")))
    beside = []
    if fleet.known:
        beside.append(f"{count(fleet.known, 'log')} known from an earlier survey, not read again")
    if fleet.left_out:
        beside.append(f"{count(len(fleet.left_out), 'file')} left out: no metric log in them")
    return (*rows, *((words(), words(Span(line, "dim"))) for line in beside))


def _cells(row: FleetRow) -> tuple[Words, ...]:
    name = f"{row.log} {row.run}".strip()
    onset = "-" if row.onset_step is None else str(row.onset_step)
    return (
        words(Span(name, "strong")),
        words(Span(row.health, HEALTH_TONES[row.health])),  # type: ignore[index]
        words(cause_name(row.cause)),
        words(percent(row.probability or 0.0)),
        words(onset),
        words(", ".join(row.findings[:3]) + (", ..." if len(row.findings) > 3 else "")),
    )


def _error(row: FleetRow) -> Words:
    name = f"{row.log} {row.run}".strip()
    return prose(row.error if row.log in row.error else f"{name}: {row.error}")


def _command(row: FleetRow) -> str:
    run = f" --run {shlex.quote(row.run)}" if row.run else ""
    return f"`stabdiag analyze {shlex.quote(row.log)}{run}`"


def _more(left: int, noun: str) -> tuple[Block, ...]:
    if left <= 0:
        return ()
    return (Paragraph(prose(f" and {count(left, noun)} more; `--format csv` lists all", "dim")),)


def as_json(fleet: Fleet, view: View) -> str:
    """Return all rows as one strict JSON document (fleet.schema.json)."""
    body = {"runs": fleet.rows, "left_out": fleet.left_out, "known": fleet.known}
    return document(fleet.version, body)


def as_csv(fleet: Fleet, view: View) -> str:
    """Return all rows as CSV; no cell is a formula to a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in fleet.rows:
        cells = vars(row) | {"unchecked": "; ".join(row.unchecked)}
        writer.writerow([_cell(cells[name]) for name in _COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return number(value, digits=6)
    if isinstance(value, tuple):
        value = " ".join(value)
    return not_a_formula(printable(value)) if isinstance(value, str) else str(value)


def as_parquet(fleet: Fleet, view: View) -> bytes:
    """Return all rows as a Parquet file; lists stay lists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: Mapping[str, Any] = {
        **dict.fromkeys(_COLUMNS, pa.string()),
        "probability": pa.float64(),
        **dict.fromkeys(("onset_step", "rows", "last_step"), pa.int64()),
        **dict.fromkeys(("layers", "findings", "unchecked"), pa.list_(pa.string())),
    }
    columns = {
        name: pa.array([strict_json(getattr(row, name)) for row in fleet.rows], types[name])
        for name in _COLUMNS
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


FLEET_FORMATS: Mapping[str, Callable[[Fleet, View], str | bytes]] = {
    "text": text,
    "json": as_json,
    "csv": as_csv,
    "parquet": as_parquet,
    "html": fleet_page.render,
}
