"""The rows of a log while it is read: all of them, or of a very long one those looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy, deepcopy

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from stabdiag.model import F64, I64, Mask, Note
from stabdiag.readers.arrays import as_float64, float_values, is_rounded, valid_mask, whole_array
from stabdiag.readers.cells import NUMBER, Decimal, cell_numbers
from stabdiag.readers.kinds import Cells, Part, is_text
from stabdiag.readers.lists import MixedLists, is_list
from stabdiag.readers.pieces import Piece
from stabdiag.readers.selection import Extent, Selection
from stabdiag.readers.spill import Spill, Spilled

EXTENT = Extent()
_CHUNK = 4  # cells that are thinned at a time
_MOST_LOOKED_AT = 16  # columns in which jumps are looked for
_NUMBERED = re.compile(r"\d")  # a layer, more likely than not


class Gathered:
    """The rows that are held of the pieces added so far.

    `parts` are the cells of each column, `rows` the number of rows held and `seen` of those added.
    Once rows are left out, the rows held are settled ones, thinned already, and behind them the
    last ones, all of them.
    """

    def __init__(self, extent: Extent | None = None, decimal: Decimal = ".") -> None:
        """Hold what `extent` allows; EXTENT where none is given."""
        self.parts: dict[str, list[Part]] = {}
        self.rows = 0
        self.seen = 0
        self._extent = EXTENT if extent is None else extent
        self._decimal: Decimal = decimal
        self._spill = Spill()
        self._selection: Selection | None = None
        self._looked_at: list[str] = []
        self._every = 1
        self._settled = 0  # rows held that are thinned
        self._next = 0  # place in the log of the row behind them
        self._places: list[I64] = []  # of the settled rows
        self._lines: list[I64] = []  # of the settled rows
        self._last_lines: list[I64] = []

    def add(self, piece: Piece) -> None:
        """Add the rows that follow."""
        for name, cells in piece.columns.items():
            at = piece.at.get(name)
            if name in self.parts and not len(cells):
                continue
            where = slice(self.rows, self.rows + piece.rows) if at is None else at + self.rows
            kept = _as_numbers(cells)
            if self._selection is None:  # what is soon thinned is not written to a file before
                kept = _spilled(kept, self._spill)
            self.parts.setdefault(name, []).append(Part(where, kept))
        self._last_lines.append(piece.line)
        self.rows += piece.rows
        self.seen += piece.rows
        if self._selection is None and self.seen > self._extent.most_rows:
            self._selection = Selection(self._extent)
            self._looked_at = first_looked_at(self._number_columns())
        if self._selection is not None:
            self._thin(self._selection)

    def end(self) -> None:
        """Settle the last rows too; no piece may follow."""
        if self._selection is not None:
            while self._selection.seen < self.seen:
                self._look(self._selection)
            self._leave_out(self._selection, anew=True)
            pa.default_memory_pool().release_unused()  # as much again as is held

    def fork(self) -> Gathered:
        """Return another one with the same rows, to which others can be added."""
        other = copy(self)
        other.parts = {name: list(parts) for name, parts in self.parts.items()}
        other._places, other._lines = list(self._places), list(self._lines)
        other._last_lines = list(self._last_lines)
        other._selection, other._spill = deepcopy(self._selection), Spill()
        return other

    @property
    def line(self) -> I64:
        """The line of each row held in its file, shape [rows]."""
        return _in_one([*self._lines, *self._last_lines])

    @property
    def thinned(self) -> bool:
        """Whether rows are left out."""
        return self._selection is not None

    @property
    def place(self) -> I64:
        """Which row of the log, from 0, each row held is, shape [rows]."""
        return _in_one([*self._places, np.arange(self._next, self.seen)])

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said of the rows left out; nothing where none is."""
        if self._selection is None:
            return ()
        extent, every = self._extent, self._selection.every
        text = (
            f"of {self.seen:,} rows {self.rows:,} are looked at: the first and last"
            f" {extent.ends:,}, those around the largest jumps of each column, and"
            f" {extent.stretch:,} in a row out of every {extent.stretch * every:,};"
            " all of a stretch with --steps A:B"
        )
        return (Note("dropped", text, self.seen - self.rows),)

    def _number_columns(self) -> list[str]:
        rows, cell = self._extent.most_rows, self._extent.cell
        return [n for n, p in self.parts.items() if _has_number(p, rows, cell, self._decimal)]

    def _thin(self, selection: Selection) -> None:
        """Look at the cells that are complete, and leave rows out of all but the last ones."""
        while selection.seen + self._extent.cell <= self.seen:
            self._look(selection)
        anew = selection.every > self._every
        waiting = selection.seen - self._extent.ends - self._next
        if anew or waiting >= _CHUNK * self._extent.cell:
            self._leave_out(selection, anew=anew)

    def _look(self, selection: Selection) -> None:
        """Look at the next cell, or what there is of it."""
        first = self._settled + selection.seen - self._next
        stop = min(self.rows, first + self._extent.cell)
        columns = {
            name: _values(self.parts[name], first, stop, self._decimal) for name in self._looked_at
        }
        selection.look(columns, stop - first)

    def _leave_out(self, selection: Selection, *, anew: bool) -> None:
        """Keep what is selected of the rows behind the settled ones, or `anew` of all."""
        first = 0 if anew else self._settled
        behind = np.arange(self._next, self.seen)
        places = _in_one([*self._places, behind]) if anew else behind
        lines = _in_one([*(self._lines if anew else ()), *self._last_lines])
        kept = np.flatnonzero(selection.keeps(places))
        places, lines = places[kept], lines[kept]
        border = int(np.searchsorted(places, selection.seen - self._extent.ends))
        if anew:
            self._places, self._lines = [], []
            self._every, self._spill = selection.every, Spill()
        self._places.append(places[:border].copy())  # a view would hold what is left out
        self._lines.append(lines[:border].copy())
        self._last_lines = [lines[border:]]
        self._next = int(places[border])
        self._settled = first + border
        self.rows = first + kept.size
        for name, parts in self.parts.items():
            self.parts[name] = self._picked(parts, kept + first, first)

    def _picked(self, parts: Sequence[Part], kept: I64, first: int) -> list[Part]:
        """Leave those of the rows from `first` on that are in `kept`; never no part at all."""
        whole = _up_to(parts, first)
        picked = list(parts[:whole])
        for part in parts[whole:]:
            left = _left(part, kept, first)
            if len(left.cells) or not picked:
                settled = _bounds(left)[1] <= self._settled
                cells = _spilled(left.cells, self._spill) if settled else left.cells
                picked.append(Part(left.rows, cells))
        return picked


def _in_one(arrays: Sequence[I64]) -> I64:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)


def _as_numbers(cells: Cells) -> Cells:
    """Bring numbers and truth values to float64 where that rounds none."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if is_text(cells) or is_list(cells) or is_rounded(cells):
        return cells
    if pt.is_boolean(cells.type):
        cells = cells.cast(pa.uint8())
    number = pt.is_integer(cells.type) or pt.is_floating(cells.type)
    return as_float64(cells) if number else cells.cast(pa.float64(), safe=False)


def _spilled(cells: Cells, spill: Spill) -> Cells:
    return spill.keep(cells) if isinstance(cells, pa.Array) and pt.is_float64(cells.type) else cells


def first_looked_at(names: Sequence[str]) -> list[str]:
    """Choose the columns in which jumps are looked for among columns of numbers: no layers first."""
    return sorted(names, key=lambda name: bool(_NUMBERED.search(name)))[:_MOST_LOOKED_AT]


def _bounds(part: Part) -> tuple[int, int]:
    """Return the first row of a part and the one behind its last."""
    if isinstance(part.rows, slice):
        return part.rows.start, part.rows.stop
    return (int(part.rows[0]), int(part.rows[-1]) + 1) if part.rows.size else (0, 0)


def _up_to(parts: Sequence[Part], row: int) -> int:
    """Count the parts that end at `row` or before; there are thousands, and few behind."""
    count = len(parts)
    while count and _bounds(parts[count - 1])[1] > row:
        count -= 1
    return count


def _left(part: Part, kept: I64, first: int) -> Part:
    """Leave of a part the rows before `first` and those in `kept`, renumbered."""
    start, stop = _bounds(part)
    a, b = np.searchsorted(kept, [max(start, first), stop])
    if isinstance(part.rows, slice):
        before = max(0, first - start)
        begin = start if before else first + int(a)
        rows = slice(begin, begin + before + int(b - a))
        if b - a == stop - max(start, first):
            return Part(rows, part.cells)
        return Part(rows, _taken(part, np.append(np.arange(before), kept[a:b] - start)))
    at = np.searchsorted(kept, part.rows)
    there = kept[np.minimum(at, kept.size - 1)] == part.rows
    index = np.flatnonzero(there | (part.rows < first))
    rows_left = np.where(part.rows < first, part.rows, first + at)[index]
    return Part(rows_left, _taken(part, index))


def _taken(part: Part, index: I64) -> Cells:
    if isinstance(part.cells, MixedLists):
        return MixedLists(tuple(part.cells.cells[i] for i in index.tolist()))
    return _stored(part).take(whole_array(index))


def _values(parts: Sequence[Part], first: int, stop: int, decimal: Decimal) -> tuple[F64, Mask]:
    """Numbers of the rows from `first` to `stop` and where they are logged, [stop - first] each."""
    value = np.full(stop - first, np.nan)
    logged = np.zeros(stop - first, dtype=np.bool_)
    for part in parts[_up_to(parts, first) :]:
        start, end = _bounds(part)
        if start >= stop or is_list(part.cells):
            continue
        rows: slice | I64
        if isinstance(part.rows, slice):
            rows = slice(max(start, first) - first, min(end, stop) - first)
            cells = _stored(part)[max(first - start, 0) : stop - start]
        else:
            index = np.flatnonzero((part.rows >= first) & (part.rows < stop))
            rows, cells = part.rows[index] - first, _taken(part, index)
        value[rows], logged[rows] = _numbers(cells, decimal)
    return value, logged


def _has_number(parts: Sequence[Part], rows: int, cell: int, decimal: Decimal) -> bool:
    """Whether a column has a number in the first rows; one odd word makes text of a whole piece."""
    spans = ((first, min(first + cell, rows)) for first in range(0, rows, cell))
    return any(_values(parts, first, stop, decimal)[1].any() for first, stop in spans)


def _numbers(cells: pa.Array, decimal: Decimal) -> tuple[F64, Mask]:
    if is_text(cells):
        value, state = cell_numbers(cells, decimal)
        return value, state == NUMBER
    cells = as_float64(cells)
    return float_values(cells), valid_mask(cells)


def _stored(part: Part) -> pa.Array:
    return part.cells.cells() if isinstance(part.cells, Spilled) else part.cells
