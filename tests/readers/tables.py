"""Writing logs for the tests, and looking at what was read of them."""

from __future__ import annotations

import math
from pathlib import Path

from stabdiag.model import LogTable
from stabdiag.readers import read_log

Cell = float | str | tuple[float | str, ...] | None


def read_text_as(folder: Path, name: str, content: str | bytes) -> LogTable:
    """Write `content` to a file of this name and read it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_log([path])


def cells(table: LogTable, name: str) -> list[Cell]:
    """Return a column as Python cells: None where not logged."""
    column = table.load([name])[name]
    if column.text is not None:
        return list(column.text)
    if column.lists is not None:
        return list(column.lists)
    return [
        float(value) if logged else None
        for value, logged in zip(column.value, column.logged, strict=True)
    ]


def spelled(values: list[Cell]) -> list[Cell]:
    """Replace NaN by a word, so that lists of cells can be compared."""
    return [_spelled(value) for value in values]


def _spelled(value: Cell) -> Cell:
    if isinstance(value, tuple):
        return tuple("<NaN>" if isinstance(v, float) and math.isnan(v) else v for v in value)
    return "<NaN>" if isinstance(value, float) and math.isnan(value) else value


def column(table: LogTable, name: str) -> list[Cell]:
    """Return a column with NaN spelled "<NaN>" and None where not logged."""
    return spelled(cells(table, name))


def said(table: LogTable) -> str:
    """Return all notes of a table as one text: kind, words, count, rows."""
    return "\n".join(f"{n.kind}: {n.text} x{n.count} at {list(n.rows)}" for n in table.notes)
