"""The page of `columns`: every column with its role and the reason, the runs, the overrides."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stabdiag import __version__
from stabdiag.columns import ColumnPlan, ColumnRole
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
from stabdiag.reporters.numbers import count, strict_json

_SHOWN_LAYERS = 3  # columns of each per-layer metric; JSON has all
_SHOWN_RUNS = 20


def columns_page(table: LogTable, plan: ColumnPlan, runs: Sequence[str]) -> tuple[Block, ...]:
    """Return the page as blocks; the layers of one metric stand together."""
    files = ", ".join(table.files)
    facts = f"{table.format}, {count(table.rows, 'row')}, {count(len(table.names), 'column')}"
    return (
        Paragraph(words(files, Span(f"  {facts}", "dim"))),
        Blank(),
        Labelled(((words(Span("steps", "dim")), _step(table, plan)),)),
        Heading("Columns"),
        Table(("column", "read as", "why"), _role_rows(plan), narrowest=12),
        *_notes(table, plan),
        *_runs(runs),
        Heading("To say otherwise"),
        _overrides(),
    )


def columns_json(table: LogTable, plan: ColumnPlan, runs: Sequence[str]) -> str:
    """Return the same as JSON, every column with its role."""
    document = {
        "schema_version": "1",
        "tool": {"name": "stabdiag", "version": __version__},
        "part": "columns",
        "files": table.files,
        "format": table.format,
        "rows": table.rows,
        "step_column": plan.step,
        "axis": plan.axis,
        "runs": list(runs),
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


def _role_rows(plan: ColumnPlan) -> tuple[tuple[Words, ...], ...]:
    rows: list[tuple[Words, ...]] = []
    for role in plan.roles:
        if role.layer is None:
            rows.append((words(role.column), _read_as(role), prose(role.why)))
    return (*rows, *_layer_rows(plan))


def _read_as(role: ColumnRole) -> Words:
    if role.kind == "ignored":
        return words(Span("ignored", "dim"))
    name = role.name or role.kind.replace("_", " ")
    return words(Span(name, "plain" if role.kind == "other" else "strong"))


def _layer_rows(plan: ColumnPlan) -> list[tuple[Words, ...]]:
    """The first layers of each per-layer metric, and how many more there are."""
    rows: list[tuple[Words, ...]] = []
    metrics = dict.fromkeys(role.name for role in plan.roles if role.layer is not None)
    for metric in metrics:
        of_metric = [role for role in plan.roles if role.layer is not None and role.name == metric]
        for role in of_metric[:_SHOWN_LAYERS]:
            name = Span(f"{metric} of {role.layer}", "strong")
            rows.append((words(role.column), words(name), prose(role.why)))
        more = len(of_metric) - _SHOWN_LAYERS
        if more > 0:
            rows.append((words(Span(f"... {more} more", "dim")), words(f"{metric} of layers"), ()))
    return rows


def _notes(table: LogTable, plan: ColumnPlan) -> tuple[Block, ...]:
    rows = tuple(
        (words(Span(note.kind, "warn")), words(note.text)) for note in (*table.notes, *plan.notes)
    )
    return (Heading("Notes on the log"), Labelled(rows)) if rows else ()


def _runs(runs: Sequence[str]) -> tuple[Block, ...]:
    if len(runs) < 2:
        return ()
    rows = tuple((words(str(place)), words(name)) for place, name in enumerate(runs, start=1))
    shown: tuple[Block, ...] = (Labelled(rows[:_SHOWN_RUNS]),)
    if len(rows) > _SHOWN_RUNS:
        more = f" and {len(rows) - _SHOWN_RUNS} more; `--format json` lists them all"
        shown += (Paragraph(prose(more, "dim")),)
    return (
        Heading("Runs in this log"),
        *shown,
        Paragraph(prose(" Choose one by its name or number: `--run 1`.")),
    )


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
