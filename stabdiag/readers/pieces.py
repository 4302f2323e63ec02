"""From pieces of a log, read one after another, to one table whose columns are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from stabdiag.model import I64, Column, ColumnKind, Note
from stabdiag.readers.arrays import as_float64, float_values, is_rounded, valid_mask
from stabdiag.readers.cells import Decimal
from stabdiag.readers.kinds import (
    Cells,
    Part,
    Stray,
    is_text,
    lists_of,
    numbers_of,
    settled,
    whole_of,
)
from stabdiag.readers.lists import MixedLists, is_list
from stabdiag.readers.spill import Spill


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a log.

    `columns` holds Arrow arrays: numbers (null: missing), text (the cells as written), lists of
    numbers or text. An array has shape [rows], or, for a column named in `at`, the shape of
    `at[name]`: the 0-based rows of this piece that have a cell. `line` is the 1-based line of each
    row in its file.
    """

    rows: int
    line: I64
    columns: Mapping[str, pa.Array | MixedLists]
    at: Mapping[str, I64] = field(default_factory=dict)


@dataclass(frozen=True)
class Assembled:
    """All rows of a log: what a LogTable needs from its pieces."""

    names: tuple[str, ...]
    kinds: dict[str, ColumnKind]
    rows: int
    line: I64
    load: Callable[[Sequence[str]], dict[str, Column]]
    notes: tuple[Note, ...]


def assemble(pieces: Iterable[Piece], decimal: Decimal = ".") -> Assembled:
    """Join pieces to one table: columns united in order of appearance, kinds settled over all rows.

    A column with text in some cells is a column of numbers when more of its cells are numbers: a
    stray word must not hide a loss. Those words are then not logged, and said in the notes.
    """
    parts: dict[str, list[Part]] = {}
    lines: list[I64] = []
    rows = 0
    spill = Spill()
    for piece in pieces:
        for name, cells in piece.columns.items():
            at = piece.at.get(name)
            where = slice(rows, rows + piece.rows) if at is None else at + rows
            parts.setdefault(name, []).append(Part(where, _kept(cells, spill)))
        lines.append(piece.line)
        rows += piece.rows
    line = np.concatenate(lines) if lines else np.zeros(0, dtype=np.int64)
    kinds: dict[str, ColumnKind] = {}
    notes: list[Note] = []
    for name in parts:
        kinds[name], parts[name], stray = settled(parts[name], decimal)
        if stray.count:
            notes.append(_stray_note(name, stray, line))

    def load(names: Sequence[str]) -> dict[str, Column]:
        return {name: _column(parts[name], kinds[name], rows) for name in names}

    return Assembled(tuple(parts), kinds, rows, line, load, tuple(notes))


def _kept(cells: Cells, spill: Spill) -> Cells:
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if is_text(cells) or is_list(cells) or is_rounded(cells):
        return cells
    if pt.is_boolean(cells.type):
        cells = cells.cast(pa.uint8())
    number = pt.is_integer(cells.type) or pt.is_floating(cells.type)
    return spill.keep(as_float64(cells) if number else cells.cast(pa.float64(), safe=False))


def _stray_note(name: str, stray: Stray, line: I64) -> Note:
    text = f"column {name!r}: {stray.example!r} is no number and counts as not logged"
    return Note("dropped", text, stray.count, tuple(int(line[row]) for row in stray.rows))


def _number_column(parts: Sequence[Part], rows: int) -> Column:
    if sum(len(part.cells) for part in parts) == rows:  # no row without a cell: nothing to prefill
        value, logged = np.empty(rows), np.empty(rows, dtype=np.bool_)
    else:
        value, logged = np.full(rows, np.nan), np.zeros(rows, dtype=np.bool_)
    for part in parts:
        cells = numbers_of(part)
        value[part.rows] = float_values(cells)
        logged[part.rows] = True if cells.null_count == 0 else valid_mask(cells)
    return Column("number", value, logged, whole=whole_of(parts, rows))


def _column(parts: Sequence[Part], kind: ColumnKind, rows: int) -> Column:
    if kind == "number":
        return _number_column(parts, rows)
    value = np.full(rows, np.nan)
    held = np.full(rows, None, dtype=object)
    for part in parts:
        filled = np.empty(len(part.cells), dtype=object)
        for index, cell in enumerate(lists_of(part) if kind == "list" else part.cells.to_pylist()):
            filled[index] = cell  # one by one: numpy takes a list of equal tuples for a matrix
        held[part.rows] = filled
    logged = np.array([cell is not None for cell in held], dtype=np.bool_)
    if kind == "list":
        return Column("list", value, logged, lists=tuple(held))
    return Column("text", value, logged, text=tuple(held))
