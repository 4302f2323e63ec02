"""Clean blocks of JSON Lines, read by Arrow."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.types as pt

from stabdiag.model import I64
from stabdiag.readers.arrays import float_values
from stabdiag.readers.arrow_cells import leaf_cells
from stabdiag.readers.kinds import Cells
from stabdiag.readers.pieces import Piece
from stabdiag.readers.source import Block

# Arrow's parser recurses on the machine's stack without a limit: 20,000 levels end the process.
_MOST_OPENERS = 500
# Arrow makes a full column of each key: many keys that differ from line to line would not end.
_LINES_SAMPLED = 100
_MOST_KEYS_PER_LINE = 20
_CHUNK_BYTES = 1 << 20
_QUOTED_NAN = re.compile(rb':\s*"(-?(?:NaN|Infinity))"')
_NEWLINE, _RETURN, _BLANK, _BRACE, _CLOSING = 10, 13, ord(" "), ord("{"), ord("}")
_CASE = np.uint8(ord("{") ^ ord("["))  # the one bit in which the two openers differ
_SHORT = 16  # bytes; a line of blanks and an empty record


def fast_piece(block: Block, as_text: dict[str, Any]) -> Piece | None:
    """Read a block of whole lines; None where anything in it asks for a closer look.

    `as_text` collects the types of keys that Arrow would take for times; they stay text.
    """
    data = block.data
    if b"\0" in data:
        return None
    lines = _plain_lines(block)
    lines = _filled_lines(data) if lines is None else lines
    if lines is None or not _is_regular(data):
        return None
    table = _parsed(data, as_text)
    if table is None or table.num_rows != len(lines):
        return None
    objects = tuple(f"{field.name}/" for field in table.schema if pt.is_struct(field.type))
    if objects and any(name.startswith(objects) for name in table.column_names):
        return None  # "a/b" beside {"a": {"c": ...}}: their order is that of the records
    columns: dict[str, Cells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _has_odd_lists(column.type) or _has_odd_objects(column.type):
            return None
        columns |= leaf_cells(name, column.combine_chunks())
    if any(_has_rounded(cells) for cells in columns.values()):
        return None
    return Piece(table.num_rows, lines + block.first_line, columns)


def _plain_lines(block: Block) -> I64 | None:
    """Return the offsets of all lines where each is an object with a key and few hold another."""
    data = block.data
    lines = block.newlines + (not data.endswith(b"\n"))
    if not data.startswith(b'{"') or data.count(b'\n{"') != lines - 1:
        return None
    inner = data.count(b"{") + data.count(b"[") - lines
    return np.arange(lines, dtype=np.int64) if inner <= _MOST_OPENERS else None


def _filled_lines(data: bytes) -> I64 | None:
    """Return the offsets of lines that are not blank.

    None where a line nests too deep for Arrow, or may be the empty record, which is no row.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate(([0], ends + 1))
    starts = starts[starts < len(text)]
    opens = (text | _CASE) == _BRACE
    if (
        int(np.count_nonzero(opens)) - len(starts) > _MOST_OPENERS
        and int(np.add.reduceat(opens, starts, dtype=np.int64).max()) > _MOST_OPENERS
    ):
        return None
    first, second = text[starts], text[np.minimum(starts + 1, len(text) - 1)]
    length = np.append(starts[1:], len(text)) - starts
    inner_blank = (first == _BLANK) | ((first == _BRACE) & (second == _BLANK))
    empty = ((first == _BRACE) & (second == _CLOSING)) | (inner_blank & (length < _SHORT))
    if empty.any():
        return None
    return np.flatnonzero((first != _NEWLINE) & (first != _RETURN)).astype(np.int64)


def _is_regular(data: bytes) -> bool:
    """Say whether lines far apart have mostly the same keys."""
    keys: set[str] = set()
    longest = 1
    step = max(1, len(data) // _LINES_SAMPLED)
    position = 0
    while position < len(data):
        start = data.rfind(b"\n", 0, position) + 1
        end = data.find(b"\n", start) + 1 or len(data)
        position = max(end, position + step)
        try:
            record = json.loads(data[start:end])
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            keys |= record.keys()
            longest = max(longest, len(record))
    return len(keys) <= _MOST_KEYS_PER_LINE + 4 * longest


def _parsed(data: bytes, as_text: dict[str, Any]) -> pa.Table | None:
    order: list[str] = []
    size = _CHUNK_BYTES
    while True:
        try:
            table = pa_json.read_json(
                pa.BufferReader(data),
                read_options=pa_json.ReadOptions(block_size=size),
                parse_options=pa_json.ParseOptions(
                    explicit_schema=pa.schema(list(as_text.items())) if as_text else None,
                    unexpected_field_behavior="infer",
                ),
            )
            # a null in a list gives an array whose values end early (pyarrow 26): unsafe to read
            table.validate()
        except (pa.ArrowInvalid, UnicodeDecodeError) as err:
            if "straddl" in str(err) and size <= len(data):
                size = len(data) + 1  # lines of very many keys
                continue
            if "string" in str(err) and _QUOTED_NAN.search(data):
                # W&B writes NaN among numbers as "NaN"; a colon before a quote is in no string
                data = _QUOTED_NAN.sub(rb": \1", data)
                continue
            return None
        times = {f.name: _without_times(f.type) for f in table.schema if _has_times(f.type)}
        order = order or table.column_names
        if not times:
            return table.select(order)  # Arrow puts the columns of a given type first
        if times.keys() <= as_text.keys() and all(as_text[k] == t for k, t in times.items()):
            return None
        as_text |= times


def _has_times(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return any(_has_times(field.type) for field in kind)
    return bool(_has_times(kind.value_type) if pt.is_list(kind) else pt.is_timestamp(kind))


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([(field.name, _without_times(field.type)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(_without_times(kind.value_type))
    return pa.string() if pt.is_timestamp(kind) else kind


def _has_odd_objects(kind: pa.DataType) -> bool:
    """Say whether there are empty objects or such with a `_type` (histograms, media) in it."""
    if not pt.is_struct(kind):
        return False
    return kind.num_fields == 0 or any(
        field.name == "_type" or _has_odd_objects(field.type) for field in kind
    )


def _has_rounded(cells: Cells) -> bool:
    """Say whether these are lists with numbers from 2^63 on, of which Arrow kept no last digits."""
    if not isinstance(cells, pa.ListArray) or not pt.is_float64(cells.type.value_type):
        return False
    value = np.abs(float_values(cells.flatten()))
    return bool(np.any(np.isfinite(value) & (value >= 2.0**63)))


def _has_odd_lists(kind: pa.DataType) -> bool:
    """Say whether there are lists of lists, of objects or of nulls in it."""
    if pt.is_struct(kind):
        return any(_has_odd_lists(field.type) for field in kind)
    return bool(pt.is_list(kind) and (pt.is_nested(kind.value_type) or pt.is_null(kind.value_type)))
