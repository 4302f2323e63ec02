"""Tables that are stored by column: only the columns that are asked for are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from stabdiag.errors import InputError
from stabdiag.model import I64, Column, ColumnKind, LogTable
from stabdiag.readers.arrays import whole_array
from stabdiag.readers.arrow_cells import leaf_cells
from stabdiag.readers.assembled import Assembled, assemble
from stabdiag.readers.csv_table import column_names
from stabdiag.readers.gathered import EXTENT, Gathered, first_looked_at
from stabdiag.readers.kinds import Cells
from stabdiag.readers.pieces import Piece, within
from stabdiag.readers.tally import Tally

# Project choice: a thousand times a long log. A file of a few bytes can claim any number of rows,
# and they are all looked at.
MAX_ROWS = 1_000_000_000
_TODO = "write the file again, or name another copy"


@dataclass(frozen=True)
class Columnar:
    """A stored table: its schema, its rows, and how to read some of its fields by position.

    `read` yields the fields' arrays, some consecutive rows at a time. `within` are the first row
    wanted and the one behind the last, where not all are.
    """

    name: str
    format: str
    schema: pa.Schema
    rows: int
    read: Callable[[Sequence[int]], Iterator[list[pa.Array]]]
    within: tuple[int, int] | None = None


def read_columnar(stored: Columnar) -> LogTable:
    """Make a log of a stored table; numbers stay where they are until they are loaded.

    Raises:
        InputError: no column, no row, or damaged data.
    """
    if not len(stored.schema):
        raise InputError(f"{stored.name}: a table without columns", "name a log with columns")
    if not stored.rows:
        raise InputError(f"{stored.name}: a table without rows", "name a log with at least one row")
    if stored.rows > MAX_ROWS:
        raise InputError(
            f"{stored.name}: {stored.rows} rows, more than {MAX_ROWS}", "take every tenth row of it"
        )
    tally = Tally()
    names = column_names(stored.schema.names, tally, 1)
    first, stop = stored.within or (0, stored.rows)
    gathered = _gathered(stored, names, first, stop) if stop - first > EXTENT.most_rows else None
    place = np.arange(stop - first) if gathered is None else gathered.place
    taken = None if stored.within is None and gathered is None else place + first
    leaves, kinds, as_logged = _leaves(stored, names, tally, taken)
    if not leaves:
        raise InputError(
            f"{stored.name}: no column of numbers or text", "name a log with columns of numbers"
        )

    def load(wanted: Sequence[str]) -> dict[str, Column]:
        return _assembled(stored, names, {n: leaves[n] for n in wanted}, taken).load(wanted)

    return LogTable(
        files=(stored.name,),
        format=stored.format,
        names=tuple(leaves),
        kinds=kinds,
        rows=place.size,
        load=load,
        line=place + first + 1,
        place=None if gathered is None else place,
        notes=(*tally.notes(), *(gathered.notes if gathered else ()), *as_logged.notes),
    )


def _gathered(stored: Columnar, names: Sequence[str], first: int, stop: int) -> Gathered:
    """Choose the rows that are looked at of very many."""
    numbers = [
        name
        for name, kind in zip(names, stored.schema.types, strict=True)
        if pt.is_floating(kind) or pt.is_integer(kind)
    ]
    field = {name: index for index, name in enumerate(names)}
    gathered = Gathered()
    with _damage_said(stored):
        pieces = _pieces(stored, names, {n: field[n] for n in first_looked_at(numbers)})
        for piece in within(pieces, first, stop):
            gathered.add(piece)
        gathered.end()
    return gathered


def _leaves(
    stored: Columnar, names: Sequence[str], tally: Tally, taken: I64 | None
) -> tuple[dict[str, int], dict[str, ColumnKind], Assembled]:
    """List the columns inside the fields and settle their kinds; text is read for that."""
    leaves: dict[str, int] = {}
    unsure: dict[str, int] = {}
    for index, (field, kind) in enumerate(zip(names, stored.schema.types, strict=True)):
        parts = leaf_cells(field, pa.nulls(0, kind))
        if not parts and not pt.is_struct(kind):
            tally.add("dropped", f"column {field!r} of type {str(kind)[:40]}: no metric", [], 1)
        for name, cells in parts.items():
            if name in leaves:
                tally.add("dropped", f"a second column {name!r}", [], 1)
                continue
            leaves[name] = index
            if not (isinstance(cells, pa.Array) and pt.is_float64(cells.type)):
                unsure[name] = leaves[name]
    settled = _assembled(stored, names, unsure, taken)
    kinds: dict[str, ColumnKind] = dict.fromkeys(leaves, "number")
    kinds |= settled.kinds
    return leaves, kinds, settled


def _assembled(
    stored: Columnar, names: Sequence[str], leaves: Mapping[str, int], taken: I64 | None
) -> Assembled:
    """Read the fields that hold these columns, and take out the columns at the rows in `taken`.

    Raises:
        InputError: the data is damaged.
    """
    if not leaves:
        return assemble(())
    with _damage_said(stored):
        return assemble(_pieces(stored, names, leaves, taken))


def _pieces(
    stored: Columnar, names: Sequence[str], leaves: Mapping[str, int], taken: I64 | None = None
) -> Iterator[Piece]:
    """Yield the columns in `leaves` of all rows, or of those in `taken`."""
    fields = sorted(set(leaves.values()))
    first = 0
    for arrays in stored.read(fields):
        stop = first + len(arrays[0])
        if taken is None:
            rows = np.arange(first, stop, dtype=np.int64)
        else:
            rows = taken[slice(*np.searchsorted(taken, (first, stop)))]
            arrays = [array.take(whole_array(rows - first)) for array in arrays]
        columns: dict[str, Cells] = {}
        for field, array in zip(fields, arrays, strict=True):
            columns |= {
                name: cells
                for name, cells in leaf_cells(names[field], array).items()
                if leaves.get(name) == field
            }
        yield Piece(rows.size, rows + 1, columns)
        first = stop
    if first != stored.rows:
        what = f"{stored.name}: damaged data: {first} of {stored.rows} rows are there"
        raise InputError(what, _TODO)


@contextmanager
def _damage_said(stored: Columnar) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as err:
        what = f"{stored.name}: damaged data: {str(err).splitlines()[0][:200]}"
        raise InputError(what, _TODO) from err


def in_memory(table: pa.Table, name: str, format_name: str) -> Columnar:
    """Treat a table in memory as a stored one."""

    def read(fields: Sequence[int]) -> Iterator[list[pa.Array]]:
        for batch in table.to_batches():
            yield [batch.column(index) for index in fields]

    return Columnar(name, format_name, table.schema, table.num_rows, read)
