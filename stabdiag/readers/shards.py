"""Several logs of one run as one: rows in the given order, columns united."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stabdiag.model import EXACT, I64, Column, ColumnKind, LogTable, Note
from stabdiag.readers.arrays import float_array
from stabdiag.readers.cells import number_text
from stabdiag.readers.gathered import EXTENT, Gathered, first_looked_at
from stabdiag.readers.pieces import Piece


def joined(tables: Sequence[LogTable]) -> LogTable:
    """Join the shards of one run; a column that a shard does not have is missing in its rows.

    Where shards disagree about a column's kind, the kind of most rows counts; the cells of the
    others are brought to it or, where they are no numbers, counted as not logged. Of very many rows
    together those that matter are looked at.
    """
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    kinds, notes = _kinds(tables, names)

    gathered = _gathered(tables, kinds)
    left = None if gathered is None else gathered.place
    chosen = [None] * len(tables) if left is None else _split(left, tables)

    def load(wanted: Sequence[str]) -> dict[str, Column]:
        parts = []
        for table, rows in zip(tables, chosen, strict=True):
            columns = table.load([n for n in wanted if n in table.kinds])
            parts.append({name: _at(column, rows) for name, column in columns.items()})
        sizes = [t.rows if c is None else c.size for t, c in zip(tables, chosen, strict=True)]
        return {name: _stacked([p.get(name) for p in parts], sizes, kinds[name]) for name in wanted}

    facts: dict[str, str] = {}
    for table in reversed(tables):
        facts |= table.facts
    return LogTable(
        files=tuple(file for table in tables for file in table.files),
        format="+".join(dict.fromkeys(table.format for table in tables)),
        names=names,
        kinds=kinds,
        rows=sum(table.rows for table in tables) if left is None else left.size,
        load=load,
        line=_picked(np.concatenate([table.line for table in tables]), left),
        notes=(*_notes_of(tables, gathered), *notes),
        facts=facts,
        row_kind=_row_kinds(tables, left),
        place=_places(tables, left),
        counted_step=any(table.counted_step for table in tables),
        detection="; ".join(dict.fromkeys(table.detection for table in tables)),
    )


def _gathered(tables: Sequence[LogTable], kinds: Mapping[str, ColumnKind]) -> Gathered | None:
    """Choose the rows that are looked at of very many; None where all are."""
    if sum(table.rows for table in tables) <= EXTENT.most_rows:
        return None
    names = first_looked_at([name for name, kind in kinds.items() if kind == "number"])
    gathered = Gathered()
    for table in tables:
        columns = table.load([name for name in names if table.kinds.get(name) == "number"])
        cells = {name: float_array(c.value, c.logged) for name, c in columns.items()}
        gathered.add(Piece(table.rows, table.line, cells))
    gathered.end()
    return gathered


def _split(chosen: I64, tables: Sequence[LogTable]) -> list[I64 | None]:
    """Return the chosen rows of each table, counted in it."""
    start = np.cumsum([0, *(table.rows for table in tables)])
    ends = np.searchsorted(chosen, start)
    return [chosen[a:b] - s for a, b, s in zip(ends[:-1], ends[1:], start[:-1], strict=True)]


def _places(tables: Sequence[LogTable], chosen: I64 | None) -> I64 | None:
    """Return which row of all shards together each row is; None where none is left out."""
    if chosen is None and all(table.place is None for table in tables):
        return None
    places, start = [], 0
    for table in tables:
        own = np.arange(table.rows) if table.place is None else table.place
        places.append(own + start)
        start += table.rows + table.rows_left_out
    return _picked(np.concatenate(places), chosen)


def _picked(values: I64, rows: I64 | None) -> I64:
    return values if rows is None else values[rows]


def _at(column: Column, rows: I64 | None) -> Column:
    """Return the cells of a column in some rows."""
    if rows is None:
        return column
    index = rows.tolist() if column.text or column.lists else []
    return Column(
        column.kind,
        column.value[rows],
        column.logged[rows],
        text=column.text and tuple(column.text[i] for i in index),
        lists=column.lists and tuple(column.lists[i] for i in index),
        whole=None if column.whole is None else column.whole[rows],
    )


def _notes_of(tables: Sequence[LogTable], gathered: Gathered | None) -> list[Note]:
    notes = [replace(n, text=f"{t.files[0]}: {n.text}") for t in tables for n in t.notes]
    return notes if gathered is None else [*notes, *gathered.notes]


def _row_kinds(tables: Sequence[LogTable], chosen: I64 | None) -> tuple[str, ...] | None:
    if all(table.row_kind is None for table in tables):
        return None
    kinds = [kind for table in tables for kind in (table.row_kind or ("",) * table.rows)]
    return tuple(kinds if chosen is None else (kinds[row] for row in chosen.tolist()))


def _kinds(
    tables: Sequence[LogTable], names: Sequence[str]
) -> tuple[dict[str, ColumnKind], list[Note]]:
    kinds: dict[str, ColumnKind] = {}
    notes: list[Note] = []
    for name in names:
        holding = [table for table in tables if name in table.kinds]
        if len({table.kinds[name] for table in holding}) == 1:
            kinds[name] = holding[0].kinds[name]
            continue
        cells: dict[ColumnKind, int] = {}
        for table in holding:
            logged = int(np.count_nonzero(table.load([name])[name].logged))
            cells[table.kinds[name]] = cells.get(table.kinds[name], 0) + logged
        kinds[name] = max(cells, key=lambda kind: cells[kind])
        lost = sum(cells.values()) - cells[kinds[name]]
        if lost and kinds[name] != "text":
            text = (
                f"column {name!r} holds other than {kinds[name]}s in some files: not logged there"
            )
            notes.append(Note("dropped", text, lost))
    return kinds, notes


def _stacked(parts: Sequence[Column | None], sizes: Sequence[int], kind: ColumnKind) -> Column:
    columns = [
        _as_kind(part, kind) if part else _absent(size, kind)
        for part, size in zip(parts, sizes, strict=True)
    ]
    value = np.concatenate([c.value for c in columns])
    logged = np.concatenate([c.logged for c in columns])
    if kind == "text":
        return Column(kind, value, logged, text=tuple(t for c in columns for t in c.text or ()))
    if kind == "list":
        return Column(kind, value, logged, lists=tuple(x for c in columns for x in c.lists or ()))
    return Column(kind, value, logged, whole=_whole(columns))


def _whole(columns: Sequence[Column]) -> I64 | None:
    """The whole numbers themselves where a shard has them, and the others are rounded nowhere."""
    if all(c.whole is None for c in columns):
        return None
    parts = []
    for c in columns:
        value = np.where(c.logged, c.value, 0.0)
        if c.whole is None and not np.all((np.abs(value) < EXACT) & (value == np.floor(value))):
            return None
        parts.append(value.astype(np.int64) if c.whole is None else c.whole)
    return np.concatenate(parts)


def _as_kind(column: Column, kind: ColumnKind) -> Column:
    if column.kind == kind:
        return column
    if kind == "text" and column.kind == "number":
        text = tuple(
            number_text(float(v)) if ok else None
            for v, ok in zip(column.value, column.logged, strict=True)
        )
        return Column("text", np.full(len(text), np.nan), column.logged, text=text)
    if kind == "text":
        text = tuple(None if x is None else str(list(x)) for x in column.lists or ())
        return Column("text", column.value, column.logged, text=text)
    return _absent(len(column.logged), kind)


def _absent(rows: int, kind: ColumnKind) -> Column:
    value = np.full(rows, np.nan)
    logged = np.zeros(rows, dtype=np.bool_)
    nothing: tuple[None, ...] = (None,) * rows
    return Column(
        kind,
        value,
        logged,
        text=nothing if kind == "text" else None,
        lists=nothing if kind == "list" else None,
    )
