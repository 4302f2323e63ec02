"""Each series against the others beside it: medians that leave the one looked at out."""

from __future__ import annotations

import numpy as np

from stabdiag.model import F64


def finite_median(value: F64) -> F64:
    """Median of the finite values of each row, [S] for [S, P]; NaN where there is none."""
    return _middle(*_sorted(value))


def median_without_each(value: F64) -> F64:
    """Median of the finite values of each row but the one that stands there, [S, P] for [S, P].

    NaN where no other is finite. One sort serves all P, so that ten thousand layers are no matter.
    """
    if value.shape[1] < 2:
        return np.full(value.shape, np.nan)
    ordered, count = _sorted(value)
    rank = np.empty(value.shape, dtype=np.int64)
    order = np.argsort(np.where(np.isfinite(value), value, np.inf), axis=1, kind="stable")
    np.put_along_axis(rank, order, np.arange(value.shape[1])[None, :], axis=1)
    left = count[:, None] - np.isfinite(value)
    # behind the rank of the one left out everything moves up by a place
    low, high = np.maximum(left - 1, 0) // 2, left // 2
    high = np.minimum(high, np.maximum(left - 1, 0))
    pair = [
        np.take_along_axis(ordered, np.minimum(at + (at >= rank), value.shape[1] - 1), axis=1)
        for at in (low, high)
    ]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(left > 0, (pair[0] + pair[1]) / 2, np.nan), dtype=np.float64)


def largest_other(value: F64) -> F64:
    """Largest finite value beside each, [P]; NaN where no other is finite."""
    known = np.where(np.isfinite(value), value, -np.inf)
    if known.size < 2:
        return np.full(value.shape, np.nan)
    first = int(np.argmax(known))
    second = float(np.max(np.delete(known, first)))
    out = np.full(value.shape, known[first])
    out[first] = second
    return np.where(np.isfinite(out), out, np.nan)


def _sorted(value: F64) -> tuple[F64, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Rows in order with what is not finite at their end, and how many are finite in each."""
    finite = np.isfinite(value)
    return np.sort(np.where(finite, value, np.inf), axis=1), finite.sum(axis=1)


def _middle(ordered: F64, count: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> F64:
    if ordered.shape[1] == 0:
        return np.full(ordered.shape[0], np.nan)
    row = np.arange(ordered.shape[0])
    last = np.maximum(count - 1, 0)
    low, high = ordered[row, last // 2], ordered[row, np.minimum(count // 2, last)]
    return np.asarray(np.where(count > 0, (low + high) / 2, np.nan), dtype=np.float64)
