"""Logged lists (sample ids, sequence lengths of a batch): numbers and text side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from stabdiag.model import EXACT

_NUMBER = r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:[ ;|,]+{_NUMBER})+")
_BETWEEN = re.compile(r"[ ;|,]+")
_WHOLE = re.compile(r"[+-]?\d{1,400}")
ListCell = tuple[float | str, ...]


@dataclass(frozen=True)
class MixedLists:
    """List cells that fit no Arrow type, shape [R]; None where missing."""

    cells: tuple[ListCell | None, ...]

    def __len__(self) -> int:
        return len(self.cells)


def is_list(cells: object) -> bool:
    """Say whether these cells of a column are lists."""
    if isinstance(cells, MixedLists):
        return True
    kind = cells.type if isinstance(cells, pa.Array) else None
    return kind is not None and bool(
        pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    )


def list_cell(values: Sequence[object]) -> ListCell:
    """Bring the elements of a list to numbers and text; null is the empty text."""
    return tuple(_element(value) for value in values)


def _element(value: object) -> float | str:
    if isinstance(value, int) and abs(value) > EXACT:
        return str(value)  # a sample's id, not a size: float64 would merge it with its neighbours
    if isinstance(value, (bool, int, float)):
        return float(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def list_cells(cells: pa.Array | MixedLists) -> Sequence[ListCell | None]:
    """Return list cells as tuples; None where missing."""
    if isinstance(cells, MixedLists):
        return cells.cells
    return [None if cell is None else list_cell(cell) for cell in cells.to_pylist()]


def list_in_text(text: str) -> ListCell | None:
    """Read text such as "[12, 55]", "['a', 'b']" or "12 55" as a list; None where it is none."""
    if _NUMBERS.fullmatch(text):
        return list_cell([_number(part) for part in _BETWEEN.split(text)])
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        values = json.loads(text if "'" not in text else text.replace("'", '"'))
    except (ValueError, RecursionError):
        return None
    return list_cell(values)


def _number(text: str) -> int | float:
    return int(text) if _WHOLE.fullmatch(text) else float(text)
