"""The page of `columns`: what each column was read as and why, the runs, the overrides."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stabdiag import __version__
from stabdiag.columns import ColumnLine, ColumnPlan
from stabdiag.model import LogTable
from stabdiag.reporters.blocks import (
    Blank,
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
from stabdiag.reporters.numbers import count, number, strict_json
from stabdiag.runs import RunSummary

IGNORED = "ignored"  # what `describe` reads a column as that is no series
_SHOWN_IGNORED = 6
_SHOWN_RUNS = 20


def columns_page(
    table: LogTable, plan: ColumnPlan, lines: Sequence[ColumnLine], runs: Sequence[RunSummary]
) -> tuple[Block, ...]:
    """Return the page as blocks: what numbers the rows, each column, what was left out, runs."""
    files = ", ".join(table.files)
    facts = f"{table.format}, {count(table.rows, 'row')}, {count(len(table.names), 'column')}"
    return (
        Paragraph(words(f"{files}  ", Span(facts, "dim", whole=True))),
        Blank(),
        Labelled(
            (
                (words(Span("format", "dim")), words(table.detection or table.format)),
                (words(Span("steps", "dim")), _step(table, plan)),
            )
        ),
        *_read(lines),
        *_left_out(lines),
        *_notes(table, plan),
        *_runs(runs),
        Heading("To say otherwise"),
        _overrides(),
    )


def columns_json(table: LogTable, plan: ColumnPlan, runs: Sequence[RunSummary]) -> str:
    """Return the same as JSON, every column with its role."""
    document = {
        "schema_version": "1",
        "tool": {"name": "stabdiag", "version": __version__},
        "part": "columns",
        "files": table.files,
        "format": table.format,
        "detection": table.detection,
        "rows": table.rows,
        "step_column": plan.step,
        "axis": plan.axis,
        "runs": runs,
        "columns": plan.roles,
        "notes": [*table.notes, *plan.notes],
    }
    return json.dumps(strict_json(document), indent=2, allow_nan=False) + "\n"


def _step(table: LogTable, plan: ColumnPlan) -> Words:
    if plan.step is not None:
        return words("column ", Span(plan.step, "strong"), f" counts {plan.axis}s")
    if table.counted_step:
        return words("this format has no step; its rows are counted")
    return words(f"no column numbers the rows; rows are counted as {plan.axis}s")


def _read(lines: Sequence[ColumnLine]) -> tuple[Block, ...]:
    rows = tuple(
        (
            words(line.column),
            words(Span(line.read_as, "strong")),
            words(number(line.points)),
            words(number(line.cadence)),
            prose(line.why),
        )
        for line in lines
        if line.read_as != IGNORED
    )
    names = ("column", "read as", "points", "every", "why")
    return Heading("Columns"), Table(names, rows, right=(2, 3), narrowest=14)


def _left_out(lines: Sequence[ColumnLine]) -> tuple[Block, ...]:
    """The columns that are no series, together by the reason."""
    by_reason: dict[str, list[str]] = {}
    for line in lines:
        if line.read_as == IGNORED:
            by_reason.setdefault(line.why, []).append(line.column)
    rows = tuple(
        (words(number(len(names))), words(f"{why}: ", Span(_few(names), "dim")))
        for why, names in by_reason.items()
    )
    return (Heading("Columns left out"), Labelled(rows)) if rows else ()


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_IGNORED} more" if len(names) > _SHOWN_IGNORED else ""
    return ", ".join(names[:_SHOWN_IGNORED]) + more


def _notes(table: LogTable, plan: ColumnPlan) -> tuple[Block, ...]:
    rows = tuple(
        (words(Span(note.kind, "warn")), words(note.text)) for note in (*table.notes, *plan.notes)
    )
    return (Heading("Notes on the log"), Labelled(rows)) if rows else ()


def _runs(runs: Sequence[RunSummary]) -> tuple[Block, ...]:
    if len(runs) < 2:
        return ()
    rows = tuple(
        (words(str(place)), words(run.name), words(_span(run)), words(number(run.rows)))
        for place, run in enumerate(runs[:_SHOWN_RUNS], start=1)
    )
    shown: tuple[Block, ...] = (Table(("run", "name", "steps", "rows"), rows, right=(3,)),)
    if len(runs) > _SHOWN_RUNS:
        more = f" and {len(runs) - _SHOWN_RUNS} more; `--format json` lists them all"
        shown += (Paragraph(prose(more, "dim")),)
    return (
        Heading("Runs in this log"),
        *shown,
        Paragraph(prose(" Choose one by its name or number: `--run 1`.")),
    )


def _span(run: RunSummary) -> str:
    return "-" if run.first_step is None else f"{run.first_step} to {run.last_step}"


def _overrides() -> Labelled:
    return Labelled(
        (
            (words(Span("a series", "dim")), prose("`--map loss=COLUMN`, once for each series")),
            (words(Span("the step", "dim")), prose("`--step-column COLUMN`")),
            (
                words(Span("for good", "dim")),
                prose("`map` and `step-column` in stabdiag.toml or [tool.stabdiag]"),
            ),
        )
    )
