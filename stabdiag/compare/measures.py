"""What two runs are compared in beside the loss: validation, norms, learning rate, layers."""

from __future__ import annotations

import numpy as np

from stabdiag.comparison import Change
from stabdiag.model import Run
from stabdiag.rules.comparing import PARTED
from stabdiag.rules.limits import Limits
from stabdiag.signals.baseline import MAD_TO_SIGMA
from stabdiag.signals.pairs import common, rates_apart

_LAST = 0.2  # of the common steps: where a level is read
_NAMED_LAYERS = 3


def values_change(base: Run, candidate: Run, name: str, title: str, limits: Limits) -> list[Change]:
    """A loss that is logged now and then: its last common points, against its own noise."""
    a, b = base.series.get(name), candidate.series.get(name)
    if a is None or b is None:
        return []
    step, x, y = common(a.step, a.value, b.step, b.value)
    if step.size == 0:
        return [Change(title, None, None, "unknown", "no common steps")]
    last = max(1, int(_LAST * step.size))
    end_x, end_y = float(np.median(x[-last:])), float(np.median(y[-last:]))
    d = y - x
    noise = (
        MAD_TO_SIGMA * float(np.median(np.abs(np.diff(d)))) / np.sqrt(2.0 * last)
        if d.size > 4
        else 0.0
    )
    least = limits(PARTED, "min_share") * max(abs(end_x), 1e-12)
    limit = max(limits(PARTED, "min_errors") * noise, least)
    off = end_y - end_x
    if abs(off) <= limit:
        return [Change(title, end_x, end_y, "same", f"within the noise ({off:+.3g})")]
    word = "higher" if off > 0 else "lower"
    text = f"{abs(off) / max(abs(end_x), 1e-12):.1%} {word} at equal steps"
    return [Change(title, end_x, end_y, "worse" if off > 0 else "better", text)]


def norm_change(base: Run, candidate: Run, name: str, title: str, limits: Limits) -> list[Change]:
    """The level of a norm over the last common steps: higher or lower is no judgement."""
    a, b = base.series.get(name), candidate.series.get(name)
    if a is None or b is None:
        return []
    step, x, y = common(a.step, a.value, b.step, b.value)
    last = max(1, int(_LAST * step.size))
    if step.size < 5 or not (np.median(x[-last:]) > 0 and np.median(y[-last:]) > 0):
        return [Change(title, None, None, "unknown", "too few common points above 0")]
    end_x, end_y = float(np.median(x[-last:])), float(np.median(y[-last:]))
    ratio = end_y / end_x
    limit = limits(PARTED, "norm_ratio")
    if 1 / limit < ratio < limit:
        return [Change(title, end_x, end_y, "same", f"{ratio:.2f} times")]
    return [Change(title, end_x, end_y, "changed", f"{ratio:.3g} times the base's")]


def rate_change(base: Run, candidate: Run) -> list[Change]:
    """Where the learning rates part: a difference of configuration, not of its effect."""
    a, b = base.series.get("lr"), candidate.series.get("lr")
    if a is None or b is None:
        return []
    step, x, y = common(a.step, a.value, b.step, b.value)
    if step.size == 0:
        return [Change("learning rate", None, None, "unknown", "no common steps")]
    off = rates_apart(x, y)
    if not off.any():
        return [Change("learning rate", float(x[-1]), float(y[-1]), "same", "the same throughout")]
    i = int(np.argmax(off))
    text = f"differs from step {step[i]} on: {x[i]:.4g} and {y[i]:.4g}"
    return [Change("learning rate", float(x[i]), float(y[i]), "changed", text)]


def layer_changes(base: Run, candidate: Run, limits: Limits) -> list[Change]:
    """Layers whose norm left the others': ratio of the two runs' medians, beside all layers'."""
    out = []
    for metric, title in (("grad_norm", "layer grad norms"), ("param_norm", "layer norms")):
        a, b = _medians(base, metric), _medians(candidate, metric)
        names = sorted(a.keys() & b.keys())
        names = [n for n in names if a[n] > 0 and b[n] > 0]
        if not names:
            continue
        ratios = np.array([b[n] / a[n] for n in names])
        beside = ratios / float(np.median(ratios))
        limit = limits(PARTED, "layer_ratio")
        off = sorted(
            (i for i in range(len(names)) if not 1 / limit < beside[i] < limit),
            key=lambda i: (-abs(np.log(beside[i])), names[i]),
        )
        if not off:
            out.append(Change(title, None, None, "same", f"{len(names)} layers keep together"))
            continue
        shown = ", ".join(f"{names[i]} {beside[i]:.3g} times" for i in off[:_NAMED_LAYERS])
        more = f" and {len(off) - _NAMED_LAYERS} more" if len(off) > _NAMED_LAYERS else ""
        out.append(Change(title, None, None, "changed", f"beside all layers: {shown}{more}"))
    return out


def _medians(run: Run, metric: str) -> dict[str, float]:
    """Median of each layer's finite values, 0 where there is none."""
    found: dict[str, float] = {}
    if metric not in run.layers:
        return found
    for block in run.layer_blocks(metric):
        for place, layer in enumerate(block.layers):
            value = block.value[:, place]
            value = value[np.isfinite(value)]
            found[layer] = float(np.median(value)) if value.size else 0.0
    return found
