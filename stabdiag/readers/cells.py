"""Cells of text into numbers: what counts as missing, NaN, infinite, or not a number at all."""

from __future__ import annotations

import math
import re
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stabdiag.model import F64
from stabdiag.readers.arrays import (
    bool_array,
    float_values,
    mask_values,
    text_array,
    valid_mask,
)

Decimal = Literal[".", ","]

# Spellings of "not logged": empty, Keras NA, fastai #na#, Python None, JSON null, spreadsheets N/A.
# "nan" is never among them: a NaN is a value that the training loop wrote.
MISSING_WORDS = ("", "NA", "N/A", "n/a", "#na#", "#N/A", "None", "null", "NULL", "<NA>")
_MISSING = frozenset(MISSING_WORDS)

# Microsoft's C runtime, and words that float() does not know.
_SPELLED = {
    "1.#inf": math.inf,
    "+1.#inf": math.inf,
    "-1.#inf": -math.inf,
    "1.#qnan": math.nan,
    "-1.#qnan": math.nan,
    "1.#snan": math.nan,
    "1.#ind": math.nan,
    "-1.#ind": math.nan,
    "nan(ind)": math.nan,
    "-nan(ind)": math.nan,
    "true": 1.0,
    "false": 0.0,
}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_THOUSANDS_POINT = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")
# A loss logged without .item(): tensor(2.31, device='cuda:0'), np.float64(2.31), Array(2.31, ...)
_WRAPPED = re.compile(
    r"(?:tensor|array|Array|(?:np|numpy|jnp|torch)\.[a-z]+\d*)\(\s*([^\s,()\[\]]+)\s*(?:,.*)?\)"
)
_PLAIN = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?$"

MISSING, NUMBER, TEXT = 0, 1, 2


def is_missing(text: str) -> bool:
    """Say whether this cell means "not logged"."""
    return text.strip() in _MISSING


def cell_number(text: str, decimal: Decimal = ".") -> float | None:
    """Return the number that a cell holds, NaN and infinities included; None where it is no number.

    A number too large for float64 (1e999) is infinite: it was logged, and is not finite.
    """
    cell = text.strip()
    wrapped = _WRAPPED.fullmatch(cell)
    if wrapped:
        cell = wrapped[1]
    spelled = _SPELLED.get(cell.lower())
    if spelled is not None:
        return spelled
    if decimal == ",":
        if _THOUSANDS_POINT.fullmatch(cell) and ("," in cell or cell.count(".") > 1):
            cell = cell.replace(".", "")
        cell = cell.replace(",", ".")
    elif "," in cell and _THOUSANDS.fullmatch(cell):
        cell = cell.replace(",", "")
    # float() also takes 1_000 and digits of other scripts, which no logger writes as numbers
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def number_text(value: float) -> str:
    """Write a number of a text column: whole numbers without a decimal point."""
    if math.isfinite(value) and value == int(value) and abs(value) < 2**63:
        return str(int(value))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))


def cell_numbers(cells: pa.Array, decimal: Decimal = ".") -> tuple[F64, NDArray[np.uint8]]:
    """Read text cells, shape [R], as numbers.

    Returns:
        value, shape [R]: NaN where the cell holds no number; and state, shape [R]: MISSING,
        NUMBER (NaN and infinities are numbers) or TEXT.
    """
    import pyarrow.compute as pc  # takes long, and few logs hold text

    value = np.full(len(cells), np.nan)
    state = np.full(len(cells), MISSING, dtype=np.uint8)
    cells = pc.utf8_trim_whitespace(cells.cast(pa.large_string()))
    left = valid_mask(cells) & ~mask_values(pc.is_in(cells, text_array(MISSING_WORDS)))
    if decimal == ".":
        plain = left & mask_values(pc.match_substring_regex(cells, _PLAIN))
        value[plain] = float_values(cells.filter(bool_array(plain)).cast(pa.float64()))
        state[plain] = NUMBER
        left &= ~plain
    if left.any():
        encoded = cells.filter(bool_array(left)).dictionary_encode()
        words = [cell_number(word, decimal) for word in encoded.dictionary.to_pylist()]
        codes = float_values(encoded.indices.cast(pa.float64())).astype(np.int64)
        value[left] = np.array([np.nan if w is None else w for w in words])[codes]
        state[left] = np.array([TEXT if w is None else NUMBER for w in words])[codes]
    return value, state
