"""What the log says of each step's data: batch ids and batch statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stabdiag.columns import ColumnPlan
from stabdiag.model import F64, I64, BatchTable, Column
from stabdiag.runs.cells import Loaded
from stabdiag.runs.series import Timeline


class _Ids(Mapping[str, tuple[str | None, ...]]):
    """Index columns as text, written out when they are asked for: few questions need them."""

    def __init__(self, columns: Mapping[str, Column], rows: I64) -> None:
        self._columns = columns
        self._rows = rows
        self._text: dict[str, tuple[str | None, ...]] = {}

    def __getitem__(self, name: str) -> tuple[str | None, ...]:
        if name not in self._text:
            self._text[name] = _as_text(self._columns[name], self._rows)
        return self._text[name]

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
    return BatchTable(step[last], rows, _Ids(ids, rows), values)


def _as_text(column: Column, rows: I64) -> tuple[str | None, ...]:
    if column.lists is not None:
        return tuple(_list_text(column.lists[row]) for row in rows.tolist())
    if column.text is not None:
        return tuple(column.text[row] for row in rows.tolist())
    value, logged = column.value[rows], column.logged[rows]
    return tuple(
        _number_text(v) if there else None
        for v, there in zip(value.tolist(), logged.tolist(), strict=True)
    )


def _list_text(cells: Sequence[float | str] | None) -> str | None:
    if cells is None:
        return None
    return " ".join(c if isinstance(c, str) else _number_text(float(c)) for c in cells)


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
