"""Two series against each other at their common steps: where they part beyond their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, Mask
from stabdiag.signals.baseline import MAD_TO_SIGMA

SAME_RATE = 0.01  # of a learning rate: logged with few digits, it is the same


@dataclass(frozen=True)
class Gap:
    """The difference of two series over windows of their common points, [W] each.

    `mean` is candidate minus base, `error` the standard error of such a mean (one for all windows,
    in the unit of the series); `first` and `last` are the windows' indices of points.
    """

    mean: F64
    error: float
    first: I64
    last: I64

    def limit(self, *, together: int, errors: float, least: float) -> float:
        """What the mean of `together` neighbouring windows must pass to be no noise."""
        return float(max(errors * self.error / np.sqrt(together), least))


def common(step_a: I64, value_a: F64, step_b: I64, value_b: F64) -> tuple[I64, F64, F64]:
    """Return both series at the steps that both logged, shape [C] each; finite points alone.

    Where they are logged at other cadences and hardly meet, both are averaged over bins as wide as
    the coarser cadence, and `step` is the last of a bin: no point is invented.
    """
    ok_a, ok_b = np.isfinite(value_a), np.isfinite(value_b)
    step_a, value_a = _last_of_step(step_a[ok_a], value_a[ok_a])
    step_b, value_b = _last_of_step(step_b[ok_b], value_b[ok_b])
    step, at_a, at_b = np.intersect1d(step_a, step_b, assume_unique=True, return_indices=True)
    if 2 * step.size >= min(step_a.size, step_b.size):
        return step, value_a[at_a], value_b[at_b]
    return _binned(step_a, value_a, step_b, value_b)


def _last_of_step(step: I64, value: F64) -> tuple[I64, F64]:
    if not step.size:
        return step, value
    keep = np.append(np.diff(step) != 0, True)
    return step[keep], value[keep]


def _binned(step_a: I64, value_a: F64, step_b: I64, value_b: F64) -> tuple[I64, F64, F64]:
    if min(step_a.size, step_b.size) < 2:
        return step_a[:0], value_a[:0], value_b[:0]
    width = int(max(np.median(np.diff(step_a)), np.median(np.diff(step_b)), 1))
    bin_a, bin_b = step_a // width, step_b // width
    bins = np.intersect1d(bin_a, bin_b)
    means = [
        np.bincount(np.searchsorted(bins, b[np.isin(b, bins)]), v[np.isin(b, bins)], bins.size)
        / np.bincount(np.searchsorted(bins, b[np.isin(b, bins)]), minlength=bins.size)
        for b, v in ((bin_a, value_a), (bin_b, value_b))
    ]
    return (bins + 1) * width - 1, means[0], means[1]


def gap(base: F64, candidate: F64, *, windows: int) -> Gap:
    """Average the difference over windows, with the standard error of such an average.

    The error is the larger of two: that of independent points (median absolute successive
    difference), and that which the windows' means themselves show from one to the next, which
    holds the slow wander of two runs too (batch means; Flegal and Jones 2010). Shape in: [C] each,
    finite; at least `windows` points.
    """
    d = candidate - base
    edges = np.linspace(0, d.size, windows + 1).astype(np.int64)
    mean = np.add.reduceat(d, edges[:-1]) / np.diff(edges)
    points = MAD_TO_SIGMA * float(np.median(np.abs(np.diff(d)))) / np.sqrt(2.0)
    alone = points / np.sqrt(d.size / windows)
    second = np.abs(np.diff(mean, 2)) / np.sqrt(6.0)  # of curvature: a steady trend is no noise
    wander = MAD_TO_SIGMA * float(np.median(second)) if second.size >= 3 else 0.0
    return Gap(mean, max(alone, wander), edges[:-1], edges[1:] - 1)


def lasting(seen: Gap, *, together: int, errors: float, least: float) -> int | None:
    """Index of the window from which the difference lies beyond noise to the end, None where not.

    Means of `together` neighbouring windows must all, to the last, lie on one side beyond the
    larger of `errors` standard errors and `least` (in the unit of the series).
    """
    k = min(together, seen.mean.size)
    joint = np.convolve(seen.mean, np.full(k, 1.0 / k), mode="valid")
    limit = seen.limit(together=k, errors=errors, least=least)
    side = np.sign(joint[-1])
    beyond = side * joint > limit
    if not beyond[-1]:
        return None
    inside = np.flatnonzero(~beyond)
    first = int(inside[-1]) + 1 if inside.size else 0
    # of the windows that were averaged, the first that itself stands half as far off as the last
    alone = np.flatnonzero(side * seen.mean[first : first + k] > 0.5 * side * joint[-1])
    return first + (int(alone[0]) if alone.size else 0)


def rates_apart(rate: F64, other: F64) -> Mask:
    """Where two learning rates differ by more than their digits, [C]."""
    return np.abs(rate - other) > SAME_RATE * np.maximum(np.abs(rate), np.abs(other))


def equal_before(base: F64, candidate: F64) -> int:
    """Number of leading points that are equal to the last bit (NaN equals NaN)."""
    same = (base == candidate) | (np.isnan(base) & np.isnan(candidate))
    different = np.flatnonzero(~same)
    return int(different[0]) if different.size else int(base.size)
