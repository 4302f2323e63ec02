"""How a table of text is written: delimiter, header, decimal sign, found by trying on its head."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from stabdiag.readers.cells import Decimal, cell_number, is_missing

DELIMITERS = (",", "\t", ";", "|", " ")
_BLANK = re.compile(r"[ \t]+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
# Project choices: enough lines to see the shape, few enough to try five delimiters at once.
_LINES_TRIED = 200
_PREAMBLE_ROWS = 20
MAX_CELL_CHARS = 64 << 20


@dataclass(frozen=True)
class Dialect:
    """How a table of text is written.

    `delimiter` " " stands for any run of blanks. `names` are the header's cells, stripped; empty
    where a column has no name. `first_data_line` is 1-based; `headed` is False where the names
    were made up. `reason` says how it was recognised.
    """

    delimiter: str
    names: tuple[str, ...]
    first_data_line: int
    headed: bool
    decimal: Decimal
    reason: str


@dataclass(frozen=True)
class _Row:
    last_line: int
    cells: list[str]


@lru_cache(maxsize=1)  # the format is recognised by it, then the log is read with it
def dialect_of(text: str) -> Dialect | None:
    """Find how the table that starts with `text` (whole lines) is written; None if it is no table.

    A table has a header without numbers, over rows that fit its width and hold numbers; or no
    header and numbers only.
    """
    best: tuple[float, Dialect] | None = None
    for delimiter in DELIMITERS:
        rows = _rows(text, delimiter)
        found = _headed(rows, delimiter) or _headless(rows, delimiter)
        if found and (best is None or found[0] > best[0]):
            best = found
    return best[1] if best else None


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line without quotes into its cells, stripped."""
    if delimiter == " ":
        return line.split()
    return [cell.strip() for cell in line.split(delimiter)]


def _rows(text: str, delimiter: str) -> list[_Row]:
    lines = [line.rstrip("\r") for line in text.split("\n", _LINES_TRIED)[:_LINES_TRIED]]
    if delimiter == " ":
        return [
            _Row(number, line.split())
            for number, line in enumerate(lines, start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
    csv.field_size_limit(MAX_CELL_CHARS)
    reader = csv.reader(
        (line.replace("\r", " ") + "\n" for line in lines),
        delimiter=delimiter,
        skipinitialspace=True,
    )
    rows = [_Row(reader.line_num, [c.strip() for c in cells]) for cells in reader]
    return [row for row in rows if any(row.cells) and not row.cells[0].startswith("#")]


def _numeric(cell: str) -> bool:
    return cell_number(cell) is not None or _DECIMAL_COMMA.fullmatch(cell) is not None


def _headed(rows: Sequence[_Row], delimiter: str) -> tuple[float, Dialect] | None:
    for index, row in enumerate(rows[:_PREAMBLE_ROWS]):
        if not _may_be_header(row.cells, delimiter):
            continue
        body = [r.cells for r in rows[index + 1 :] if not _is_header_again(r.cells, row.cells)]
        score = _fit(len(row.cells), body, delimiter)
        if score is None:
            continue
        names = _with_extra_names(row.cells, body)
        shown = {"\t": "tab", " ": "blanks"}.get(delimiter, repr(delimiter))
        reason = f"a header of {len(row.cells)} names over rows divided by {shown}"
        return score, Dialect(
            delimiter, names, row.last_line + 1, True, _decimal(body, delimiter), reason
        )
    return None


def _is_header_again(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Say whether a row repeats the header, perhaps with other columns after a restart."""
    known = len(set(cells) & set(header))
    return cells == header or (known >= 2 and not any(_numeric(cell) for cell in cells))


def _may_be_header(cells: Sequence[str], delimiter: str) -> bool:
    named = [cell for cell in cells if cell]
    if any(_numeric(cell) for cell in named) or not named:
        return False
    if len(cells) == 1:  # one column: a name, not a sentence
        return delimiter == "," and len(cells[0].split()) <= 2
    return len(named) >= max(2, len(cells) - 2) or len(cells) == 2


def _fit(width: int, body: Sequence[Sequence[str]], delimiter: str) -> float | None:
    """Score how well rows fit a header of `width` cells; None where they are no table under it."""
    if not body:
        return None
    fitting = [cells for cells in body if len(cells) == width]
    numeric = [sum(_numeric(c) or is_missing(c) for c in cells) / len(cells) for cells in body]
    with_number = sum(any(_numeric(c) for c in cells) for cells in body) / len(body)
    if width == 1 or delimiter == " ":  # anything is "one column" or "divided by blanks"
        whole = len(fitting) == len(body) and min(numeric) == 1.0
        return 1.0 if whole else None
    common = Counter(len(cells) for cells in body).most_common(1)[0][0]
    share = sum(numeric) / len(body)
    # rows shorter than the header, as when it was written with the columns of a later phase
    ragged = common >= 2 and share >= 0.8 and all(len(cells) <= width for cells in body)
    shaped = common >= width or len(fitting) / len(body) >= 0.5 or ragged
    if not shaped or with_number < 0.5:
        return None
    if share < 0.3 and not (len(fitting) == len(body) and with_number == 1.0):
        return None
    return 1.0 + width * len(fitting) / len(body)


def _with_extra_names(header: Sequence[str], body: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Name the column of row names that R writes without a header cell, where there is one."""
    if len(body) >= 2 and all(len(cells) == len(header) + 1 for cells in body):
        first = [cells[0] for cells in body]
        counted = all(cell.isdecimal() for cell in first) and all(
            int(b) - int(a) == 1 for a, b in pairwise(first)
        )
        if counted and not all(is_missing(cells[-1]) for cells in body):
            return ("", *header)
    return tuple(header)


def _headless(rows: Sequence[_Row], delimiter: str) -> tuple[float, Dialect] | None:
    if len(rows) < 2 or not rows[0].cells:
        return None
    width = len(rows[0].cells)
    if width < 2 or any(len(row.cells) != width for row in rows[:-1]):
        return None
    cells = [cell for row in rows[:-1] for cell in row.cells]
    if not all(_numeric(cell) or is_missing(cell) for cell in cells):
        return None
    if not any(_numeric(cell) for cell in rows[0].cells):
        return None
    names = tuple(f"column {i}" for i in range(1, width + 1))
    decimal = _decimal([row.cells for row in rows], delimiter)
    first_line = rows[0].last_line
    reason = "rows of numbers without a header"
    return 0.5 + width, Dialect(delimiter, names, first_line, False, decimal, reason)


def _decimal(body: Sequence[Sequence[str]], delimiter: str) -> Decimal:
    """Decide whether 1,5 is one and a half: only where no cell has a decimal point."""
    if delimiter == ",":
        return "."
    cells = [cell for row in body for cell in row]
    commas = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    points = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells if "," not in cell)
    return "," if commas and not points else "."
