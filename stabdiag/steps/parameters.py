"""Beside step 4: how fast the parameters grow, and the ratio of gradient to parameter norm."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.rules.layers import GRAD_PARAM_RATIO, PARAM_GROWTH, PARAM_JUMP
from stabdiag.signals.trend import Growth, growth
from stabdiag.steps.episodes import LOSS_KINDS
from stabdiag.steps.outcome import finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import Track, track

# A change that no training makes in one interval: healthy runs stay under 0.1 and 6 times
LEAP_LOG, LEAP_SCORE = 0.3, 30.0
WINDOW_STEPS = 50  # growth rates are given for so many steps


def check(timeline: Timeline) -> tuple[list[Finding], list[Sign]]:
    """Growth and jumps of the global parameter norm, and time spent above a ratio of 0.1."""
    findings: list[Finding] = []
    signs: list[Sign] = []
    _growth(timeline, findings, signs)
    _jumps(timeline, findings, signs)
    _ratio(timeline, findings, signs)
    return findings, signs


def late_growth(t: Track) -> float:
    """Growth of the norm over the second half of the run, 1.0 where it can't be told."""
    ok = np.isfinite(t.value) & (t.value > 0)
    y, s = t.value[ok], t.step[ok]
    if y.size < 6:
        return 1.0
    half = int(np.searchsorted(s, (int(s[0]) + int(s[-1])) // 2))
    return float(y[-1] / y[min(half, y.size - 1)])


def _growth(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    if view.param is None:
        return
    t = view.param
    g = growth(t.step, t.value, window_steps=WINDOW_STEPS)
    if g is None:
        return
    late = late_growth(t) / float(np.exp(_jumped(timeline, t)))
    limits = view.limits
    step = int(t.step[0])
    sustained = g.rising > 0.8 and late > 1.15
    text = f"the parameter norm grew {g.ratio:.3g} times over the run, {late:.3g} times in its second half"
    if sustained:
        # growth that slows down is training; growth that goes on is a decay that is missing
        strength = ramp(np.log(max(late, 1e-9)), np.log(1.35), np.log(2.2))
        if strength > 0:
            signs.append(Sign("param_keeps_growing", strength, text, (step,), ("param_norm",)))
        exponential = ramp(g.log_linear, 0.9, 0.98) * ramp(g.ratio, 2.5, 5.0)
        if exponential > 0:
            signs.append(
                Sign(
                    "param_exponential",
                    exponential,
                    f"{text}; its log grows along a straight line",
                    (step,),
                    ("param_norm",),
                )
            )
    _shrinking(t, signs)
    if (g.ratio >= limits(PARAM_GROWTH, "min_ratio") and sustained) or _rapid(timeline, g):
        findings.append(
            finding(
                PARAM_GROWTH,
                text,
                step=step,
                last_step=int(t.step[-1]),
                data={
                    "ratio": g.ratio,
                    "second_half": late,
                    "per_50_steps": g.per_window,
                    "log_linear": g.log_linear,
                },
            )
        )


def _jumped(timeline: Timeline, t: Track) -> float:
    """Log of the growth in the second half that came in single jumps: those are SD407's."""
    middle = (int(t.step[0]) + int(t.step[-1])) // 2
    jumps = [e for d in timeline.episodes for e in d.events if e.kind == "param_jump"]
    return sum(float(np.log(max(e.ratio, 1e-9))) for e in jumps if e.peak > middle)


def _shrinking(t: Track, signs: list[Sign]) -> None:
    """A parameter norm that falls far below its highest level: a decay that is far too strong."""
    ok = np.isfinite(t.value) & (t.value > 0)
    y, s = t.value[ok], t.step[ok]
    if y.size < 6:
        return
    top = int(np.argmax(y))
    left = float(y[-1] / y[top])
    strength = ramp(1.0 - left, 0.25, 0.5)
    if strength > 0 and top < y.size - 3:
        text = f"the parameter norm fell to {left:.0%} of its highest level (step {s[top]})"
        signs.append(Sign("param_falls", strength, text, (int(s[top]),), ("param_norm",)))


def _rapid(timeline: Timeline, g: Growth) -> bool:
    """Growth past the rate limit for four windows or more, with the rate as its median."""
    view = timeline.view
    assert view.param is not None
    long_enough = int(view.param.step[-1] - view.param.step[0]) >= 4 * WINDOW_STEPS
    return long_enough and g.per_window >= view.limits(PARAM_GROWTH, "min_rate")


def _jumps(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """The parameter norm at each serious onset: it jumped, or its usual step shows it did not."""
    view = timeline.view
    for number in timeline.judged:
        draft = timeline.episodes[number]
        jumps = [e for e in draft.events if e.kind == "param_jump"]
        if jumps:
            top = max(jumps, key=lambda e: e.size)
            text = (
                f"the parameter norm changed by {np.expm1(min(top.size, 50.0)):.0%} within the logged interval to step "
                f"{top.peak}, {top.score:.0f} times its usual change"
            )
            findings.append(
                finding(
                    PARAM_JUMP,
                    text,
                    step=top.onset,
                    last_step=top.peak,
                    data={"times_usual": top.score, "log_change": top.size},
                )
            )
            signs.append(
                Sign(
                    "param_jump",
                    ramp(top.score, 2.5, 6.0),
                    text,
                    (top.onset, top.peak),
                    ("param_norm",),
                    number,
                )
            )
            if top.size >= LEAP_LOG and top.score >= LEAP_SCORE:
                at = (top.onset, top.peak)
                signs.append(Sign("param_leap", 1.0, text, at, ("param_norm",), number))
        elif draft.kind in LOSS_KINDS and view.param is not None:
            _no_jump(view.param, number, draft.onset, signs)


def _no_jump(t: Track, number: int, onset: int, signs: list[Sign]) -> None:
    ok = np.isfinite(t.value) & (t.value > 0)
    y, s = np.log(t.value[ok]), t.step[ok]
    at = int(np.searchsorted(s, onset))
    if at < 5 or at >= y.size or t.cadence > 50:
        return
    change = np.abs(np.diff(y))
    usual = float(np.median(change[max(0, at - 30) : at - 1]))
    here = float(change[at - 1 : at + 1].max())
    if here <= 2.0 * usual + 1e-4:
        signs.append(
            Sign(
                "param_quiet",
                1.0,
                f"the parameter norm took its usual steps around {onset}",
                (onset,),
                ("param_norm",),
                number,
            )
        )


def _ratio(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    ratio = track(view.run, "grad_param_ratio")
    if ratio is not None:
        value = ratio.value
        step = ratio.step
    elif view.grad is not None and view.param is not None:
        grad, param = view.grad.track, view.param
        above, below = grad.value, param.value
        step = grad.step
        if not (np.array_equal(step, param.step) and np.all(step[1:] > step[:-1])):
            step, i, j = np.intersect1d(step, param.step, return_indices=True)
            above, below = above[i], below[j]
        if step.size < 5:
            return
        with np.errstate(invalid="ignore", divide="ignore"):
            value = above / below
    else:
        return
    late = value[value.size // 10 :]
    late = late[np.isfinite(late)]
    if late.size < 5:
        return
    share = float(np.mean(late > view.limits(GRAD_PARAM_RATIO, "max_ratio")))
    if share >= view.limits(GRAD_PARAM_RATIO, "min_share"):
        text = f"the gradient-to-parameter ratio is above 0.1 in {share:.0%} of the steps after the first tenth"
        findings.append(finding(GRAD_PARAM_RATIO, text, step=int(step[0]), data={"share": share}))
        signs.append(Sign("ratio_high", ramp(share, 0.05, 0.3), text, (), ("grad_param_ratio",)))
