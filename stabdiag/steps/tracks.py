"""Series in the order in which they happened, with their baselines: what every step looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, Mask, Run, Series
from stabdiag.rules import Limits
from stabdiag.rules.timeline import GRAD_SPIKE, LEVEL_SHIFT, LOSS_SPIKE
from stabdiag.settings import Settings
from stabdiag.signals.baseline import (
    Baseline,
    Tail,
    score,
    trailing_baseline,
)
from stabdiag.signals.median import median
from stabdiag.signals.trend import saturated_share

FLOOR_SHARE = 0.002  # of the loss range: a spread below this is rounding (five digits are logged)
SHORT_RUN_POINTS = 2_000
SHORT_RUN_CAP = 4.0
LOG_FLOOR = 0.05  # of a log: 5 % steps of a norm are never a spike


@dataclass(frozen=True)
class Track:
    """One series in execution order, shape [N]: what a restart overwrote is still in its place."""

    name: str
    step: I64
    value: F64
    segment: I64
    inferred: Mask
    cadence: int

    @property
    def borders(self) -> list[int]:
        """Indices at which a new segment begins."""
        return (np.flatnonzero(np.diff(self.segment) != 0) + 1).tolist()

    def at(self, segment: int, step: int) -> int:
        """Index of the first point at or after `step` of `segment`."""
        start, stop = np.searchsorted(self.segment, [segment, segment + 1])
        return int(start + np.searchsorted(self.step[start:stop], step))


def track(run: Run, name: str) -> Track | None:
    """The series `name` of `run` in execution order, None where it was not logged."""
    kept = run.series.get(name)
    if kept is None or kept.points == 0:
        return None
    if name not in run.abandoned:  # in order as it is: nothing was overwritten
        return Track(name, kept.step, kept.value, kept.segment, kept.inferred, kept.cadence)
    parts: list[Series] = [kept, run.abandoned[name]]
    step = np.concatenate([p.step for p in parts])
    segment = np.concatenate([p.segment for p in parts])
    order = np.lexsort((step, segment))
    return Track(
        name=name,
        step=step[order],
        value=np.concatenate([p.value for p in parts])[order],
        segment=segment[order],
        inferred=np.concatenate([p.inferred for p in parts])[order],
        cadence=kept.cadence,
    )


@dataclass(frozen=True)
class Scored:
    """A track with its baseline and scores, [N] each, in the unit of `x`.

    `x` is the value itself (loss) or its log (norms). `unit` is the size against which heights
    are judged: the range that the loss covered; 1 for logs. `threshold`, `pair_threshold`,
    `joint_threshold` and `median_threshold` are the scores that a lone point, two neighbours, a
    point beside a grad-norm spike, and the median of five must pass.
    """

    track: Track
    x: F64
    base: Baseline
    z: F64
    unit: float
    floor: float
    threshold: float
    pair_threshold: float = 0.0
    joint_threshold: float = 0.0
    median_threshold: float = 0.0

    @property
    def excess(self) -> F64:
        """Height above the baseline as a share of `unit`, [N]."""
        return (self.x - self.base.center) / self.unit


def loss_unit(value: F64) -> float:
    """Size against which heights of the loss are judged: from its first level to its lowest.

    At least a quarter of the usual level, so that a fine-tune that hardly moves is not judged by
    its noise; free of any absolute constant, so that scaling the loss changes nothing.
    """
    finite = value[np.isfinite(value)]
    if finite.size == 0:
        return 1.0
    first = float(np.max(finite[: min(5, finite.size)]))
    half = finite[: max(5, finite.size // 2)]
    low = float(np.quantile(finite, 0.02))
    usual = abs(median(half))
    return max(first - low, 0.25 * min(usual, abs(first) + abs(low)), 1e-12)


def is_signed(value: F64) -> bool:
    """Whether a loss changes sign in earnest (policy losses): then lower is not better."""
    finite = value[np.isfinite(value)]
    return bool(finite.size and np.mean(finite < 0) > 0.05)


def _windows(points: int, window: int | None) -> tuple[int, int, int]:
    """(window, level window, least points) for a series of so many points."""
    wide = window if window is not None else 100
    level = int(np.clip(points // 12, 5, max(5, min(16, wide))))
    return wide, level, 10


def score_loss(loss: Track, limits: Limits, settings: Settings, weight: float = 1.0) -> Scored:
    """Score the loss as it is (signed losses too); SD101's thresholds.

    Each point stands for `weight` points of the log.
    """
    finite = int(np.count_nonzero(np.isfinite(loss.value)))
    wide, level, points = _windows(finite, settings.window)
    base = trailing_baseline(loss.value, window=wide, level_window=level, min_points=points)
    unit = loss_unit(loss.value)
    floor = FLOOR_SHARE * unit
    z = score(loss.value, base, floor)
    thresholds = _thresholds(z, finite, weight, limits, settings.spike_threshold)
    return Scored(loss, loss.value, base, z, unit, floor, *thresholds)


def _thresholds(
    z: F64, points: int, weight: float, limits: Limits, z_user: float | None
) -> tuple[float, float, float, float]:
    """Scores that a lone point, a pair, a joint point, and the median of five must pass.

    The user's own for all, else what the run's length and tail ask for: a healthy run of N
    independent points with P(Z > z) = p shows N p lone points, N p^2 pairs and 10 N p^3 windows of
    five with three above. The points scored of a very long log are those with its jumps: what may
    be above of all its points, only one in `weight` of it may be of these.
    """
    points = round(points * weight)
    alarms = limits(LOSS_SPIKE, "false_alarms")
    least = limits(LOSS_SPIKE, "min_score")
    joint = limits(LOSS_SPIKE, "joint_score")
    median_of_five = 1.25 / np.sqrt(5.0) * limits(LEVEL_SHIFT, "min_score")
    if z_user is not None:
        strict = max(1.0, z_user / least)
        return z_user, z_user, strict * joint, strict * median_of_five
    tail = Tail(_without_events(z))
    lone = tail.threshold(false_alarms=alarms / weight, least=least)
    if points <= SHORT_RUN_POINTS:  # it shows too little of its tail to ask for more
        lone = min(lone, SHORT_RUN_CAP * least)
    pair = tail.threshold(false_alarms=np.sqrt(alarms * points) / weight, least=least)
    triple = (0.1 * alarms * points**2) ** (1 / 3) / weight
    five = tail.threshold(false_alarms=triple, least=median_of_five)
    if points > SHORT_RUN_POINTS:  # hard batches raise both: with many points that is chance
        joint = tail.threshold(false_alarms=10 * alarms / weight, least=joint)
    return lone, min(pair, lone), min(joint, lone), five


def score_norm(norm: Track, limits: Limits, window: int | None) -> Scored:
    """Score a norm on the log scale; SD102's thresholds. Zeros and non-finite are not tested."""
    value = norm.value
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(np.isfinite(value) & (value > 0), np.log(np.maximum(value, 1e-300)), np.nan)
    wide, level, least = _windows(int(np.count_nonzero(np.isfinite(x))), window)
    base = trailing_baseline(x, window=wide, level_window=level, min_points=least)
    z = score(x, base, LOG_FLOOR)
    return Scored(norm, x, base, z, 1.0, LOG_FLOOR, limits(GRAD_SPIKE, "min_score"))


def _without_events(z: F64, *, high: float = 6.0, run: int = 3, after: int = 100) -> F64:
    """`z` without the points in and shortly after sustained excursions, for the tail estimate."""
    with np.errstate(invalid="ignore"):
        hot = np.flatnonzero(z > high)
    clean = z.copy()
    clean[: min(30, z.size // 10)] = np.nan
    if hot.size == 0:
        return clean
    for group in np.split(hot, np.flatnonzero(np.diff(hot) > 2) + 1):
        if group.size >= run:
            clean[group[0] : group[-1] + after] = np.nan
    return clean


def is_post_clip(norm: Track, min_share: float) -> bool:
    """Whether a grad norm sits at its own maximum most of the time."""
    finite = norm.value[np.isfinite(norm.value)]
    return bool(finite.size >= 20 and finite.max() > 0 and saturated_share(finite) > min_share)
