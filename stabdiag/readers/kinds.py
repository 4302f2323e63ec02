"""What a column holds, seen over all its cells: numbers, text or lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from stabdiag.model import EXACT, I64, ColumnKind, Mask
from stabdiag.readers.arrays import (
    as_float64,
    float_array,
    float_values,
    text_array,
    valid_mask,
    whole_values,
)
from stabdiag.readers.cells import (
    MISSING_WORDS,
    NUMBER,
    TEXT,
    Decimal,
    cell_numbers,
    number_text,
)
from stabdiag.readers.lists import ListCell, MixedLists, is_list, list_cells, list_in_text
from stabdiag.readers.spill import Spilled

MAX_NOTED_ROWS = 20
Cells: TypeAlias = Any  # pa.Array (which has no types), Spilled or MixedLists


@dataclass(frozen=True)
class Part:
    """The cells of one column in one piece of a log, and the table rows they are in."""

    rows: slice | I64
    cells: Cells


@dataclass(frozen=True)
class Stray:
    """Cells that do not fit their column's kind: how many, some of their rows, one of them."""

    count: int = 0
    rows: tuple[int, ...] = ()
    example: str = ""


def is_text(cells: Cells) -> bool:
    """Say whether these cells of a column are text."""
    if not isinstance(cells, pa.Array):
        return False
    return bool(pt.is_string(cells.type) or pt.is_large_string(cells.type))


def numbers_of(part: Part) -> pa.Array:
    """Return the numbers of a part as float64, wherever they are kept."""
    return part.cells.cells() if isinstance(part.cells, Spilled) else as_float64(part.cells)


def whole_of(parts: Sequence[Part], rows: int) -> I64 | None:
    """The whole numbers themselves, [R], where float64 rounds some; None where it rounds none.

    None also where others are no whole numbers, or were rounded before they came here.
    """
    kept = [isinstance(part.cells, pa.Array) and pt.is_integer(part.cells.type) for part in parts]
    if not any(kept):
        return None
    whole = np.zeros(rows, dtype=np.int64)
    for part, exact in zip(parts, kept, strict=True):
        if exact:
            whole[part.rows] = whole_values(part.cells)
            continue
        cells = numbers_of(part)
        value = np.where(valid_mask(cells), float_values(cells), 0.0)
        if not np.all((np.abs(value) < EXACT) & (value == np.floor(value))):
            return None
        whole[part.rows] = value.astype(np.int64)
    return whole


def settled(parts: list[Part], decimal: Decimal) -> tuple[ColumnKind, list[Part], Stray]:
    """Decide the kind of a column, bring all its parts to it, and tell which cells do not fit."""
    if any(is_list(p.cells) for p in parts):
        return "list", [Part(p.rows, _as_lists(p)) for p in parts], Stray()
    if any(is_text(p.cells) for p in parts):
        return _settled_text(parts, decimal)
    return "number", parts, Stray()


def _settled_text(parts: list[Part], decimal: Decimal) -> tuple[ColumnKind, list[Part], Stray]:
    numbers = 0
    as_numbers: list[Part] = []
    stray = Stray()
    for part in parts:
        if not is_text(part.cells):
            as_numbers.append(part)
            numbers += len(part.cells) - part.cells.null_count
            continue
        value, state = cell_numbers(part.cells, decimal)
        numbers += int(np.count_nonzero(state == NUMBER))
        as_numbers.append(Part(part.rows, float_array(value, state == NUMBER)))
        stray = _more(stray, part, state == TEXT)
    if stray.count == 0 or numbers > stray.count:
        return "number", as_numbers, stray
    as_text = [Part(p.rows, _as_text(p)) for p in parts]
    as_lists = _lists_in_text(as_text)
    return ("text", as_text, Stray()) if as_lists is None else ("list", as_lists, Stray())


def _more(stray: Stray, part: Part, mask: Mask) -> Stray:
    """Add the cells of `part` where `mask` holds to those found before."""
    count = int(np.count_nonzero(mask))
    if count == 0:
        return stray
    indices = np.flatnonzero(mask)[:MAX_NOTED_ROWS]
    rows = indices + part.rows.start if isinstance(part.rows, slice) else part.rows[indices]
    example = stray.example or str(part.cells[int(indices[0])].as_py())[:60]
    return Stray(stray.count + count, (*stray.rows, *map(int, rows))[:MAX_NOTED_ROWS], example)


def _as_text(part: Part) -> pa.Array:
    if is_text(part.cells):
        import pyarrow.compute as pc  # as in `cell_numbers`

        cells = pc.utf8_trim_whitespace(part.cells.cast(pa.large_string()))
        missing = pc.is_in(cells, text_array(MISSING_WORDS))
        return pc.if_else(missing, pa.nulls(len(cells), pa.large_string()), cells)
    words = [None if cell is None else number_text(cell) for cell in numbers_of(part).to_pylist()]
    return text_array(words)


def _as_lists(part: Part) -> pa.Array | MixedLists:
    """Bring cells to lists: a single number or word is a list of one."""
    if is_list(part.cells):
        return part.cells
    cells: list[ListCell | None] = []
    for cell in part.cells.to_pylist() if is_text(part.cells) else numbers_of(part).to_pylist():
        lists = list_in_text(cell) if isinstance(cell, str) else None
        cells.append((cell,) if lists is None and cell is not None else lists)
    return MixedLists(tuple(cells))


def _lists_in_text(parts: list[Part]) -> list[Part] | None:
    """Read text such as "[12, 55]" as lists; None unless every cell is one."""
    as_lists: list[Part] = []
    for part in parts:
        cells: list[ListCell | None] = []
        for text in part.cells.to_pylist():
            cells.append(None if text is None else list_in_text(text))
            if text is not None and cells[-1] is None:
                return None
        as_lists.append(Part(part.rows, MixedLists(tuple(cells))))
    return as_lists


def lists_of(part: Part) -> list[ListCell | None]:
    """Return the lists of a settled list column's part."""
    return list(list_cells(part.cells))
