"""Slow signs over a whole series: growth, divergence, plateau, saturation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64
from stabdiag.signals.baseline import MAD_TO_SIGMA
from stabdiag.signals.median import median, row_medians


@dataclass(frozen=True)
class Growth:
    """How a positive series grew: end over start, and the fastest sustained stretch.

    `ratio` is the median of the last points over that of the first; `per_window` the median
    factor per `window_steps`; `log_linear` the share of the log's variance that a straight line
    explains (1: exponential growth); `rising` the share of the steps between points that rise.
    """

    ratio: float
    per_window: float
    window_steps: int
    log_linear: float
    rising: float
    fastest: float
    fastest_step: int


def growth(step: I64, value: F64, *, window_steps: int) -> Growth | None:
    """Measure the growth of a positive series, None with fewer than 5 finite positive points."""
    ok = np.isfinite(value) & (value > 0)
    s, y = step[ok].astype(np.float64), np.log(value[ok])
    if y.size < 5:
        return None
    edge = max(1, min(5, y.size // 10))
    ratio = float(np.exp(np.clip(np.median(y[-edge:]) - np.median(y[:edge]), -700, 700)))
    span = s[-1] - s[0]
    lag = max(1, round(window_steps * (y.size - 1) / span)) if span > 0 else 1
    lag = min(lag, y.size - 1)
    gain = (y[lag:] - y[:-lag]) * (window_steps / np.maximum(s[lag:] - s[:-lag], 1.0))
    variance = float(np.var(y))
    explained = _explained(s, y, variance)
    at = int(np.argmax(gain))
    return Growth(
        ratio=ratio,
        per_window=float(np.exp(np.clip(median(gain), -700, 700))),
        window_steps=window_steps,
        log_linear=explained,
        rising=float(np.mean(np.diff(y) > 0)),
        fastest=float(np.exp(np.clip(gain[at], -700, 700))),
        fastest_step=int(s[at]),
    )


def _explained(x: F64, y: F64, variance: float) -> float:
    """Share of the variance of `y` that the line of least squares over `x` explains; 0: none."""
    away = x - float(np.mean(x))
    square = float(np.sum(away * away))
    if variance <= 0 or square <= 0:
        return 0.0
    slope = float(np.sum(away * (y - float(np.mean(y))))) / square
    return min(1.0, slope * slope * square / (variance * y.size))


@dataclass(frozen=True)
class Ending:
    """Where a loss stands at its end against the best level it had reached before."""

    best: float
    best_index: int
    last: float
    rise: float  # last - best, in the unit of the loss
    noise: float  # robust spread of the last part


def ending(x: F64, *, window: int) -> Ending | None:
    """Compare the last level with the best earlier one; medians over `window` finite points.

    None with fewer than 2 windows. A NaN or Inf tail is step 3's matter and is skipped here.
    """
    finite = np.flatnonzero(np.isfinite(x))
    y = x[finite]
    if y.size < 2 * window:
        return None
    parts = y.size // window
    tail = y[y.size - parts * window :].reshape(parts, window)
    level = row_medians(tail)
    best = int(np.argmin(level))
    steps = np.abs(np.diff(y[-2 * window :])) / np.sqrt(2.0)
    index = int(finite[y.size - parts * window + best * window])
    return Ending(
        best=float(level[best]),
        best_index=index,
        last=float(level[-1]),
        rise=float(level[-1] - level[best]),
        noise=MAD_TO_SIGMA * float(np.median(steps)),
    )


LEVELS = 20  # levels that a series is parted into for a slow rise


def slow_rise(x: F64, *, floor: float) -> Ending | None:
    """A level that climbs from its best to the end, level by level, beyond its noise.

    The series is parted into 20 levels (medians). The best must lie in the first two thirds; from
    it on at least four in five steps go up, and the end is more than 8 standard errors of a level
    above it. None otherwise, or with fewer than 100 finite points.
    """
    finite = np.flatnonzero(np.isfinite(x))
    if finite.size < 100:
        return None
    y = x[finite]
    parts = np.array_split(y, LEVELS)
    level = np.array([median(p) for p in parts])
    best = int(np.argmin(level))
    if best > 2 * LEVELS // 3:
        return None
    climb = np.diff(level[best:])
    noise = MAD_TO_SIGMA * median(np.abs(np.diff(y))) / np.sqrt(2.0)
    error = 1.25 * max(noise, floor) / np.sqrt(y.size / LEVELS)
    rise = float(level[-1] - level[best])
    if float(np.mean(climb > 0)) < 0.8 or rise < 8.0 * error * np.sqrt(2.0):
        return None
    start = int(finite[sum(p.size for p in parts[:best])])
    return Ending(float(level[best]), start, float(level[-1]), rise, noise)


def saturated_share(value: F64) -> float:
    """Share of the finite points that equal the maximum to 1 %: a norm logged after clipping."""
    y = value[np.isfinite(value)]
    if y.size == 0:
        return 0.0
    top = float(np.max(y))
    return float(np.mean(np.abs(y - top) <= 0.01 * abs(top))) if top != 0 else 1.0
