"""Tables that are stored by column: only the columns that are asked for are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from stabdiag.errors import InputError
from stabdiag.model import Column, ColumnKind, LogTable
from stabdiag.readers.arrow_cells import leaf_cells
from stabdiag.readers.csv_table import column_names
from stabdiag.readers.kinds import Cells
from stabdiag.readers.pieces import Assembled, Piece, assemble
from stabdiag.readers.tally import Tally

# Project choice: a thousand times a long log, and still less than a GB for one column. A file of a
# few bytes can claim any number of rows.
MAX_ROWS = 100_000_000


@dataclass(frozen=True)
class Columnar:
    """A stored table: its schema, its rows, and how to read some of its fields by position.

    `read` yields the fields' arrays, some consecutive rows at a time.
    """

    name: str
    format: str
    schema: pa.Schema
    rows: int
    read: Callable[[Sequence[int]], Iterator[list[pa.Array]]]


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
    leaves, kinds, as_logged = _leaves(stored, names, tally)
    if not leaves:
        raise InputError(
            f"{stored.name}: no column of numbers or text", "name a log with columns of numbers"
        )

    def load(wanted: Sequence[str]) -> dict[str, Column]:
        return _assembled(stored, names, {name: leaves[name] for name in wanted}).load(wanted)

    return LogTable(
        files=(stored.name,),
        format=stored.format,
        names=tuple(leaves),
        kinds=kinds,
        rows=stored.rows,
        load=load,
        line=np.arange(1, stored.rows + 1, dtype=np.int64),
        notes=(*tally.notes(), *as_logged.notes),
    )


def _leaves(
    stored: Columnar, names: Sequence[str], tally: Tally
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
    settled = _assembled(stored, names, unsure)
    kinds: dict[str, ColumnKind] = dict.fromkeys(leaves, "number")
    kinds |= settled.kinds
    return leaves, kinds, settled


def _assembled(stored: Columnar, names: Sequence[str], leaves: Mapping[str, int]) -> Assembled:
    """Read the fields that hold these columns, and take out the columns."""
    fields = sorted(set(leaves.values()))

    def pieces() -> Iterator[Piece]:
        first = 1
        for arrays in stored.read(fields):
            columns: dict[str, Cells] = {}
            for index, array in zip(fields, arrays, strict=True):
                columns |= {
                    name: cells
                    for name, cells in leaf_cells(names[index], array).items()
                    if leaves.get(name) == index
                }
            rows = len(arrays[0])
            yield Piece(rows, np.arange(first, first + rows, dtype=np.int64), columns)
            first += rows

    if not fields:
        return assemble(())
    todo = "write the file again, or name another copy"
    try:
        assembled = assemble(pieces())
    except (pa.ArrowException, OSError) as err:
        what = f"{stored.name}: damaged data: {str(err).splitlines()[0][:200]}"
        raise InputError(what, todo) from err
    if assembled.rows != stored.rows:
        what = f"{stored.name}: damaged data: {assembled.rows} of {stored.rows} rows are there"
        raise InputError(what, todo)
    return assembled


def in_memory(table: pa.Table, name: str, format_name: str) -> Columnar:
    """Treat a table in memory as a stored one."""

    def read(fields: Sequence[int]) -> Iterator[list[pa.Array]]:
        for batch in table.to_batches():
            yield [batch.column(index) for index in fields]

    return Columnar(name, format_name, table.schema, table.num_rows, read)
