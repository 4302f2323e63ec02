"""Beside the five steps: what the log itself hides, lacks or says about the run's end."""

from __future__ import annotations

import numpy as np

from stabdiag.findings import Finding
from stabdiag.rules.monitoring import (
    DATA_LEFT_OUT,
    LR_ENDED,
    MISSING_METRIC,
    POST_CLIP,
    RUN_ENDED,
    VALIDATION_NAN,
    ZERO_GRAD,
)
from stabdiag.steps.numerics import silent_series
from stabdiag.steps.outcome import finding
from stabdiag.steps.tracks import track
from stabdiag.steps.view import View

MINIMUM = ("loss", "grad_norm", "param_norm", "lr")  # the handbook's, of which all else follows


def check(view: View) -> list[Finding]:
    """Findings about the log: grad norm after clipping, zeros, early LR end, notes, the ending."""
    findings = silent_series(view)
    if view.post_clip:
        text = "the grad norm is logged after clipping: it can show no spike"
        findings.append(finding(POST_CLIP, text))
    findings += _zero_grad(view)
    findings += _lr_ended(view)
    findings += _validation(view)
    missing = [n for n in MINIMUM if n not in view.run.series]
    if missing:
        text = f"not logged: {', '.join(missing)}"
        findings.append(finding(MISSING_METRIC, text, data={"missing": missing}))
    left = [n for n in view.run.notes if n.kind in ("dropped", "repaired")]
    if left:
        text = "; ".join(n.text for n in left[:3])
        findings.append(finding(DATA_LEFT_OUT, text, data={"count": sum(n.count for n in left)}))
    for note in view.run.notes:
        if note.kind == "ending":
            findings.append(finding(RUN_ENDED, note.text))
    return findings


def _validation(view: View) -> list[Finding]:
    """Validation losses that are not finite while the training loss is."""
    t = track(view.run, "val_loss")
    if t is None or view.loss is None or not np.isfinite(view.loss.x[-1:]).all():
        return []
    bad = np.flatnonzero(~np.isfinite(t.value))
    if bad.size == 0:
        return []
    step = int(t.step[bad[0]])
    text = (
        f"the validation loss is not finite in {bad.size} of {t.value.size} evaluations, first at "
        f"step {step}, while the training loss is"
    )
    return [finding(VALIDATION_NAN, text, step=step, last_step=int(t.step[bad[-1]]))]


def _zero_grad(view: View) -> list[Finding]:
    t = view.grad_track
    if t is None or view.loss is None:
        return []
    y = t.value[np.isfinite(t.value)]
    x = view.loss.x[np.isfinite(view.loss.x)]
    moves = float(np.ptp(x)) if x.size else 0.0
    if y.size < 20 or moves <= 0:
        return []
    share = float(np.mean(y == 0.0))
    if share < view.limits(ZERO_GRAD, "min_share"):
        return []
    text = f"the grad norm is exactly 0 in {share:.0%} of its points while the loss moves"
    return [finding(ZERO_GRAD, text, step=int(t.step[0]), data={"share": share})]


def _lr_ended(view: View) -> list[Finding]:
    """A learning rate at its floor long before the end of the run."""
    t = view.lr
    if t is None:
        return []
    ok = np.isfinite(t.value)
    y, s = t.value[ok], t.step[ok]
    if y.size < 50 or float(y.max()) <= 0:
        return []
    low = y <= view.limits(LR_ENDED, "floor") * float(y.max())
    if not low[-1]:
        return []
    start = int(np.flatnonzero(~low)[-1]) + 1
    share = float(s[-1] - s[start]) / max(1.0, float(s[-1] - s[0])) if start < s.size else 0.0
    if share < view.limits(LR_ENDED, "min_share"):
        return []
    text = f"the learning rate is at its floor from step {int(s[start])} on, {share:.0%} of the run"
    return [
        finding(LR_ENDED, text, step=int(s[start]), last_step=int(s[-1]), data={"share": share})
    ]
