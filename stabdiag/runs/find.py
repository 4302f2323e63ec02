"""The runs of a table: stacked under a run column, side by side in a chart export, or in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from stabdiag.columns import ColumnPlan
from stabdiag.columns.run_column import labels_of
from stabdiag.model import F64, I64, LogTable, Note
from stabdiag.runs.cells import Loaded, counter, load_cells
from stabdiag.runs.order import Ordered, Rows, ordered
from stabdiag.runs.rows import RowKinds, row_kinds

# Lines that a note names, at most.
MOST_LINES = 20


@dataclass(frozen=True)
class Part:
    """One run's rows in their order, shape [P] each, into the table `rows` points at.

    `points` counts the rows with a training measurement (any logged row in a chart export).
    `loaded` are the cells that the run was found from, for all rows of the table; `take` picks the
    run's rows of them, without a copy where they are all of the table's rows in their order.
    """

    name: str
    rows: I64
    step: I64
    segment: I64
    kinds: RowKinds
    points: int
    notes: tuple[Note, ...]
    loaded: Loaded
    take: I64 | slice


def find_runs(table: LogTable, plan: ColumnPlan) -> tuple[Part, ...]:
    """Every run in the table, in file order. Runs of a chart export are read one by one."""
    if plan.wide_runs:
        return tuple(_wide(table, plan, run) for run in plan.wide_runs)
    loaded = load_cells(table, plan)
    kinds = row_kinds(table, loaded)
    found: list[Part] = []
    for label, rows in _groups(table, plan, loaded):
        order = ordered(_rows(table, plan, loaded, kinds, rows))
        found += _parts(table, loaded, kinds, label, rows, order)
    if len(found) == 1 and not plan.run_column:
        return (replace(found[0], name=PurePath(table.files[0]).stem if table.files else "run"),)
    if plan.run_column and len({part.name for part in found}) == len(found):
        return tuple(found)
    return tuple(
        replace(part, name=f"{part.name} {index}") for index, part in enumerate(found, start=1)
    )


def _groups(table: LogTable, plan: ColumnPlan, loaded: Loaded) -> list[tuple[str, I64]]:
    if plan.run_column is None:
        return [("run", np.arange(table.rows, dtype=np.int64))]
    label, names = labels_of(loaded.columns[plan.run_column])
    return [(name, np.flatnonzero(label == index)) for index, name in enumerate(names)]


def _rows(table: LogTable, plan: ColumnPlan, loaded: Loaded, kinds: RowKinds, rows: I64) -> Rows:
    counted = counter(loaded.columns, plan.step)
    if counted is None:
        step = _counted(table)
    else:
        value, usable = counted
        step = np.where(usable, value, np.nan)
    own = table.counted_step or plan.step is None
    told = loaded.columns[plan.restart_column] if plan.restart_column else None
    return Rows(
        step=step[rows],
        train=kinds.train[rows],
        loss=_values(loaded, "loss", rows),
        epoch=_values(loaded, "epoch", rows),
        counted=own,
        segment=None if told is None else told.value[rows].astype(np.int64),
        metrics=tuple(
            cells.logged[rows]
            for cells in loaded.series.values()
            if cells.role.kind in ("metric", "other", "batch_statistic")
        ),
    )


def _counted(table: LogTable) -> F64:
    place = np.arange(table.rows) if table.place is None else table.place
    return place.astype(np.float64)


def _values(loaded: Loaded, name: str, rows: I64) -> F64:
    cells = loaded.series.get(name)
    return np.full(rows.size, np.nan) if cells is None else cells.value[rows]


def _parts(
    table: LogTable, loaded: Loaded, kinds: RowKinds, name: str, rows: I64, order: Ordered
) -> list[Part]:
    parts = []
    said = tuple(
        Note(
            said.kind,
            said.text,
            int(said.rows.size),
            tuple(table.line[rows[said.rows[:MOST_LINES]]].tolist()),
        )
        for said in order.said
    )
    if order.united:
        # No row holds all metrics: what is missing in one says nothing.
        kinds = RowKinds(kinds.loss, np.zeros_like(kinds.train))
    for run in range(int(order.run.max(initial=0)) + 1):
        own = order.run == run
        of_table = rows[order.rows[own]]
        take = _taking(of_table, table.rows)
        points = int(np.count_nonzero(kinds.loss[take]))
        step, segment = order.step[own], order.segment[own]
        parts.append(Part(name, of_table, step, segment, kinds, points, said, loaded, take))
    return parts


def _taking(rows: I64, size: int) -> I64 | slice:
    in_order = rows.size == size and bool(np.all(rows[1:] > rows[:-1]))
    return slice(None) if in_order else rows


def _wide(table: LogTable, plan: ColumnPlan, run: str) -> Part:
    """A run of a chart export: the rows where one of its columns is logged."""
    loaded = load_cells(table, plan, run)
    logged = np.zeros(table.rows, dtype=np.bool_)
    for cells in loaded.series.values():
        if cells.role.run == run:
            logged |= cells.logged
    counted = counter(loaded.columns, plan.step)
    step = _counted(table) if counted is None else counted[0]
    logged &= np.isfinite(step)
    rows = np.flatnonzero(logged)
    rows = rows[np.argsort(step[rows], kind="stable")]
    zeros = np.zeros(rows.size, dtype=np.int64)
    kinds = RowKinds(logged, np.zeros_like(logged))
    own = step[rows].astype(np.int64)
    return Part(run, rows, own, zeros, kinds, int(rows.size), (), loaded, rows)
