"""What the log says of each step's data: batch ids and batch statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from stabdiag.columns import ColumnPlan
from stabdiag.model import EXACT, F64, I64, BatchTable, Column
from stabdiag.runs.cells import Loaded
from stabdiag.runs.series import Timeline

Parts = tuple[str, ...] | None  # the elements of one cell; None where missing
T = TypeVar("T")


class _OnDemand(Mapping[str, tuple[T, ...]]):
    """Index columns written out by `make` when they are asked for: few questions need them."""

    def __init__(
        self, columns: Mapping[str, Column], rows: I64, make: Callable[[Column, I64], tuple[T, ...]]
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._make = make
        self._made: dict[str, tuple[T, ...]] = {}

    def __getitem__(self, name: str) -> tuple[T, ...]:
        if name not in self._made:
            self._made[name] = self._make(self._columns[name], self._rows)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def batch_table(plan: ColumnPlan, loaded: Loaded, line: Timeline) -> BatchTable | None:
    """Ids and statistics of the rows that have any, one row a step; None where none are logged.

    Ids keep the names of their columns; statistics have their canonical name where there is one.
    """
    ids = {
        role.column: loaded.columns[role.column]
        for role in plan.roles
        if role.kind == "batch_id" and role.column in loaded.columns
    }
    statistics = {
        cells.role.name.removeprefix("other/"): cells
        for cells in loaded.series.values()
        if cells.role.kind == "batch_statistic"
    }
    logged = np.zeros(line.row.size, dtype=np.bool_)
    for mask in (*(c.logged for c in ids.values()), *(c.logged for c in statistics.values())):
        logged |= mask[line.row]
    at = np.flatnonzero(logged & line.alive & line.kept)
    if at.size == 0:
        return None
    at = at[np.argsort(line.step[at], kind="stable")]
    step = line.step[at]
    last = np.append(step[1:] != step[:-1], True)
    rows = line.row[at[last]]
    values: dict[str, F64] = {
        name: np.where(c.logged[rows], c.value[rows], np.nan) for name, c in statistics.items()
    }
    return BatchTable(
        step[last], rows, _OnDemand(ids, rows, _as_text), values, _OnDemand(ids, rows, cell_parts)
    )


def _as_text(column: Column, rows: I64) -> tuple[str | None, ...]:
    return tuple(None if cell is None else " ".join(cell) for cell in cell_parts(column, rows))


def cell_parts(column: Column, rows: I64) -> tuple[Parts, ...]:
    """The elements of each cell as text; a cell that is no list is one element."""
    if column.lists is not None:
        cells = (column.lists[row] for row in rows.tolist())
        return tuple(None if cell is None else _elements(cell) for cell in cells)
    if column.text is not None:
        words = (column.text[row] for row in rows.tolist())
        return tuple(None if word is None else (word,) for word in words)
    if column.whole is not None:
        whole = zip(column.whole[rows].tolist(), column.logged[rows].tolist(), strict=True)
        return tuple((str(n),) if there else None for n, there in whole)
    value, logged = column.value[rows].tolist(), column.logged[rows].tolist()
    return tuple(
        (_number_text(v),) if there else None for v, there in zip(value, logged, strict=True)
    )


def _elements(cells: Sequence[float | str]) -> tuple[str, ...]:
    return tuple(c if isinstance(c, str) else _number_text(float(c)) for c in cells)


def _number_text(value: float) -> str:
    """A whole number without a point; one that float64 has rounded is left to show it."""
    return str(int(value)) if value.is_integer() and abs(value) < EXACT else repr(value)
