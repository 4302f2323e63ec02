"""Where a number becomes text: the one place for digits, separators, NaN and infinities."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

JSON_DIGITS = 6  # enough for every reader; hides the last bits, which differ between machines
TEXT_DIGITS = 3
_LARGE = 1e6
_SMALL = 1e-3
_EXACT_INTEGERS = 2.0**53
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def number(value: float | None, digits: int = TEXT_DIGITS) -> str:
    """Return `value` for a reader: `digits` significant digits, thousands separated.

    NaN and the infinities are the words NaN, Inf and -Inf; None (not logged) is a dash.
    """
    if value is None:
        return "-"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0:
        return "0"  # not -0
    size = abs(value)
    if size >= _LARGE or size < _SMALL:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return _trimmed(f"{value:,.{decimals}f}")


def count(value: int, noun: str, plural: str = "") -> str:
    """Return "1 point", "2,000 points": the number with its noun."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def percent(probability: float) -> str:
    """Return a probability as whole percent; never 0 % or 100 %, which no model can claim."""
    if math.isnan(probability):
        return "NaN"
    if probability < 0.005:
        return "<1 %"
    if probability > 0.995:
        return ">99 %"
    return f"{100 * probability:.0f} %"


def times(ratio: float | None) -> str:
    """Return a ratio as "3.4x", NaN as it is, a dash where there is none."""
    return number(ratio) if ratio is None or math.isnan(ratio) else f"{number(ratio)}x"


def nats(weight: float) -> str:
    """Return the weight of a piece of evidence with its sign and one decimal."""
    return f"{weight:+.1f}" if math.isfinite(weight) else number(weight)


def steps(first: int | None, last: int | None = None) -> str:
    """Return "step 700", "steps 700 to 720" or "no step"; plain digits, to be pasted."""
    if first is None:
        return "no step"
    if last is None or last == first:
        return f"step {first}"
    return f"steps {first} to {last}"


def strict_json(value: Any) -> Json:
    """Return `value` as what a strict JSON parser reads, or raise TypeError.

    A record becomes an object of its fields in order.
    Floats keep `JSON_DIGITS` significant digits (whole numbers stay exact); NaN and the infinities
    become the strings "NaN", "Infinity" and "-Infinity"; a lone surrogate, which no strict parser
    takes, becomes U+FFFD.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _json_float(float(value))
    if isinstance(value, Mapping):
        return {str(strict_json(str(key))): strict_json(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return strict_json(vars(value))
    if isinstance(value, list | tuple):
        return [strict_json(item) for item in value]
    raise TypeError(f"a report holds a {type(value).__name__}, which is not JSON: {value!r}")


def _json_float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return value
    return float(f"{value:.{JSON_DIGITS}g}")


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
