"""Spikes as intervals: onset, peak, end and how the series came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, Mask
from stabdiag.signals.baseline import Baseline

SETTLE_POINTS = 5  # points whose median must be back for a spike to have ended


@dataclass(frozen=True)
class Spike:
    """One excursion above the baseline; `onset`, `peak` and `end` are indices into the series.

    `end` is the first index back within the baseline that held before the onset, None when the
    series never came back. `excess` is the peak's height above that baseline in the unit of the
    series; `center` and `scale` are the baseline's. `half` is the number of points from the peak
    until half of the excess had gone (None: never).
    """

    onset: int
    peak: int
    end: int | None
    score: float
    excess: float
    center: float
    scale: float
    half: int | None

    @property
    def points(self) -> int:
        """Number of points from the onset to the end (to the peak where it has none)."""
        return (self.end if self.end is not None else self.peak + 1) - self.onset


def _came_back(x: F64, start: int, stop: int, limit: float) -> int | None:
    """First index in [start, stop) at or under `limit` whose next few points stay there."""
    with np.errstate(invalid="ignore"):
        under = np.flatnonzero(x[start:stop] <= limit) + start
    for i in under:
        ahead = x[i : min(i + SETTLE_POINTS, stop)]
        # a NaN ahead is no return: it counts as above
        if float(np.median(np.where(np.isnan(ahead), np.inf, ahead))) <= limit:
            return int(i)
    return None


def _walk_back(x: F64, z: F64, at: int, least: int, low: float) -> int:
    """Where the contiguous rise to `at` began: the first of the points scored above `low`."""
    onset = at
    while onset > least and np.isfinite(z[onset - 1]) and z[onset - 1] > low:
        onset -= 1
    return onset


def _one_spike(x: F64, z: F64, base: Baseline, at: int, least: int, low: float, stop: int) -> Spike:
    onset = _walk_back(x, z, at, least, low)
    center, scale = float(base.center[onset]), float(base.scale[onset])
    if not np.isfinite(center):
        center, scale = float(base.center[at]), float(base.scale[at])
    limit = center + low * max(scale, (x[at] - center) / max(z[at], 1.0) / 2)
    end = _came_back(x, at + 1, stop, limit)
    inside = x[onset : end if end is not None else stop]
    finite = np.where(np.isfinite(inside), inside, -np.inf)
    peak = onset + int(np.argmax(finite))
    excess = float(x[peak] - center)
    half_end = _came_back(x, peak + 1, stop, center + excess / 2)
    best = max(float(np.nanmax(z[onset : peak + 1])), float(z[at]))
    half = None if half_end is None else half_end - peak
    return Spike(onset, peak, end, best, excess, center, scale, half)


def find_spikes(
    x: F64,
    z: F64,
    base: Baseline,
    hot: Mask,
    *,
    low: float = 3.0,
    quiet_points: int = 100,
    starts: Sequence[int] = (),
) -> list[Spike]:
    """Find the intervals in which a series leaves its baseline upwards.

    The points `hot` seed a spike. Its onset is where the contiguous rise to the seed began (score
    above `low`), against the baseline frozen there; its end where the series is back within `low`
    spreads of it. A series that settles at a new level (no score above `low` for `quiet_points`)
    closes the spike without an end.

    Args:
        x: shape [N], any unit; NaN and infinities are passed over.
        z: shape [N], the scores of `x`.
        base: the baseline of `x`.
        hot: shape [N], the points that pass the thresholds of score and size.
        low: score that belongs to the spike's flanks.
        quiet_points: points without a score above `low` after which a new level has settled.
        starts: indices where a new segment begins; a spike does not reach back across one.

    Returns:
        Spikes in order of onset, not overlapping.
    """
    seeds = np.flatnonzero(hot)
    with np.errstate(invalid="ignore"):
        calm = ~(z > low)
    borders = np.asarray(sorted(starts), dtype=np.int64)
    spikes: list[Spike] = []
    cursor = 0
    position = 0
    while position < seeds.size:
        at = int(seeds[position])
        before = borders[borders <= at]
        least = max(cursor, int(before[-1]) if before.size else 0)
        spike = _one_spike(x, z, base, at, least, low, x.size)
        if spike.end is None:
            settled = _settled(calm, at + 1, quiet_points)
            if settled is not None:
                spike = _one_spike(x, z, base, at, least, low, settled)
            cursor = settled if settled is not None else x.size
        else:
            cursor = max(spike.end, at + 1)
        spikes.append(spike)
        position = int(np.searchsorted(seeds, cursor))
    return spikes


def _settled(
    calm: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], start: int, n: int
) -> int | None:
    """First index from `start` that begins `n` calm points in a row, None if there is none."""
    rest = calm[start:]
    if rest.size < n:
        return None
    loud = np.flatnonzero(~rest)
    edges = np.concatenate(([-1], loud, [rest.size]))
    gaps = np.flatnonzero(np.diff(edges) - 1 >= n)
    return None if gaps.size == 0 else start + int(edges[gaps[0]]) + 1
