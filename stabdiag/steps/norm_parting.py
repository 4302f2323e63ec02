"""Scales of normalisation layers that part from the rest, up or down."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.rules.layers import NORM_PARTS
from stabdiag.steps.layer_scores import LayerScore
from stabdiag.steps.outcome import finding, ramp
from stabdiag.steps.view import View


def part(
    view: View, scores: tuple[LayerScore, ...]
) -> tuple[list[Finding], list[Sign], tuple[str, ...]]:
    """Compare the growth of each norm's scale with that of the other norms' scales.

    Returns findings, signs and the layers at fault. Biases start at 0 and say nothing.
    """
    norms = [
        s
        for s in scores
        if s.role.role == "norm"
        and not s.layer.endswith("bias")
        and np.isfinite(s.growth)
        and s.growth > 0
    ]
    if len(norms) < 3:
        return [], [], ()
    growth = np.log([s.growth for s in norms])
    off = np.array([g - np.median(np.delete(growth, i)) for i, g in enumerate(growth)])
    limit = float(np.log(view.limits(NORM_PARTS, "min_ratio")))
    worst = int(np.argmax(np.abs(off)))
    strength = ramp(abs(float(off[worst])), 0.8 * limit, 1.3 * limit)
    if strength <= 0:
        return [], [], ()
    s = norms[worst]
    others = float(np.exp(growth[worst] - off[worst]))
    text = (
        f"the scale of {s.layer} went to {s.growth:.3g} times its start, the other norms' to "
        f"{others:.3g} times"
    )
    series = (f"param_norm/{s.layer}",)
    found = []
    if abs(float(off[worst])) >= limit:
        data = {"growth": s.growth, "others": others}
        found.append(finding(NORM_PARTS, text, layer=s.layer, data=data))
    return found, [Sign("norm_parts", strength, text, (), series)], (s.layer,)
