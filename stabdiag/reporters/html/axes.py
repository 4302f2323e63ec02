"""The axis of a picture: where a value lies on it, and which values it names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_SPREAD = 20.0  # highest over lowest: from there on the axis is logarithmic
_MARKS = 5  # named values, about
_MARGIN = 0.06  # of the axis, above the highest and below the lowest value


@dataclass(frozen=True)
class Axis:
    """The range of the values, and whether their logarithms are drawn."""

    low: float
    high: float
    log: bool

    def share(self, value: float) -> float:
        """Height of a value, 0 to 1, between the margins."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        inside = (at / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        return _MARGIN + inside * (1 - 2 * _MARGIN)


def axis_of(values: Sequence[float]) -> Axis | None:
    """Return the axis of a series, None where nothing is finite."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    return Axis(low, high, log=low > 0 and high / low > _SPREAD)


def marks(axis: Axis) -> list[float]:
    """Return the values to name on an axis: round ones, or its ends where there are none."""
    if axis.log:
        low, high = math.ceil(math.log10(axis.low)), math.floor(math.log10(axis.high))
        every = max(1, (high - low) // _MARKS + 1)
        found = [10.0**power for power in range(low, high + 1, every)]
    else:
        found = nice(axis.low, axis.high, _MARKS)
    found = [value for value in found if axis.low <= value <= axis.high]  # rounding can leave it
    return found if len(found) > 1 else sorted({axis.low, axis.high})


def nice(low: float, high: float, most: int) -> list[float]:
    """Return at most about `most` multiples of 1, 2 or 5 times a power of ten in a range.

    Where floating point has none, such as in the range of the smallest numbers, `low` alone.
    """
    width = high - low
    if not (1e-300 * most < width < 1e307) or width < 1e-12 * max(abs(low), abs(high)):
        return [low]
    power = 10.0 ** math.floor(math.log10(width / most))
    step = power * next((by for by in (1, 2, 5, 10) if width / (power * by) <= most), 20)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [at for k in range(first, last + 1) if low <= (at := k * step) <= high]
