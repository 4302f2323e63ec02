"""A Run from a table and the roles of its columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stabdiag.columns import ColumnPlan, ColumnRole
from stabdiag.errors import UsageError
from stabdiag.model import I64, LAYER_METRICS, LayerBlock, LogTable, Mask, Note, Run, Series
from stabdiag.runs.batches import batch_table
from stabdiag.runs.blocks import BlockSource, layer_blocks
from stabdiag.runs.find import MOST_LINES, Part, find_runs
from stabdiag.runs.hidden import Hidden, TrainRows, hidden_nan, is_unfailing
from stabdiag.runs.selection import chosen_run
from stabdiag.runs.series import Timeline, build_series, segments_of, timeline, within


def build_run(
    table: LogTable,
    plan: ColumnPlan,
    run: str | None = None,
    first_step: int | None = None,
    last_step: int | None = None,
) -> Run:
    """Build the run that a table holds.

    Args:
        table: what a reader returned.
        plan: the roles of its columns.
        run: name or 1-based number, where there are several.
        first_step: leave out what is before this step.
        last_step: leave out what is after this step.

    Raises:
        ManyRunsError: several runs, none evident and none named.
        UsageError: no such run, or no step in the range.
    """
    parts = find_runs(table, plan)
    part, said = chosen_run(table, parts, run)
    train = part.kinds.train[part.take]
    line = within(timeline(part.rows, part.step, part.segment, train), first_step, last_step)
    # a cell that could not be read is not a NaN that the loop wrote
    unread = [r for n in table.notes if n.kind == "dropped" for r in n.rows]
    whole = train & ~np.isin(table.line[part.rows], unread)
    hidden = hidden_nan(_train_rows(plan, part, whole))
    if line.row.size and not line.kept.any():
        raise _nothing_in_range(table, line, first_step, last_step)
    segments, segment = segments_of(line, train)
    series, abandoned, doubled = _series(part, line, segment, hidden)
    layers = _layers(plan, part)
    notes = (*part.loaded.notes, *part.notes, *said, *doubled, *_notes(table, part, hidden))
    source = BlockSource(table, line, part.take, train, hidden.trouble)

    def blocks(metric: str) -> Iterator[LayerBlock]:
        return layer_blocks(source, layers.get(metric, ()))

    return Run(
        name=part.name,
        files=table.files,
        format=table.format,
        rows=int(np.count_nonzero(line.kept)),
        axis=plan.axis,
        series=series,
        abandoned=abandoned,
        segments=segments,
        layers={
            metric: tuple(role.layer or "" for role in roles) for metric, roles in layers.items()
        },
        layer_blocks=blocks,
        batch=batch_table(plan, part.loaded, line),
        notes=(*table.notes, *plan.notes, *notes),
        facts=table.facts,
        siblings=tuple(other.name for other in parts) if len(parts) > 1 else (),
        rows_left_out=table.rows_left_out,
        weight=1.0 + table.rows_left_out / max(1, table.rows),
    )


def _train_rows(plan: ColumnPlan, part: Part, train: Mask) -> TrainRows:
    loaded = part.loaded
    present = {
        name: cells.logged[part.take]
        for name, cells in loaded.series.items()
        if is_unfailing(name, cells.role)
    }
    for role in plan.roles:
        if role.kind == "batch_id" and role.column in loaded.columns:
            present[role.column] = loaded.columns[role.column].logged[part.take]
    return TrainRows(
        step=part.step,
        segment=part.segment,
        train=train,
        value={name: cells.value[part.take] for name, cells in loaded.series.items()},
        logged={name: cells.logged[part.take] for name, cells in loaded.series.items()},
        present=present,
    )


def _nothing_in_range(
    table: LogTable, line: Timeline, first_step: int | None, last_step: int | None
) -> UsageError:
    low = "" if first_step is None else first_step
    high = "" if last_step is None else last_step
    return UsageError(
        f"{', '.join(table.files[:3])} has no row in the steps {low}:{high}",
        f"its steps are {int(line.step.min())} to {int(line.step.max())}",
    )


def _series(
    part: Part, line: Timeline, segment: I64, hidden: Hidden
) -> tuple[dict[str, Series], dict[str, Series], tuple[Note, ...]]:
    series: dict[str, Series] = {}
    abandoned: dict[str, Series] = {}
    differing = 0
    nothing = np.zeros(segment.size, dtype=np.bool_)
    for name, cells in part.loaded.series.items():
        inferred = hidden.silent.get(name, nothing)
        if name == "loss":
            inferred = inferred | hidden.zeros
        built = build_series(
            name,
            cells.column,
            line,
            segment,
            cells.value[part.take],
            cells.logged[part.take],
            inferred,
        )
        if built.series.points or built.abandoned is not None:
            series[name] = built.series
        if built.abandoned is not None:
            abandoned[name] = built.abandoned
        if name in ("loss", "grad_norm"):
            differing = max(differing, built.differing)
    if not differing:
        return series, abandoned, ()
    text = "steps are written twice with different values: the last one counts"
    return series, abandoned, (Note("repaired", text, differing),)


def _layers(plan: ColumnPlan, part: Part) -> dict[str, tuple[ColumnRole, ...]]:
    layers: dict[str, tuple[ColumnRole, ...]] = {}
    runs = (None, part.name) if plan.wide_runs else (None,)
    for metric in LAYER_METRICS:
        roles = tuple(
            r for r in plan.roles if r.kind == "layer" and r.name == metric and r.run in runs
        )
        if roles:
            layers[metric] = roles
    return layers


def _notes(table: LogTable, part: Part, hidden: Hidden) -> tuple[Note, ...]:
    notes = []
    if hidden.zeros.any():
        text = "a loss of 0.0 beside a NaN gradient norm is a NaN that the trainer filtered"
        notes.append(_note(table, part, "repaired", text, hidden.zeros))
    for name, mask in hidden.silent.items():
        text = f"{name} is missing in training rows where it is always logged: read as NaN"
        notes.append(_note(table, part, "guessed", text, mask))
    return tuple(notes)


def _note(table: LogTable, part: Part, kind: str, text: str, mask: Mask) -> Note:
    at = np.flatnonzero(mask)
    lines = tuple(int(line) for line in table.line[part.rows[at[:MOST_LINES]]])
    return Note("repaired" if kind == "repaired" else "guessed", text, int(at.size), lines)
