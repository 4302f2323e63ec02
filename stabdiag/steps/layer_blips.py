"""Lone grad-norm spikes that always come through the same few layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.rules.layers import SAME_LAYERS
from stabdiag.signals.median import median
from stabdiag.steps.layer_stats import LayerStats
from stabdiag.steps.view import View

MOST_MARKED = 50  # the largest grad norms of the run whose layers are looked at


@dataclass(frozen=True)
class SameLayers:
    """The layers that lead the run's lone grad-norm spikes: at `steps`, in order of their part."""

    layers: tuple[str, ...]
    steps: tuple[int, ...]
    factor: float  # the first layer's rise over the median layer's at these steps, median


def marked_steps(view: View) -> tuple[int, ...]:
    """Steps with a grad norm many times the run's median, the largest, in order.

    Against the whole run's median, not a trailing one: the first steps have no past, and the
    layers of a spike are the same whenever it comes.
    """
    g = view.grad
    if g is None:
        return ()
    middle = median(g.x[np.isfinite(g.x)])
    with np.errstate(invalid="ignore"):
        high = np.flatnonzero(g.x - middle > np.log(view.limits(SAME_LAYERS, "min_ratio")))
    if high.size > 0.2 * g.x.size:  # not lone: the level itself moved
        return ()
    top = high[np.argsort(-g.x[high])][:MOST_MARKED]
    return tuple(sorted(int(s) for s in g.track.step[top]))


def same_layers(view: View, grad: LayerStats, marked: tuple[int, ...]) -> SameLayers | None:
    """The few layers that rise far above the others at most of the marked steps, or None."""
    limits = view.limits
    if len(marked) < limits(SAME_LAYERS, "min_spikes") or len(grad.layers) < 6:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        rise = np.log(grad.marked / grad.median)
    rise = np.where(np.isfinite(rise), rise, 0.0)
    excess = rise - np.median(rise, axis=1, keepdims=True)
    led = excess > np.log(limits(SAME_LAYERS, "min_excess"))
    share = led.mean(axis=0)
    chosen = np.flatnonzero(share >= limits(SAME_LAYERS, "min_share"))
    if not 0 < chosen.size <= max(3, len(grad.layers) // 10):
        return None
    order = chosen[np.argsort(-np.median(excess[:, chosen], axis=0))]
    return SameLayers(
        layers=tuple(grad.layers[j] for j in order),
        steps=tuple(s for s, row in zip(marked, led, strict=True) if row[order[0]]),
        factor=float(np.exp(np.median(excess[:, order[0]]))),
    )
