"""What a series was expected to be at each point, from its past only, and how far off it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from stabdiag.model import F64
from stabdiag.signals.median import median, row_medians

MAD_TO_SIGMA = 1.4826  # 1 / Phi^-1(3/4): the MAD estimates sigma for normal data
CORRELATED = 0.8  # a residual spread this far above the differences' means correlated noise
LEAST_TESTED = 60  # scores that make a tail
EXACT_POINTS = (
    50_000  # up to here every point has its own window; beyond, one window serves several
)


@dataclass(frozen=True)
class Baseline:
    """Expected level and robust spread at each point, shape [N], in the unit of the series.

    NaN where the past holds too few finite points, and at non-finite points. `correlation` is the
    spread of the residuals over that of the neighbours' differences: 1 for independent noise,
    more for a loss that the logger smoothed.
    """

    center: F64
    scale: F64
    correlation: F64 | None = None


def usual_level(past: F64) -> tuple[float, float]:
    """Median and robust spread (1.4826 MAD) of finite, non-empty `past`, in its unit.

    The spread is at least 1 % of the level: a statistic that hardly moves is not odd when it does.
    """
    middle = median(past)
    spread = MAD_TO_SIGMA * median(np.abs(past - middle))
    return middle, max(spread, 0.01 * abs(middle), 1e-9)


def trailing_median(y: F64, window: int, min_points: int) -> F64:
    """Median of up to `window` points before each point, [N]; NaN for the first `min_points`."""
    n = y.size
    out = np.full(n, np.nan)
    if n <= min_points:
        return out
    grown = min(window, n)
    out[min_points:grown] = _growing_median(y[:grown], min_points)
    if n <= window:
        return out
    stride = max(1, min(n // EXACT_POINTS, window // 4))
    middle = row_medians(sliding_window_view(y, window)[: n - window : stride])
    out[window:] = np.repeat(middle, stride)[: n - window]
    return out


def _growing_median(y: F64, min_points: int) -> F64:
    """Medians of the first `min_points`, `min_points` + 1, ... of the points before each, [M - m]."""
    counts = np.arange(min_points, y.size)
    if counts.size == 0:
        return np.zeros(0)
    before = np.arange(y.size) < counts[:, None]
    ordered = np.sort(np.where(before, y, np.inf), axis=1)
    row = np.arange(counts.size)
    low, high = ordered[row, (counts - 1) // 2], ordered[row, counts // 2]
    return np.asarray((low + high) / 2, dtype=np.float64)


def median_of_five(y: F64) -> F64:
    """Median of each point and the four after it, [N - 4]; the same as a sort's, without one.

    The median of five is the middle of: the larger of the two pairs' lesser ends, the lesser of
    their larger ends, and the fifth.
    """
    a, b, c, d, e = (y[i : y.size - 4 + i] for i in range(5))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray(
        np.maximum(np.minimum(low, high), np.minimum(np.maximum(low, high), e)), dtype=np.float64
    )


def trailing_baseline(x: F64, *, window: int, level_window: int, min_points: int) -> Baseline:
    """Expect the median of the last few points, with the spread of the past.

    The level follows from the `level_window` finite points before (short, so that a falling loss
    does not hide a spike under its own past). The spread over up to `window` points before is the
    larger of two: the median absolute difference of neighbours over sqrt(2), which no trend
    stretches, and 0.8 times the median absolute residual, which catches noise that is correlated
    (less the residual's own trailing median, by which the level lags behind a trend); both times
    1.4826. The point itself is in neither, so that a spike can't hide in its own
    baseline. Series of more than 50,000 points share one window between neighbours.

    Args:
        x: shape [N]; NaN and infinities are skipped over, never part of a baseline.
        window: number of past points (not steps) for the spread.
        level_window: number of past points for the level.
        min_points: finite points needed before anything is expected.

    Returns:
        Baseline of shape [N].

    Source: Iglewicz and Hoaglin (1993), modified z-score, made trailing; the difference-based
    spread is von Neumann's (1941), made robust.
    """
    finite = np.isfinite(x)
    if finite.all():
        return _finite_baseline(x, window, level_window, min_points)
    found = _finite_baseline(x[finite], window, level_window, min_points)

    def spread_out(some: F64) -> F64:
        out = np.full(x.shape, np.nan)
        out[finite] = some
        return out

    correlation = None if found.correlation is None else spread_out(found.correlation)
    return Baseline(spread_out(found.center), spread_out(found.scale), correlation)


def _finite_baseline(y: F64, window: int, level_window: int, min_points: int) -> Baseline:
    """The baseline of finite points, [N]; few arrays at a time, for they are long."""
    if y.size <= min_points:
        nothing = np.full(y.shape, np.nan)
        return Baseline(nothing, nothing, nothing)
    first = max(2, min_points // 2)
    rest = max(2, min_points - first)
    level = trailing_median(y, level_window, first)
    # less its own trailing median: how far the level lags behind a falling loss is no noise
    lag = (y - level)[first:]
    lag -= np.nan_to_num(trailing_median(lag, level_window, 3))
    slow = trailing_median(np.abs(lag, out=lag), window, rest)
    step = np.abs(np.diff(y, prepend=y[0])) / np.sqrt(2.0)
    quick = trailing_median(step[first:], window, rest)
    unknown = np.full(first, np.nan)
    scale = MAD_TO_SIGMA * np.maximum(quick, CORRELATED * slow)
    slow /= np.maximum(quick, 1e-300)
    return Baseline(level, np.append(unknown, scale), np.append(unknown, slow))


def score(x: F64, baseline: Baseline, floor: float) -> F64:
    """Robust standard deviations above (+) or below (-) the baseline, shape [N].

    NaN means not tested: too short a past, or a non-finite point (those are step 3's).
    `floor` is the smallest spread allowed, in the unit of `x`: a flat past has MAD 0, and a
    division by it would flag rounding noise.
    """
    if floor <= 0:
        raise ValueError(f"need floor > 0, got {floor=}")
    ok = np.isfinite(x) & np.isfinite(baseline.scale)
    z = np.full(x.shape, np.nan)
    z[ok] = (x[ok] - baseline.center[ok]) / np.maximum(baseline.scale[ok], floor)
    return z


class Tail:
    """The upper tail of a run's own scores, from which its thresholds follow.

    The largest max(20, sqrt(N)) scores are taken as a power law, P(Z > z) ~ z^-a, with `a` from
    their *median* log excess so that a few true spikes don't stretch it.

    Source: Hill (1975), with the median in place of the mean.
    """

    def __init__(self, z: F64) -> None:
        """Take scores, [N]; NaN is not tested. Leave sustained excursions out."""
        self._tested = z[np.isfinite(z)]
        self._count = max(20, int(np.sqrt(self._tested.size)))
        if self._tested.size >= LEAST_TESTED:
            first = self._tested.size - self._count
            top = np.partition(self._tested, first)[first:]
            self._edge = max(float(top.min()), 1.0)
            self._middle = float(np.median(top))

    def threshold(self, *, false_alarms: float, least: float) -> float:
        """Score above which `false_alarms` points of a healthy run are expected, from `least` up."""
        size = self._tested.size
        if size < LEAST_TESTED:
            return least
        if false_alarms >= self._count:
            share = 1.0 - min(1.0, false_alarms / size)
            return max(least, float(np.quantile(self._tested, share)))
        if self._middle <= self._edge:
            return least
        halvings = np.log2(self._count / false_alarms)
        return max(least, float(self._edge * (self._middle / self._edge) ** halvings))
