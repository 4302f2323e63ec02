"""Step 5: is the start to blame? The first steps against the rest."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.model import F64, Run
from stabdiag.rules.initialization import (
    INITIAL_GRADIENT,
    INITIAL_IMBALANCE,
    INITIAL_LOSS,
    SHRINKING_NORM,
)
from stabdiag.steps.layer_scores import LayerScore
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import Track, track
from stabdiag.steps.view import View

TITLE = "Check initialization"
EARLY_STEPS = 50  # the first norm and loss are compared with those so many steps on
LEAST_POINTS = 8
LARGEST_UNIFORM = 12.6  # ln(300,000): no vocabulary in use starts above it in nats


def vocabulary_of(run: Run) -> int | None:
    """The vocabulary size where the log states it."""
    for key in ("vocab_size", "vocabulary_size", "padded_vocab_size", "n_vocab"):
        text = run.facts.get(key, "")
        if text.isdigit() and int(text) > 1:
            return int(text)
    return None


def first_and_early(track: Track) -> tuple[float, float] | None:
    """(median of the first points, median around 50 steps on) of a series, None if too short.

    The first value is the median of up to three points, of one where points are far apart.
    """
    stop = int(np.searchsorted(track.segment, track.segment[0], side="right"))
    ok = np.flatnonzero(np.isfinite(track.value[:stop]))
    if ok.size < LEAST_POINTS:
        return None
    reach = max(EARLY_STEPS, 5 * track.cadence)
    early = np.searchsorted(track.step[:stop], track.step[ok[0]] + reach)
    at = int(np.searchsorted(ok, early))
    if at >= ok.size - 1:
        return None
    first = float(np.median(track.value[ok[: 3 if track.cadence <= 2 else 1]]))
    return first, float(np.median(track.value[ok[max(1, at - 2) : at + 3]]))


def check(timeline: Timeline, layers: tuple[LayerScore, ...]) -> Outcome:
    """Compare the first steps with what came after, and the first loss with a uniform guess."""
    view = timeline.view
    if view.loss is None and view.grad is None and view.param is None:
        return Outcome(5, TITLE, (), (), (), "neither loss, grad norm nor parameter norm is logged")
    findings: list[Finding] = []
    signs: list[Sign] = []
    looked: list[str] = []
    gradient = _gradient(view, findings, signs, looked)
    loss = _loss(view, gradient, findings, signs, looked)
    # under 4 nats a steep start can't be told from a fine-tune's
    scratch = ramp(_first_loss(view), 4.0, 6.0)
    at = (_first(view),)
    if loss * scratch > 0:
        text = "the loss falls by a factor in the first 50 steps"
        signs.append(Sign("loss_falls_at_once", loss * scratch, text, at, ("loss",)))
    # large models start with a large gradient in health: it counts beside a loss that falls fast
    steep = min(gradient, 2.0 * loss) * scratch
    if steep > 0:
        text = "the grad norm falls by a factor in the first 50 steps"
        signs.append(Sign("grad_falls_at_once", steep, text, at, ("grad_norm",)))
    _flat(view, scratch, signs)
    if loss and gradient:
        both = min(1.0, loss) * min(1.0, gradient) * ramp(_first_loss(view), 3.0, 4.5)
        text = "loss and grad norm both start far above their level 50 steps on and fall at once"
        signs.append(Sign("initial_transient", both, text, (_first(view),), ("loss", "grad_norm")))
    _norm(view, findings, signs, looked)
    _imbalance(view, layers, findings, signs, looked)
    if not looked:
        return Outcome(5, TITLE, (), (), (), f"fewer than {LEAST_POINTS} points at the start")
    return Outcome(5, TITLE, tuple(looked), tuple(findings), tuple(signs))


def _first(view: View) -> int:
    t = view.loss.track if view.loss is not None else view.grad_track
    return int(t.step[0]) if t is not None else 0


def _loss(
    view: View, gradient: float, findings: list[Finding], signs: list[Sign], looked: list[str]
) -> float:
    """Strength of a first loss that is too high; 0 where it is as usual.

    `gradient` is that of the first grad norm: alone, and with no vocabulary known, a high first
    loss may just be in another unit (a squared error), so the finding is no more than info.
    """
    if view.loss is None:
        return 0.0
    pair = first_and_early(view.loss.track)
    if pair is None or pair[0] <= 0 or pair[1] <= 0:
        return 0.0
    first, early = pair
    step = _first(view)
    fall = first / early
    vocabulary = vocabulary_of(view.run)
    looked.append("first loss against the loss 50 steps on")
    least = view.limits(INITIAL_LOSS, "min_fall")
    above = 0.0
    text = f"the first loss is {first:.4g}, {fall:.2g} times the loss 50 steps on"
    if vocabulary is not None:
        looked.append(f"first loss against ln({vocabulary})")
        uniform = float(np.log(vocabulary))
        limit = view.limits(INITIAL_LOSS, "min_uniform_ratio")
        above = ramp(first / uniform, limit, 1.5 * limit)
        text += f" and {first / uniform:.2f} times ln({vocabulary})"
    elif _first_loss(view) > LARGEST_UNIFORM and _in_nats(view):
        above = ramp(_first_loss(view) / LARGEST_UNIFORM, 1.0, 1.15)
        text += ", above what a uniform guess gives for any vocabulary in use"
    strength = ramp(fall, 0.75 * least, 1.5 * least)
    # another unit (bits, a sum) raises the level, but not the shape of the start
    if above > 0 and (fall >= least or (gradient > 0.3 and fall > 1.3) or vocabulary is not None):
        signs.append(Sign("initial_loss_high", above, text, (step,), ("loss",)))
        sure = gradient > 0.5 or above > 0.5
        findings.append(
            finding(
                INITIAL_LOSS,
                text,
                step=step,
                severity=Severity.WARNING if sure else Severity.INFO,
                data={"first": first, "early": early},
            )
        )
    return max(strength, above)


def _gradient(view: View, findings: list[Finding], signs: list[Sign], looked: list[str]) -> float:
    if view.grad is None:
        return 0.0
    pair = first_and_early(view.grad.track)
    if pair is None or pair[1] <= 0:
        return 0.0
    looked.append("first grad norm against the norm 50 steps on")
    ratio = pair[0] / pair[1]
    limit = view.limits(INITIAL_GRADIENT, "min_ratio")
    strength = ramp(np.log(max(ratio, 1e-9)), np.log(0.6 * limit), np.log(1.5 * limit))
    if ratio >= limit:
        text = f"the first grad norm is {ratio:.3g} times that of 50 steps on"
        findings.append(
            finding(
                INITIAL_GRADIENT,
                text,
                step=_first(view),
                severity=Severity.INFO,  # a large model's first gradient is large in health, too
                data={"ratio": ratio},
            )
        )
    return strength


def _norm(view: View, findings: list[Finding], signs: list[Sign], looked: list[str]) -> None:
    """A parameter norm that shrinks from the first steps on: it started too large."""
    if view.param is None:
        return
    t = view.param
    ok = np.flatnonzero(np.isfinite(t.value) & (t.value > 0) & (t.segment == t.segment[0]))
    if ok.size < 3:
        return
    looked.append("parameter norm over the first steps")
    y, s = t.value[ok], t.step[ok]
    at = min(int(np.searchsorted(s, s[0] + EARLY_STEPS)), y.size - 1)
    ratio = float(y[at] / y[0])
    if _falls(y[: at + 1]) and ratio < view.limits(SHRINKING_NORM, "max_ratio"):
        text = f"the parameter norm shrinks from the first steps on ({ratio - 1:.1%} in {s[at] - s[0]} steps)"
        signs.append(
            Sign(
                "param_shrinks", ramp(1 - ratio, 0.004, 0.012), text, (int(s[0]),), ("param_norm",)
            )
        )
        findings.append(finding(SHRINKING_NORM, text, step=int(s[0]), data={"ratio": ratio}))


def _in_nats(view: View) -> bool:
    """Whether the loss can be a cross-entropy: its later level says so, and validation agrees.

    A squared error, or a sum over accumulated batches, is in another unit, and a high first value
    says nothing there.
    """
    assert view.loss is not None
    x = view.loss.x[np.isfinite(view.loss.x)]
    level = float(np.median(x[x.size // 2 :])) if x.size else float("nan")
    if not 0.3 <= level <= 11.0:
        return False
    validation = track(view.run, "val_loss")
    if validation is None:
        return True
    finite = validation.value[np.isfinite(validation.value)]
    return not finite.size or level < 3.0 * float(np.median(finite))


def _first_loss(view: View) -> float:
    """The first finite loss, NaN without one."""
    x = view.loss.x[np.isfinite(view.loss.x)] if view.loss is not None else np.zeros(0)
    return float(x[0]) if x.size else float("nan")


def _flat(view: View, scratch: float, signs: list[Sign]) -> None:
    """A parameter norm that hardly grows over the first quarter although the model learns."""
    if view.param is None or not scratch:
        return
    ok = np.isfinite(view.param.value) & (view.param.value > 0)
    y = view.param.value[ok]
    if y.size < 8:
        return
    rise = float(np.max(y[: max(3, y.size // 4)]) / y[0]) - 1.0
    strength = scratch * (1.0 - ramp(rise, 0.01, 0.05))
    if strength > 0:
        text = f"the parameter norm rises by {rise:.1%} only over the first quarter of the run"
        signs.append(Sign("param_flat", strength, text, (), ("param_norm",)))


def _falls(y: F64) -> bool:
    return bool(np.mean(np.diff(y) < 0) > 0.7) if y.size > 1 else False


def _imbalance(
    view: View,
    layers: tuple[LayerScore, ...],
    findings: list[Finding],
    signs: list[Sign],
    looked: list[str],
) -> None:
    starts = [s for s in layers if s.role.matrix and np.isfinite(s.start_ratio)]
    if any(np.isfinite(s.growth) for s in layers):
        looked.append("weight norms at the first logged step")
    if not starts:
        return
    # an embedding drawn with unit variance stands above the rest in health, too
    own = {s.layer: s.start_ratio / (4.0 if s.role.role == "embedding" else 1.0) for s in starts}
    top = max(starts, key=lambda s: own[s.layer])
    text = (
        f"{top.layer} starts {top.start_ratio:.3g} times above every other weight norm and shrinks"
    )
    strength = ramp(np.log(own[top.layer]), np.log(6.0), np.log(25.0))
    if strength > 0:
        signs.append(Sign("initial_imbalance", strength, text, (), (f"param_norm/{top.layer}",)))
    if own[top.layer] >= view.limits(INITIAL_IMBALANCE, "min_ratio"):
        findings.append(
            finding(INITIAL_IMBALANCE, text, layer=top.layer, data={"ratio": top.start_ratio})
        )
