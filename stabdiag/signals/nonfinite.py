"""Non-finite values as stretches: where they begin, how long they last, whether they heal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64


@dataclass(frozen=True)
class Stretch:
    """Non-finite points in a row: indices [first, last], and whether finite ones follow."""

    first: int
    last: int
    heals: bool
    has_nan: bool
    has_inf: bool

    @property
    def points(self) -> int:
        """Number of points in the stretch."""
        return self.last - self.first + 1


def stretches(value: F64) -> list[Stretch]:
    """Find the stretches of NaN or Inf in a series, in order."""
    bad = ~np.isfinite(value)
    if not bad.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate(([False], bad, [False])).astype(np.int8)))
    found = []
    for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        part = value[first:stop]
        found.append(
            Stretch(
                first,
                stop - 1,
                stop < value.size,
                bool(np.isnan(part).any()),
                bool(np.isinf(part).any()),
            )
        )
    return found


def densest(at: np.ndarray[tuple[int, ...], np.dtype[np.int64]], span: int) -> tuple[int, int]:
    """Most of the sorted positions `at` within any `span`, and the position where that begins."""
    if at.size == 0:
        return 0, -1
    count = np.searchsorted(at, at + span, side="left") - np.arange(at.size)
    best = int(np.argmax(count))
    return int(count[best]), int(at[best])
