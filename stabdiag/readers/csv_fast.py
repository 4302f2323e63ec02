"""Clean blocks of a table of text, read by Arrow without a look at single cells."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.types as pt

from stabdiag.model import I64
from stabdiag.readers.arrays import text_array
from stabdiag.readers.cells import MISSING_WORDS
from stabdiag.readers.csv_table import CsvTable
from stabdiag.readers.pieces import Piece
from stabdiag.readers.source import Block

_BLANKS = re.compile(rb"[ \t]+")
_OUTER_BLANKS = re.compile(rb"(?m)^ | (?=\r?$)")
# Arrow's usual chunk; but a chunk of a wide table must hold rows enough to be worth its columns.
_CHUNK_BYTES = 1 << 20
_ROWS_PER_CHUNK = 400
_RETURN, _NEWLINE = 13, 10


def fast_piece(block: Block, table: CsvTable) -> Piece | None:
    """Read a block of whole lines; None where anything in it asks for a closer look."""
    data = block.data
    if b"\0" in data or (b"#" in data and (data.startswith(b"#") or b"\n#" in data)):
        return None
    if table.dialect.delimiter == " ":
        data = _OUTER_BLANKS.sub(b"", _BLANKS.sub(b" ", data))
    cells = _parsed(block, data, table)
    if cells is None:
        return None
    if any(_holds(column, name) for name, column in zip(table.columns, cells.columns, strict=True)):
        return None  # the header stands in the middle again
    line = _lines(block, cells.num_rows)
    if line is None:
        return None
    columns = dict(zip(table.columns, (c.combine_chunks() for c in cells.columns), strict=True))
    return Piece(cells.num_rows, line, columns)


def _parsed(block: Block, data: bytes, table: CsvTable) -> pa.Table | None:
    """Parse a block; columns of floats are known after the first, dates and times stay text."""
    # Positions stand for the names, which need be neither unique nor free of odd characters.
    keys = {name: str(index) for index, name in enumerate(table.columns)}
    known = {name: kind for name, kind in table.kinds.items() if name in keys}
    row_bytes = len(data) // max(1, block.newlines)
    while True:
        try:
            cells = pa_csv.read_csv(
                pa.py_buffer(data),
                read_options=pa_csv.ReadOptions(
                    column_names=list(keys.values()),
                    block_size=max(_CHUNK_BYTES, _ROWS_PER_CHUNK * row_bytes),
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=table.dialect.delimiter, newlines_in_values=b'"' in data
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types={keys[name]: kind for name, kind in known.items()},
                    # An empty cell is "not logged"; the text "nan" is a value: not in the list.
                    null_values=MISSING_WORDS,
                    strings_can_be_null=True,
                    decimal_point=table.dialect.decimal,
                ),
            )
        except pa.ArrowInvalid as err:
            words = {name: kind for name, kind in known.items() if pt.is_string(kind)}
            if "conversion" not in str(err) or len(words) == len(known):
                return None
            known = words  # a word among the floats: that column is looked at as text
            continue
        kinds = dict(zip(keys, cells.schema.types, strict=True))
        times = {name: pa.string() for name, kind in kinds.items() if pt.is_temporal(kind)}
        known |= times
        table.kinds |= times | {n: k for n, k in kinds.items() if pt.is_float64(k)}
        if not times:
            return cells


def _holds(column: pa.ChunkedArray, name: str) -> bool:
    if not pt.is_string(column.type):
        return False
    import pyarrow.compute as pc  # takes long, and few tables hold text

    words = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return bool(pc.any(pc.is_in(words, text_array([name]))).as_py())


def _lines(block: Block, rows: int) -> I64 | None:
    """Return the file line of each row; None where rows and lines can't be matched."""
    if rows == block.newlines:
        return np.arange(block.first_line, block.first_line + rows, dtype=np.int64)
    text = np.frombuffer(block.data, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate(([0], ends + 1))
    filled = starts < len(text)
    starts = starts[filled]
    blank = (text[starts] == _NEWLINE) | (text[starts] == _RETURN)
    if int(np.count_nonzero(~blank)) != rows:
        return None
    return np.flatnonzero(~blank).astype(np.int64) + block.first_line
