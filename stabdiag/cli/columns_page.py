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
from stabdiag.reporters.numbers import count, number, strict_json
from stabdiag.runs import RunSummary

_SHOWN_LAYERS = 3  # columns of each per-layer metric; JSON has all
_SHOWN_IGNORED = 6
_SHOWN_RUNS = 20


def columns_page(
    table: LogTable, plan: ColumnPlan, runs: Sequence[RunSummary]
) -> tuple[Block, ...]:
    """Return the page as blocks; the layers of one metric stand together."""
    files = ", ".join(table.files)
    facts = f"{table.format}, {count(table.rows, 'row')}, {count(len(table.names), 'column')}"
    return (
        Paragraph(words(files, Span(f"  {facts}", "dim"))),
        Blank(),
        Labelled(
            (
                (words(Span("format", "dim")), words(table.detection or table.format)),
                (words(Span("steps", "dim")), _step(table, plan)),
            )
        ),
        *_table("Columns", _role_rows(plan)),
        *_table("Columns of layers", _layer_rows(plan)),
        *_ignored(plan),
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


def _table(title: str, rows: Sequence[tuple[Words, ...]]) -> tuple[Block, ...]:
    if not rows:
        return ()
    return Heading(title), Table(("column", "read as", "why"), tuple(rows), narrowest=14)


def _role_rows(plan: ColumnPlan) -> list[tuple[Words, ...]]:
    return [
        (words(role.column), _read_as(role), prose(role.why))
        for role in plan.roles
        if role.layer is None and role.kind != "ignored"
    ]


def _read_as(role: ColumnRole) -> Words:
    name = role.name or role.kind.replace("_", " ")
    return words(Span(name, "plain" if role.kind == "other" else "strong"))


def _ignored(plan: ColumnPlan) -> tuple[Block, ...]:
    """The columns that are no series, together by the reason."""
    by_reason: dict[str, list[str]] = {}
    for role in plan.roles:
        if role.kind == "ignored":
            by_reason.setdefault(role.why, []).append(role.column)
    rows = tuple(
        (words(number(len(names))), words(f"{why}: ", Span(_few(names), "dim")))
        for why, names in by_reason.items()
    )
    return (Heading("Columns left out"), Labelled(rows)) if rows else ()


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_IGNORED} more" if len(names) > _SHOWN_IGNORED else ""
    return ", ".join(names[:_SHOWN_IGNORED]) + more


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
