"""Odd blocks of a table of text, row by row: ragged rows, repeated headers, NUL bytes, comments."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import numpy as np

from stabdiag.errors import InputError
from stabdiag.readers.arrays import text_array
from stabdiag.readers.cells import cell_number
from stabdiag.readers.csv_dialect import MAX_CELL_CHARS
from stabdiag.readers.csv_table import CsvTable, Row, column_names
from stabdiag.readers.pieces import Piece
from stabdiag.readers.source import Block

# A block has one cell for every two bytes at most; far more means that one monster row sets the
# width of millions of short ones.
MOST_LINES_OF_A_CELL = 1000
_MOST_CELLS = 64 << 20


def careful_pieces(block: Block, table: CsvTable) -> Iterator[Piece]:
    """Read a block of whole lines row by row; a second header starts a new piece.

    What can't be kept is counted in `table.tally` with its lines.
    """
    rows: list[Row] = []
    for row in _rows(block, table):
        names = [cell.strip() for cell in row.cells]
        if _repeats_header(names, table.columns):
            table.tally.add("dropped", "the header line again in the middle", [row.line])
        elif _is_new_header(names, table.columns):
            yield from _piece(rows, table)
            table.drop_held()
            rows = []
            table.columns = column_names(names, table.tally, row.line)
            table.tally.add("repaired", "a header with other columns in the middle", [row.line])
        else:
            rows.append(row)
    yield from _piece(rows, table)


def _rows(block: Block, table: CsvTable) -> Iterator[Row]:
    text = block.data.decode().replace("\r\n", "\n").replace("\r", " ")
    delimiter = table.dialect.delimiter
    read: Iterator[tuple[int, list[str]]]
    if delimiter == " ":
        read = ((n, line.split()) for n, line in enumerate(text.split("\n")))
    elif '"' in text:
        read = _quoted(text, block.first_line, table)
    else:
        read = ((n, line.split(delimiter)) for n, line in enumerate(text.split("\n")))
    for offset, cells in read:
        line = block.first_line + offset
        if not cells or (len(cells) == 1 and not cells[0].strip(" \t\0")):
            continue
        if cells[0].lstrip().startswith("#"):
            continue
        if any("\0" in cell for cell in cells):
            # the rest of such a line may be the tail of a row whose head the NULs replaced
            table.tally.add("dropped", "a line with NUL bytes", [line])
            continue
        yield Row(line, cells)


def _quoted(text: str, first_line: int, table: CsvTable) -> Iterator[tuple[int, list[str]]]:
    """Split lines with quotes; a cell goes on over lines only if the row then fits the header."""
    csv.field_size_limit(MAX_CELL_CHARS)
    lines = text.split("\n")
    unbalanced = [number for number, line in enumerate(lines) if line.count('"') % 2]
    ends = dict(pairwise(unbalanced))
    number = 0
    while number < len(lines):
        line = lines[number]
        end = ends.get(number, number)
        if end - number > MOST_LINES_OF_A_CELL or _are_rows(lines[number : end + 1], table):
            end = number
        cells = _split("\n".join(lines[number : end + 1]), table)
        if end > number and len(cells) != len(table.columns):
            end = number
            cells = _split(line, table)
        if end == number and line.count('"') % 2:
            table.tally.add("repaired", "a quote without an end", [first_line + number])
        yield number, cells
        number = end + 1


def _are_rows(lines: Sequence[str], table: CsvTable) -> bool:
    """Say whether lines from quote to quote are rows of their own: all fit, or most within."""
    delimiters = len(table.columns) - 1
    fits = [line.count(table.dialect.delimiter) == delimiters for line in lines]
    return all(fits) or 0 < len(fits[1:-1]) <= 2 * sum(fits[1:-1])


def _split(text: str, table: CsvTable) -> list[str]:
    delimiter = table.dialect.delimiter
    if '"' not in text:
        return text.split(delimiter)
    if text.count('"') % 2:  # a quote without end is a character like others
        return [cell.strip().strip('"') for cell in text.split(delimiter)]
    lines = (f"{line}\n" for line in text.split("\n"))
    return next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True), [])


def _repeats_header(names: Sequence[str], columns: Sequence[str]) -> bool:
    return (len(names) > 1 and list(names) == [c for c in columns[: len(names)]]) or (
        list(names) == list(columns)
    )


def _is_new_header(names: Sequence[str], columns: Sequence[str]) -> bool:
    """Say whether a row is another header: only words, at least two of them known names."""
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        return False
    known = len(set(names) & set(columns))
    return known >= 2 and not any(cell_number(name) is not None for name in names)


def _piece(rows: list[Row], table: CsvTable) -> Iterator[Piece]:
    rows = _of_one_width(rows, table)
    if not rows:
        return
    width = max(len(row.cells) for row in rows)
    if width * len(rows) > _MOST_CELLS:
        raise InputError(
            f"{table.name}, lines {rows[0].line} to {rows[-1].line}: rows of very different length"
            f" (up to {width} cells)",
            "check that this is a table",
        )
    cells = zip_longest(*(row.cells for row in rows))
    columns = {name: text_array(column) for name, column in zip(table.columns, cells, strict=False)}
    yield Piece(len(rows), np.array([row.line for row in rows], dtype=np.int64), columns)


def _of_one_width(rows: list[Row], table: CsvTable) -> list[Row]:
    """Bring rows to the header's width, or leave them out where that would shift their cells.

    A row with too many cells is damaged (two writers, a lost newline) when it stands alone; when
    its neighbour is as long, columns were added at the right without a new header.
    """
    width = len(table.columns)
    kept: list[Row] = []
    for row in rows:
        size = len(row.cells)
        if size > width and not any(cell.strip() for cell in row.cells[width:]):
            size = width
        if table.held is not None and len(table.held.cells) == size:
            _cut_to(width, table.held, kept, table)
            table.held = None
        table.drop_held()
        if size <= width:
            if size < width:
                text = "a row with fewer cells than the header: the last are missing"
                table.tally.add("repaired", text, [row.line])
            kept.append(row if len(row.cells) == size else Row(row.line, row.cells[:width]))
        elif size == table.last_size:
            _cut_to(width, row, kept, table)
        else:
            table.held = row
        table.last_size = size
    return kept


def _cut_to(width: int, row: Row, kept: list[Row], table: CsvTable) -> None:
    table.tally.add("dropped", "cells at the right of the last named column", [row.line])
    kept.append(Row(row.line, row.cells[:width]))
