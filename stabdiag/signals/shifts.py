"""Lasting changes of level: a score for what a single point can't show."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stabdiag.model import F64
from stabdiag.signals.baseline import MAD_TO_SIGMA, Baseline, median_of_five

SMOOTHED = 1.6  # from here on residuals wider than the differences mean a smoothed series
MEDIAN_LOSS = 1.25  # the median of k normal points has 1.25 times the spread of their mean


def ahead_median(filled: F64, ahead: int) -> F64:
    """Median of each point and the `ahead` - 1 after it, [N - ahead + 1]; no NaN in `filled`."""
    if ahead == 5:
        return median_of_five(filled)
    return np.asarray(np.median(sliding_window_view(filled, ahead), axis=1), dtype=np.float64)


def shift_scores(x: F64, base: Baseline, floor: float, ahead: int) -> F64:
    """Score the median of the next `ahead` points against the baseline before them, [N].

    z[t] = (median(x[t : t+ahead]) - center[t]) / (1.25 max(scale[t], floor) / sqrt(ahead)). NaN
    where the baseline is unknown or fewer than `ahead` points are left. A median, so that one
    spike can't pass for a new level.

    Source: two-sample median shift with a frozen baseline (Shewhart chart of medians).
    """
    z = np.full(x.shape, np.nan)
    if x.size < ahead + 1:
        return z
    n = x.size - ahead + 1
    filled = np.where(np.isfinite(x), x, np.inf)
    median = ahead_median(filled, ahead)
    # smoothed points are not so many independent ones: no more gain than the noise allows
    known = np.ones(n) if base.correlation is None else base.correlation[:n]
    gain = np.nan_to_num(known, nan=1.0) / SMOOTHED
    gain = np.clip(gain, 1.0, np.sqrt(ahead) / MEDIAN_LOSS)
    spread = MEDIAN_LOSS * np.maximum(base.scale[:n], floor) / np.sqrt(ahead) * gain
    ok = np.isfinite(median) & np.isfinite(spread) & np.isfinite(base.center[:n])
    z[:n][ok] = (median[ok] - base.center[:n][ok]) / spread[ok]
    return z


def level_change(before: F64, after: F64, floor: float) -> tuple[float, float]:
    """Change of the median from `before` to `after`, in its unit and in robust standard errors.

    Both need at least 3 finite points, else (nan, nan). The spread is that of the differences of
    neighbours within the two, so that a trend doesn't hide the change.
    """
    a, b = before[np.isfinite(before)], after[np.isfinite(after)]
    if a.size < 3 or b.size < 3:
        return float("nan"), float("nan")
    steps = np.concatenate((np.abs(np.diff(a)), np.abs(np.diff(b)))) / np.sqrt(2.0)
    spread = max(MAD_TO_SIGMA * float(np.median(steps)), floor)
    change = float(np.median(b) - np.median(a))
    error = MEDIAN_LOSS * spread * np.sqrt(1.0 / a.size + 1.0 / b.size)
    return change, change / float(error)
