"""Records to columns: keys of nested objects joined by "/", lists and words kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import gt
from typing import Any

import numpy as np
import pyarrow as pa

from stabdiag.model import F64, I64, Mask
from stabdiag.readers.arrays import float_array, text_array, whole_array
from stabdiag.readers.assembled import Assembled
from stabdiag.readers.cells import number_text
from stabdiag.readers.lists import MixedLists, list_cell
from stabdiag.readers.pieces import Piece
from stabdiag.readers.tally import Tally

Record = dict[str, Any]
# Sparse columns keep the rows of their cells; a filled one is shorter without.
_SPARSE_SHARE = 0.5
_MODES = frozenset(("train", "val", "eval", "valid", "validation", "test"))
MEDIA = "objects with a `_type` (histograms, media) are no metrics"


def records_piece(records: Sequence[tuple[int, Record]], tally: Tally) -> Piece:
    """Turn (line, record) pairs into columns.

    Values: numbers, true and false are numbers; text stays text (its numbers are found later);
    null is missing, and so is an absent key. Objects with `_type` are left out and counted.
    """
    alike: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}  # rows and values, by their keys
    for row, (line, record) in enumerate(records):
        flat, media = flattened(record)
        if media:
            tally.add("dropped", MEDIA, [line], media)
        group = alike.setdefault(tuple(flat), ([], []))
        group[0].append(row)
        group[1].append(tuple(flat.values()))
    columns: dict[str, tuple[list[int], list[Any]]] = {}
    for keys, (rows, all_values) in alike.items():
        for key, values in zip(keys, zip(*all_values, strict=True), strict=True):
            into = columns.setdefault(key, ([], []))
            into[0].extend(rows)
            into[1].extend(values)
    return _piece(columns, np.array([at for at, _ in records], dtype=np.int64))


def columns_piece(columns: Mapping[str, Sequence[Any]]) -> Piece:
    """Turn columns of equal length into a piece; rows are counted from 1."""
    rows = max(map(len, columns.values()), default=0)
    cells = {name: column_cells(values) for name, values in columns.items()}
    return Piece(rows, np.arange(1, rows + 1, dtype=np.int64), cells)


def _piece(columns: Mapping[str, tuple[list[int], list[Any]]], line: I64) -> Piece:
    rows = len(line)
    cells: dict[str, pa.Array | MixedLists] = {}
    at: dict[str, I64] = {}
    for name, (where, values) in columns.items():
        if len(where) == rows:
            if any(map(gt, where, islice(where, 1, None))):
                values = [v for _, v in sorted(zip(where, values, strict=True), key=lambda p: p[0])]
        elif len(where) < _SPARSE_SHARE * rows:
            at[name] = np.array(where, dtype=np.int64)
        else:
            filled: list[Any] = [None] * rows
            for row, value in zip(where, values, strict=True):
                filled[row] = value
            values = filled
        cells[name] = column_cells(values)
    return Piece(rows, line, cells, at)


def flattened(record: Record) -> tuple[Record, int]:
    """Join the keys of nested objects with "/"; the later of two equal names wins.

    Returns:
        the flat record, and how many objects with `_type` were left out of it.
    """
    if dict not in map(type, record.values()):
        return record, 0
    flat: Record = {}
    media = 0
    waiting: list[tuple[str, Any]] = [*reversed(record.items())]
    while waiting:
        name, value = waiting.pop()
        if not isinstance(value, dict):
            flat[name] = value
        elif isinstance(value.get("_type"), str):
            media += 1
        else:
            waiting.extend((f"{name}/{key}", inner) for key, inner in reversed(value.items()))
    return flat, media


def column_cells(values: Sequence[Any]) -> pa.Array | MixedLists:
    """Bring the values of one key to cells of one kind: numbers, text, or lists."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {float, int, bool}:
        logged = None
        if None in values:
            logged = np.array([v is not None for v in values], dtype=np.bool_)
            values = [np.nan if v is None else v for v in values]
        return _number_array(values, kinds, logged)
    if kinds & {list, tuple}:
        cells = (v if v is None or isinstance(v, list | tuple) else [v] for v in values)
        return MixedLists(tuple(None if v is None else list_cell(v) for v in cells))
    return text_array([_word(value) for value in values])


def _number_array(values: Sequence[float], kinds: set[type], logged: Mask | None) -> pa.Array:
    """Numbers as float64; as int64 where that would round whole ones."""
    numbers = _numbers(values)
    if kinds in ({int}, {int, bool}) and 2.0**53 < np.nanmax(np.abs(numbers)) < 2.0**63:
        whole = np.array([0 if v != v else v for v in values], dtype=np.int64)
        return whole_array(whole, logged)
    return float_array(numbers, logged)


def _numbers(values: Sequence[float]) -> F64:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # a whole number beyond float64
        return np.array([_number(value) for value in values])


def _word(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return number_text(_number(value)) if _is_number(value) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def tree_order(cells: Assembled) -> tuple[str, ...]:
    """Order columns by the tree of their keys, siblings by first appearance.

    A key that is only ever null where other records have an object under it is left out.
    """
    rank: dict[str, int] = {}
    places: dict[str, tuple[int, ...]] = {}
    parents: set[str] = set()
    for name in cells.names:
        prefixes = [name[:i] for i, letter in enumerate(name) if letter == "/"]
        parents.update(prefixes)
        places[name] = tuple(rank.setdefault(key, len(rank)) for key in (*prefixes, name))
    return tuple(
        name
        for name in sorted(places, key=lambda name: places[name])
        if name not in parents or cells.load([name])[name].logged.any()
    )


def row_kinds(log: Assembled) -> tuple[str, ...] | None:
    """Return each row's kind where a column `mode` tells it, as OpenMMLab's logs do."""
    if log.kinds.get("mode") != "text":
        return None
    modes = log.load(["mode"])["mode"].text or ()
    return tuple(map(str, modes)) if all(mode in _MODES for mode in modes) else None
