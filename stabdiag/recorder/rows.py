"""Rows as they are written: one strict JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = float | int | str | Sequence[int | str]
Row: TypeAlias = Mapping[str, Value]


def json_line(row: Row) -> bytes:
    """Return the row as one line of strict JSON, its end included.

    Numbers that are not finite become the strings "NaN", "Infinity" and "-Infinity".
    """
    text = json.dumps({name: _strict(value) for name, value in row.items()}, allow_nan=False)
    return text.encode() + b"\n"


def _strict(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def nine_digits(value: float) -> float:
    """Round to what a 32-bit float holds: nine significant digits, half the bytes of all digits."""
    return float(f"{value:.9g}")
