"""Several runs stacked in one long table: the column that tells them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stabdiag.columns.names import words
from stabdiag.columns.records import ColumnRole
from stabdiag.columns.step_column import numbers_of
from stabdiag.model import F64, I64, Column, LogTable

# More different values than this are no runs but something that changes from row to row.
MAX_RUNS = 200
# Two runs train over the same steps: their ranges share this part of the shorter one. The ranges
# of one run's restarts (each with its own id) barely touch. Project choice.
MIN_OVERLAP = 0.5


def run_column_of(table: LogTable, roles: Sequence[ColumnRole], step: str | None) -> str | None:
    """The column whose values are runs, None where the table holds one run.

    A seed may name the run or each batch: it names runs only when it takes few values, each over
    many rows, and the values' steps overlap.
    """
    named = [role.column for role in roles if role.kind == "run"]
    named += [r.column for r in roles if r.kind == "batch_id" and words(r.column) == "seed"]
    if not named:
        return None
    wanted = [*named, step] if step else named
    loaded = table.load(wanted)
    number = numbers_of(loaded[step])[0] if step else None
    for column in named:
        labels, _ = labels_of(loaded[column])
        if _are_runs(labels, number):
            return column
    return None


def labels_of(column: Column) -> tuple[I64, tuple[str, ...]]:
    """Index of each row's label, shape [R] (-1 where missing), and the labels in file order."""
    names: list[str] = []
    if column.text is not None:
        seen: dict[str, int] = {}
        index = np.fromiter(
            (-1 if cell is None else seen.setdefault(cell, len(seen)) for cell in column.text),
            dtype=np.int64,
            count=len(column.text),
        )
        return index, tuple(seen)
    index = np.full(column.value.size, -1, dtype=np.int64)
    usable = column.logged & np.isfinite(column.value)
    values, first, inverse = np.unique(column.value[usable], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    index[usable] = rank[inverse]
    names = [f"{value:g}" for value in values[order]]
    return index, tuple(names)


def _are_runs(labels: I64, step: F64 | None) -> bool:
    count = int(labels.max(initial=-1)) + 1
    if not 2 <= count <= MAX_RUNS or np.count_nonzero(labels >= 0) < 2 * count:
        return False
    if step is None:
        return True
    usable = (labels >= 0) & np.isfinite(step)
    low = np.full(count, np.inf)
    high = np.full(count, -np.inf)
    np.minimum.at(low, labels[usable], step[usable])
    np.maximum.at(high, labels[usable], step[usable])
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    shared = np.minimum(high[1:], high[:-1]) - low[1:]
    shorter = np.minimum(high[1:] - low[1:], high[:-1] - low[:-1])
    return bool(np.any(shared > MIN_OVERLAP * np.maximum(shorter, 0.5)))
