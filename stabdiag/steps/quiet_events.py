"""Events without a rise of the loss: a growing grad norm, an odd batch, a loss of exactly 0."""

from __future__ import annotations

import numpy as np

from stabdiag.model import F64
from stabdiag.rules.batch import BATCH_OUTLIER
from stabdiag.rules.timeline import GRAD_GROWTH
from stabdiag.signals.baseline import usual_level
from stabdiag.signals.median import row_medians
from stabdiag.steps.events import CONVERGED, MANY, Event
from stabdiag.steps.view import View

LASTING_BLOCKS = 4  # blocks in a row far above the lowest level: less is a spike
BLOCK_POINTS = 20  # logged points whose median is a level of the grad norm
SETTLED_ROWS = 5  # rows after an odd batch that must be as usual: else the data changed for good
FAINT_SCORE, FAINT_RATIO = 4.0, 1.5  # a grad-norm spike this small tells
FAINT_TIMES = 3.0  # ... where the batch is so many times further off than SD201 asks
GRAD_SCORE = 6.0  # with an odd batch, a smaller grad-norm spike than SD102's tells


def grad_growth(view: View) -> list[Event]:
    """A grad norm that rose far above its lowest level after the first tenth, and stayed there.

    Levels are medians of blocks, so that no lone spike makes one; four blocks in a row are needed.
    """
    g = view.grad
    if g is None:
        return []
    start = g.x.size // 10
    finite = np.flatnonzero(np.isfinite(g.x[start:])) + start
    block = max(5, min(BLOCK_POINTS, finite.size // 12))
    count = finite.size // block
    if count < 4:
        return []
    index = finite[: count * block].reshape(count, block)
    level = row_medians(g.x[index])
    lowest = np.minimum.accumulate(level)
    high = level - lowest >= np.log(view.limits(GRAD_GROWTH, "min_ratio"))
    runs = [
        p
        for p in np.split(
            np.flatnonzero(high), np.flatnonzero(np.diff(np.flatnonzero(high)) > 1) + 1
        )
        if p.size >= LASTING_BLOCKS
    ]
    if not runs:
        return []
    pair = runs[0]
    low = int(np.argmin(level[: pair[0] + 1]))
    # from the lowest level on, the point from which it stays above three times that level
    part = g.x[index[low, 0] : index[pair[0], 0] + 1]
    with np.errstate(invalid="ignore"):
        under = np.flatnonzero(part <= level[low] + np.log(3.0))
    first = int(index[low, 0]) + (int(under[-1]) + 1 if under.size else 0)
    first = min(first, g.x.size - 1)
    rise = float(np.max(level[pair[0] :]) - level[low])
    top = int(index[pair[0] + int(np.argmax(level[pair[0] :])), 0])
    return [
        Event(
            kind="grad_growth",
            series="grad_norm",
            segment=int(g.track.segment[first]),
            onset=int(g.track.step[first]),
            peak=int(g.track.step[max(top, first)]),
            end=None,
            index=first,
            score=rise / g.floor,
            ratio=float(np.exp(min(rise, 700.0))),
            size=rise,
        )
    ]


def odd_batches(view: View) -> list[Event]:
    """Steps where a batch statistic is far off and the grad norm spikes too."""
    table, g = view.run.batch, view.grad
    if table is None or g is None or not table.statistics:
        return []
    with np.errstate(invalid="ignore"):
        hot = np.flatnonzero((g.z >= FAINT_SCORE) & (g.excess >= np.log(FAINT_RATIO)))
    window = int(view.limits(BATCH_OUTLIER, "window"))
    least = view.limits(BATCH_OUTLIER, "min_score")
    events = []
    for i in hot[:2000].tolist():
        step = int(g.track.step[i])
        at = int(np.searchsorted(table.step, step))
        if at >= table.step.size or table.step[at] != step:
            continue
        score = max(
            (_lone_off(v, at, window, least) for v in table.statistics.values()), default=0.0
        )
        strong = g.z[i] >= GRAD_SCORE and g.excess[i] >= np.log(2.0)
        if score >= (1.5 if strong else FAINT_TIMES) * least:
            events.append(
                Event(
                    "odd_batch", "grad_norm", int(g.track.segment[i]), step, step, step, i,
                    score, float(np.exp(g.excess[i])), float(g.excess[i]),
                )
            )  # fmt: skip
    return events


def _lone_off(value: F64, at: int, window: int, least: float) -> float:
    """Robust standard deviations of the value at `at` from those before; 0 if it stays there."""
    past = value[max(0, at - window) : at]
    past = past[np.isfinite(past)]
    if past.size < 20 or not np.isfinite(value[at]):
        return 0.0
    middle, spread = usual_level(past)
    after = value[at + 1 : at + 1 + SETTLED_ROWS]
    after = after[np.isfinite(after)]
    if after.size and float(np.median(np.abs(after - middle))) / spread >= least:
        return 0.0
    return float(abs(value[at] - middle) / spread)


def zero_losses(view: View) -> list[Event]:
    """Isolated losses of exactly 0 beside a grad norm of exactly 0, between normal ones."""
    if view.loss is None:
        return []
    t = view.loss.track
    zero = np.flatnonzero(t.value == 0.0)
    if zero.size == 0 or zero.size > 0.5 * t.value.size or not np.nanmedian(np.abs(t.value)) > 0:
        return []
    usual = float(np.nanmedian(np.abs(t.value)))
    g = view.grad_track
    first = float(np.abs(t.value[np.isfinite(t.value)][0]))
    if g is None and usual < CONVERGED * first:  # a memorised set comes to exact zeros by itself
        return []
    events = []
    for i in zero[:MANY].tolist():
        around = t.value[max(0, i - 2) : i + 3]
        if np.nanmax(np.abs(around)) < 0.2 * usual:
            continue
        if g is not None:
            j = g.at(int(t.segment[i]), int(t.step[i]))
            if j < g.value.size and g.step[j] == t.step[i] and g.value[j] != 0.0:
                continue
        s = int(t.step[i])
        nxt = int(t.step[i + 1]) if i + 1 < t.step.size else None
        events.append(
            Event("zero_loss", "loss", int(t.segment[i]), s, s, nxt, i, float("inf"), 0.0, 1.0)
        )
    return events
