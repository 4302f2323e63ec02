"""From pieces of a log, read one after another, to one table whose columns are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.model import I64, Column, ColumnKind, Note
from stabdiag.readers.arrays import float_values, valid_mask
from stabdiag.readers.cells import Decimal
from stabdiag.readers.gathered import Gathered
from stabdiag.readers.kinds import (
    Part,
    Stray,
    lists_of,
    numbers_of,
    settled,
    whole_of,
)
from stabdiag.readers.pieces import Piece, within


@dataclass(frozen=True)
class Assembled:
    """The rows of a log: what a LogTable needs from its pieces."""

    names: tuple[str, ...]
    kinds: dict[str, ColumnKind]
    rows: int
    line: I64
    load: Callable[[Sequence[str]], dict[str, Column]]
    notes: tuple[Note, ...]
    place: I64 | None = None


def assemble(
    pieces: Iterable[Piece],
    decimal: Decimal = ".",
    *,
    rows: tuple[int, int] | None = None,
    begun: Gathered | None = None,
) -> Assembled:
    """Join pieces to one table: columns united in order of appearance, kinds settled over all rows.

    A column with text in some cells is a column of numbers when more of its cells are numbers: a
    stray word must not hide a loss. Those words are then not logged, and said in the notes. With
    `rows`, only the rows from one to before another are taken. The pieces follow what is in
    `begun`, which stays as it is.
    """
    gathered = Gathered(decimal=decimal) if begun is None else begun.fork()
    for piece in pieces if rows is None else within(pieces, *rows):
        gathered.add(piece)
    gathered.end()
    parts, size, line = gathered.parts, gathered.rows, gathered.line
    kinds: dict[str, ColumnKind] = {}
    notes = list(gathered.notes)
    for name in parts:
        kinds[name], parts[name], stray = settled(parts[name], decimal)
        if stray.count:
            notes.append(_stray_note(name, stray, line))

    def load(names: Sequence[str]) -> dict[str, Column]:
        # `gathered` itself: what it holds counts as held while columns can be loaded
        return {name: _column(gathered.parts[name], kinds[name], size) for name in names}

    place = gathered.place if gathered.thinned else None
    return Assembled(tuple(parts), kinds, size, line, load, tuple(notes), place)


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
