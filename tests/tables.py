"""Tables made by hand, as a reader would return them, and the runs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stabdiag.columns import understand
from stabdiag.model import Column, ColumnKind, LogTable, Run
from stabdiag.runs import build_run

SHARED = Path(__file__).resolve().parents[1] / "../shared"
NAN = float("nan")
INF = float("inf")


def column_of(cells: Sequence[object]) -> Column:
    """A column from cells: None is missing, text and lists make columns of their kinds."""
    logged = np.array([cell is not None for cell in cells], dtype=np.bool_)
    value = np.full(len(cells), np.nan)
    kind = kind_of(cells)
    if kind == "text":
        text = tuple(None if cell is None else str(cell) for cell in cells)
        return Column("text", value, logged, text=text)
    if kind == "list":
        lists = tuple(tuple(cell) if isinstance(cell, list) else None for cell in cells)
        return Column("list", value, logged, lists=lists)
    for row, cell in enumerate(cells):
        if isinstance(cell, int | float):
            value[row] = cell
    return Column("number", value, logged)


def kind_of(cells: Sequence[object]) -> ColumnKind:
    if any(isinstance(cell, list) for cell in cells):
        return "list"
    return "text" if any(isinstance(cell, str) for cell in cells) else "number"


def table_of(
    cells: Mapping[str, Sequence[object]],
    *,
    format: str = "csv",
    row_kind: Sequence[str] | None = None,
    counted_step: bool = False,
) -> LogTable:
    """A table from columns of equal length; None is a missing cell, row 0 stands on line 2."""
    columns = {name: column_of(list(column)) for name, column in cells.items()}
    rows = max((column.value.size for column in columns.values()), default=0)
    return LogTable(
        files=("run.csv",),
        format=format,
        names=tuple(columns),
        kinds={name: column.kind for name, column in columns.items()},
        rows=rows,
        load=lambda names: {name: columns[name] for name in names},
        line=np.arange(2, rows + 2, dtype=np.int64),
        row_kind=None if row_kind is None else tuple(row_kind),
        counted_step=counted_step,
    )


def run_of(cells: Mapping[str, Sequence[object]], run: str | None = None) -> Run:
    """The run in a table made of these cells."""
    table = table_of(cells)
    return build_run(table, understand(table), run=run)


def values(run: Run, name: str) -> list[float]:
    return [float(value) for value in run.series[name].value]


def steps(run: Run, name: str) -> list[int]:
    return [int(step) for step in run.series[name].step]


def inferred(run: Run, name: str) -> list[int]:
    """Steps of the points of a series that were inferred."""
    series = run.series[name]
    return [int(step) for step in series.step[series.inferred]]


def falling(first: float, count: int) -> list[float]:
    """A loss that falls evenly from `first` to a third of it."""
    return [first * (1 - 2 * i / (3 * count)) for i in range(count)]
