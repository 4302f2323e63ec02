"""Several logs of one run as one: rows in the given order, columns united."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stabdiag.model import EXACT, I64, Column, ColumnKind, LogTable, Note
from stabdiag.readers.cells import number_text


def joined(tables: Sequence[LogTable]) -> LogTable:
    """Join the shards of one run; a column that a shard does not have is missing in its rows.

    Where shards disagree about a column's kind, the kind of most rows counts; the cells of the
    others are brought to it or, where they are no numbers, counted as not logged.
    """
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    kinds, notes = _kinds(tables, names)

    def load(wanted: Sequence[str]) -> dict[str, Column]:
        parts = [table.load([n for n in wanted if n in table.kinds]) for table in tables]
        return {
            name: _stacked([p.get(name) for p in parts], tables, kinds[name]) for name in wanted
        }

    facts: dict[str, str] = {}
    for table in reversed(tables):
        facts |= table.facts
    return LogTable(
        files=tuple(file for table in tables for file in table.files),
        format="+".join(dict.fromkeys(table.format for table in tables)),
        names=names,
        kinds=kinds,
        rows=sum(table.rows for table in tables),
        load=load,
        line=np.concatenate([table.line for table in tables]),
        notes=(*(_of_file(n, t) for t in tables for n in t.notes), *notes),
        facts=facts,
        row_kind=_row_kinds(tables),
        counted_step=any(table.counted_step for table in tables),
        detection="; ".join(dict.fromkeys(table.detection for table in tables)),
    )


def _of_file(note: Note, table: LogTable) -> Note:
    return replace(note, text=f"{table.files[0]}: {note.text}")


def _row_kinds(tables: Sequence[LogTable]) -> tuple[str, ...] | None:
    if all(table.row_kind is None for table in tables):
        return None
    return tuple(kind for table in tables for kind in (table.row_kind or ("",) * table.rows))


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


def _stacked(
    parts: Sequence[Column | None], tables: Sequence[LogTable], kind: ColumnKind
) -> Column:
    columns = [
        _as_kind(part, kind) if part else _absent(table.rows, kind)
        for part, table in zip(parts, tables, strict=True)
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
