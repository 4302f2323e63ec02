"""The handbook's rule taken plainly: rolling z-scores, and which of the two spiked first.

Six of them stand beside the tool's answers: mean and standard deviation at z 3 and at z 6 over 50
points, median and MAD at z 6 over 100 points; each from the first loss spike or from the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tests.accuracy.answers import NAMED_LAYERS, Answer

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAD_TO_SIGMA = 1.4826
AROUND_STEPS = 50  # a grad-norm spike before, or a NaN after, is looked for so far away
LAYER_WINDOW = 50  # points of a layer's own past that its value at the spike is compared with
SMALLEST_SPREAD = 1e-12  # a flat past has no spread; any move off it counts


@dataclass(frozen=True)
class PlainRule:
    """One way to find spikes: `limit` in standard deviations, `window` in past points."""

    name: str
    spread: Literal["mean_std", "median_mad"]
    limit: float
    window: int
    largest: bool


PLAIN_RULES = (
    PlainRule("A", "mean_std", 3.0, 50, largest=False),
    PlainRule("A'", "mean_std", 3.0, 50, largest=True),
    PlainRule("B", "mean_std", 6.0, 50, largest=False),
    PlainRule("B'", "mean_std", 6.0, 50, largest=True),
    PlainRule("C", "median_mad", 6.0, 100, largest=False),
    PlainRule("C'", "median_mad", 6.0, 100, largest=True),
)


@dataclass(frozen=True)
class Points:
    """The logged points of one series, shape [N] each; values may be NaN or infinite."""

    step: I64
    value: F64


NO_POINTS = Points(np.empty(0, np.int64), np.empty(0, np.float64))


def past_z(value: F64, rule: PlainRule) -> F64:
    """Score each finite point against the `window` finite points before it, shape [N].

    NaN: not tested (too little past, or not finite).
    """
    z = np.full(value.shape, np.nan)
    finite = np.flatnonzero(np.isfinite(value))
    if finite.size <= rule.window:
        return z
    now = value[finite]
    past = sliding_window_view(now, rule.window)[:-1]
    if rule.spread == "mean_std":
        level, spread = past.mean(axis=1), past.std(axis=1)
    else:
        level = np.median(past, axis=1)
        spread = MAD_TO_SIGMA * np.median(np.abs(past - level[:, None]), axis=1)
    z[finite[rule.window :]] = (now[rule.window :] - level) / np.maximum(spread, SMALLEST_SPREAD)
    return z


def plain_answer(
    rule: PlainRule,
    loss: Points,
    grad_norm: Points,
    layers_at: Callable[[int], tuple[str, ...]],
) -> Answer:
    """Answer by the plain rule alone.

    A loss spike is a point above the limit, or a loss that is not finite. A NaN or Inf of loss or
    grad norm at the spike or soon after it: overflow. Else a grad-norm spike strictly before it:
    optimizer. Else: data. No loss spike: none. `layers_at` names the layers at the spike.
    """
    scores = past_z(loss.value, rule)
    broken = ~np.isfinite(loss.value)
    spikes = np.flatnonzero(broken | (np.nan_to_num(scores, nan=-np.inf) > rule.limit))
    if spikes.size == 0:
        return Answer("none")
    at = spikes[0]
    if rule.largest:
        height = np.where(broken, np.inf, np.nan_to_num(scores, nan=-np.inf))
        at = np.argmax(height)
    onset = int(loss.step[at])
    return Answer(
        cause=_cause(rule, onset, loss, grad_norm),
        onset_step=onset,
        layers=layers_at(onset),
        loud=1,
    )


def _cause(rule: PlainRule, onset: int, loss: Points, grad_norm: Points) -> str:
    not_finite = np.concatenate(
        [series.step[~np.isfinite(series.value)] for series in (loss, grad_norm)]
    )
    if np.any((not_finite >= onset) & (not_finite <= onset + AROUND_STEPS)):
        return "overflow"
    above = np.nan_to_num(past_z(grad_norm.value, rule), nan=-np.inf) > rule.limit
    spikes = grad_norm.step[above]
    if np.any((spikes < onset) & (spikes >= onset - AROUND_STEPS)):
        return "optimizer"
    return "data"


def layers_by_ratio(layers: Mapping[str, Points], step: int) -> tuple[str, ...]:
    """Name the three layers whose value at `step` is the largest multiple of their own past.

    A value that is not finite counts as the largest; a layer not logged at `step` is left out.
    """
    ratios = {}
    for layer, points in layers.items():
        at = np.flatnonzero(points.step == step)
        past = points.value[(points.step < step) & np.isfinite(points.value)][-LAYER_WINDOW:]
        if at.size == 0 or past.size == 0:
            continue
        now, usual = float(points.value[at[-1]]), float(np.median(past))
        ratios[layer] = now / max(usual, SMALLEST_SPREAD) if np.isfinite(now) else np.inf
    return tuple(sorted(ratios, key=lambda layer: (-ratios[layer], layer))[:NAMED_LAYERS])
