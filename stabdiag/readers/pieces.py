"""What a reader makes of a log: its rows, some consecutive ones at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stabdiag.model import I64
from stabdiag.readers.lists import MixedLists


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


def within(pieces: Iterable[Piece], first: int, stop: int) -> Iterator[Piece]:
    """Yield the rows from `first` to before `stop`, counted over all pieces from 0."""
    start = 0
    for piece in pieces:
        a, b = max(first - start, 0), min(stop - start, piece.rows)
        if (a, b) == (0, piece.rows):
            yield piece
        elif a < b:
            yield _cut(piece, a, b)
        start += piece.rows
        if start >= stop:
            return


def _cut(piece: Piece, a: int, b: int) -> Piece:
    columns: dict[str, pa.Array | MixedLists] = {}
    at: dict[str, I64] = {}
    for name, cells in piece.columns.items():
        low, high = a, b
        if name in piece.at:
            low, high = (int(i) for i in np.searchsorted(piece.at[name], (a, b)))
            at[name] = piece.at[name][low:high] - a
        part = slice(low, high)
        columns[name] = (
            MixedLists(cells.cells[part]) if isinstance(cells, MixedLists) else cells[part]
        )
    return Piece(b - a, piece.line[a:b], columns, at)
