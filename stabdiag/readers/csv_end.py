"""The last line of a table of text that has no newline: a whole row, or one cut by a crash?"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence

from stabdiag.readers.cells import cell_number, is_missing
from stabdiag.readers.csv_table import CsvTable
from stabdiag.readers.source import Block

_ROWS_COMPARED = 20


def without_cut_row(block: Block, table: CsvTable) -> Block:
    """Drop the last line of a log's last block where it is evidently cut; say what was done."""
    whole, newline, last = block.data.rpartition(b"\n")
    if not last.strip():
        return block
    line = block.first_line + block.newlines
    text = last.decode().rstrip("\r")
    before = [
        _cells(row.decode().rstrip("\r"), table)
        for row in whole.split(b"\n")[-_ROWS_COMPARED:]
        if row.strip()
    ]
    why = _cut(text, _cells(text, table), before, table)
    if why:
        table.tally.add("dropped", f"the last line, cut short: {why}", [line])
        return Block(block.first_line, whole + newline)
    if not text.endswith('"'):
        table.tally.add("guessed", "the last line has no newline; kept as a whole row", [line])
    return Block(block.first_line, block.data + b"\n")


def _cells(text: str, table: CsvTable) -> list[str]:
    delimiter = table.dialect.delimiter
    if delimiter == " ":
        return text.split()
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    row = next(csv.reader([text.replace("\r", " ")], delimiter=delimiter), [])
    return [cell.strip() for cell in row]


def _cut(text: str, cells: Sequence[str], before: Sequence[Sequence[str]], table: CsvTable) -> str:
    """Say why the last line is cut; "" where it may be whole."""
    if text.count('"') % 2:
        return "a quoted cell has no end"
    usual = len(before[-1]) if before else len(table.columns)
    if len(cells) < min(usual, len(table.columns)):
        return f"{len(cells)} of {usual} cells"
    last = cells[-1] if cells else ""
    above = [row[-1] for row in before if len(row) == len(cells)]
    if is_missing(last):
        return "its last cell is empty" if above and not any(map(is_missing, above)) else ""
    numbers = [cell for cell in above if cell_number(cell) is not None]
    if len(numbers) < max(1, len(above) - 1):
        return ""
    number = cell_number(last)
    if number is None or (last[-1] in ".+-" and not any(c[-1:] == "." for c in numbers)):
        return f"it ends in {last[-12:]!r}"
    decimals = {len(cell.partition(".")[2]) for cell in numbers if cell_number(cell)}
    fixed = len(numbers) >= 3 and len(decimals) == 1 and math.isfinite(number)
    if fixed and len(last.partition(".")[2]) < min(decimals):
        return f"{last!r} has fewer decimals than the rows above"
    return ""
