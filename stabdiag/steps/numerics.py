"""Step 3: the first value that is not finite, how it spread, and what the loss scale did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.model import Run
from stabdiag.rules.numerics import (
    HIDDEN_NAN,
    NEAR_LIMIT,
    NON_FINITE_GRAD,
    NON_FINITE_LAYER,
    NON_FINITE_LOSS,
    NON_FINITE_PARAMS,
    SCALE_COLLAPSE,
    SKIPPED_STEP,
)
from stabdiag.rules.timeline import SILENT
from stabdiag.steps.episodes import Draft
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import Track, track
from stabdiag.steps.view import View

TITLE = "Check for numerical issues"
FP16_MAX = 65504.0
_LEAST_TOLD = 1e-6  # share of its maximum below which a loss scale is as good as zero
CLIMB_POINTS = 12  # points before a non-finite value in which a climb is looked for


@dataclass(frozen=True)
class FirstBad:
    """The first non-finite value of a series."""

    series: str
    step: int
    value: str
    inferred: bool


def first_bad(run: Run, names: tuple[str, ...]) -> list[FirstBad]:
    """The first non-finite value of each named series, earliest first."""
    found = []
    for name in names:
        t = track(run, name)
        if t is None:
            continue
        bad = np.flatnonzero(~np.isfinite(t.value))
        if bad.size:
            v = float(t.value[bad[0]])
            word = "NaN" if np.isnan(v) else ("Inf" if v > 0 else "-Inf")
            found.append(FirstBad(name, int(t.step[bad[0]]), word, bool(t.inferred[bad[0]])))
    return sorted(found, key=lambda f: (f.step, f.series))


def check(timeline: Timeline) -> Outcome:
    """Look for non-finite values, skipped steps, a collapsing loss scale and range limits."""
    view = timeline.view
    names = tuple(n for n in view.run.series if not n.startswith("other/"))
    looked = [n for n in ("loss", "grad_norm", "param_norm", "loss_scale") if n in view.run.series]
    if not looked:
        return Outcome(3, TITLE, (), (), (), "neither loss, grad norm nor loss scale is logged")
    findings: list[Finding] = []
    signs: list[Sign] = []
    bad = first_bad(view.run, names)
    for number in timeline.judged:
        draft = timeline.episodes[number]
        if draft.kind in ("non_finite", "loss_scale_collapse"):
            _episode(timeline, number, draft, bad, findings, signs)
    _skipped_steps(timeline, findings)
    _silent(view, findings, signs)
    _near_limit(view, findings, signs)
    if "activation_max" in view.run.series or view.run.layers.get("activation_max"):
        looked.append("activation maxima against 65504")
    return Outcome(3, TITLE, tuple(looked), tuple(findings), tuple(signs))


def _episode(
    timeline: Timeline,
    number: int,
    draft: Draft,
    bad: list[FirstBad],
    findings: list[Finding],
    signs: list[Sign],
) -> None:
    view = timeline.view
    late = [f for f in bad if f.step >= draft.onset]
    spread = ", ".join(f"{f.series} from {f.step}" for f in late[:5])
    losses = [e for e in draft.events if e.kind == "non_finite" and e.series == "loss"]
    grads = [e for e in draft.events if e.kind == "non_finite" and e.series == "grad_norm"]
    params = [e for e in draft.events if e.kind == "non_finite" and e.series == "param_norm"]
    for kind, rule in (
        (losses, NON_FINITE_LOSS),
        (grads, NON_FINITE_GRAD),
        (params, NON_FINITE_PARAMS),
    ):
        if kind:
            first = kind[0]
            inferred = next((f for f in bad if f.series == first.series and f.inferred), None)
            value = next((f.value for f in bad if f.series == first.series), "not finite")
            word = "missing, which stands for NaN here," if inferred else value
            text = f"{first.series} is {word} from step {first.onset} on"
            text += f" ({spread})" if len(late) > 1 else ""
            chosen = HIDDEN_NAN if inferred and rule is NON_FINITE_LOSS else rule
            findings.append(
                finding(chosen, text, step=first.onset, last_step=first.end, data={"first": spread})
            )
    if losses or grads or params:
        _climb_or_cold(view, number, draft, signs)
    for e in draft.events:
        if e.kind == "loss_scale_collapse":
            text = (
                f"the loss scale falls from step {e.onset} on, {_fall(e.ratio)} its maximum by step "
                f"{e.peak}, and does not come back"
            )
            findings.append(
                finding(
                    SCALE_COLLAPSE, text, step=e.onset, last_step=e.peak, data={"ratio": e.ratio}
                )
            )
            signs.append(
                Sign("scale_collapse", 1.0, text, (e.onset, e.peak), ("loss_scale",), number)
            )


def _fall(ratio: float) -> str:
    """How far a scale fell, for a sentence; scales are halved, so the factor is a whole number."""
    if ratio < _LEAST_TOLD:
        return "to less than a millionth of"
    return f"to 1/{1 / ratio:,.0f} of"


def climb_before(view: View, draft: Draft) -> tuple[float, float]:
    """How far loss and grad norm had climbed in the points before a non-finite value.

    Returns (share of the loss range, natural log of the grad norm's factor); 0 where unknown.
    """
    start = min(e.onset for e in draft.events if e.kind == "non_finite")
    loss_climb = grad_climb = 0.0
    if view.loss is not None:
        at = view.loss.track.at(draft.segment, start)
        loss_climb = _climb(view.loss.x, at) / view.loss.unit
    g = view.grad
    if g is not None:
        at = g.track.at(draft.segment, start)
        grad_climb = _climb(g.x, at)
    return loss_climb, grad_climb


def _climb(x: np.ndarray[tuple[int, ...], np.dtype[np.float64]], at: int) -> float:
    near = x[max(0, at - CLIMB_POINTS) : at]
    near = near[np.isfinite(near)]
    past = x[max(0, at - CLIMB_POINTS - 50) : max(0, at - CLIMB_POINTS)]
    past = past[np.isfinite(past)]
    if near.size < 2:
        return 0.0
    # very early: no past before the climb, so from the lowest of the first points
    level = float(np.median(past)) if past.size >= 3 else float(np.min(near[: near.size // 2 + 1]))
    top = np.sort(near)[-3:]
    return float(top[0]) - level if near.size >= 6 else float(top[-1]) - level


def _climb_or_cold(view: View, number: int, draft: Draft, signs: list[Sign]) -> None:
    loss_climb, grad_climb = climb_before(view, draft)
    first = min(e.onset for e in draft.events if e.kind == "non_finite")
    start = view.loss.track.step[0] if view.loss is not None else first
    climbed = max(ramp(loss_climb, 0.1, 0.4), ramp(grad_climb, 1.2, 2.5))
    if first <= start + view.cadence:
        signs.append(
            Sign(
                "bad_from_start",
                1.0,
                f"not finite from the first points on (step {first})",
                (first,),
                ("loss", "grad_norm"),
                number,
            )
        )
    elif climbed > 0.3:
        signs.append(
            Sign(
                "climb_to_nan",
                climbed,
                f"loss or grad norm had climbed before the non-finite value at step {first} "
                f"(loss by {loss_climb:.0%} of its range, grad norm {np.exp(min(grad_climb, 50.0)):.3g} times)",
                (first,),
                ("loss", "grad_norm"),
                number,
            )
        )
    else:
        signs.append(
            Sign(
                "cold_nan",
                1.0,
                f"non-finite at step {first} with no climb of loss or grad norm before it",
                (first,),
                ("loss", "grad_norm"),
                number,
            )
        )


SILENT_POINTS = 10  # points of another series after the last one of the loss


def _silent(view: View, findings: list[Finding], signs: list[Sign]) -> None:
    """A loss that is no longer logged while the run goes on: for some loggers NaN looks so."""
    if view.loss is None or view.loss.track.inferred.any():
        return
    last, segment = int(view.loss.track.step[-1]), int(view.loss.track.segment[-1])
    reach = last + view.loss.track.cadence
    beyond = [
        (int(np.count_nonzero((t.step > reach) & (t.segment == segment))), t)
        for t in (view.grad_track, view.lr, view.param)
        if t is not None and t.cadence <= 2 * view.loss.track.cadence
    ]
    count, other = max(beyond, key=lambda b: b[0], default=(0, None))
    if other is None or count < max(SILENT_POINTS, 0.05 * view.loss.x.size):
        return
    text = f"the loss is no longer logged after step {last} while {other.name} goes on to {other.step[-1]}"
    findings.append(finding(SILENT, text, step=last, last_step=int(other.step[-1])))
    signs.append(Sign("falls_silent", 1.0, text, (last,), ("loss", other.name)))


def _skipped_steps(timeline: Timeline, findings: list[Finding]) -> None:
    """Lone non-finite grad norms beside a finite loss: a loss scaler at work."""
    view = timeline.view
    t = view.grad_track
    if t is None:
        return
    bad = np.flatnonzero(~np.isfinite(t.value))
    inside = [
        (e.onset, e.end)
        for d in timeline.episodes
        for e in d.events
        if e.kind == "non_finite" and e.series == "grad_norm"
    ]
    lone = [
        int(t.step[i])
        for i in bad.tolist()
        if not any(a <= t.step[i] and (b is None or t.step[i] < b) for a, b in inside)
    ]
    if lone:
        text = (
            f"{len(lone)} lone step{'s' if len(lone) > 1 else ''} with a non-finite grad norm and a "
            f"finite loss (first {lone[0]}): a loss scaler at work, harmless"
        )
        findings.append(
            finding(SKIPPED_STEP, text, step=lone[0], last_step=lone[-1], data={"steps": lone[:50]})
        )


def _near_limit(view: View, findings: list[Finding], signs: list[Sign]) -> None:
    """Activation maxima that reach the float16 limit."""
    sources: list[tuple[str, Track]] = []
    own = track(view.run, "activation_max")
    if own is not None:
        sources.append(("activation_max", own))
    share = view.limits(NEAR_LIMIT, "min_share")
    if view.run.layers.get("activation_max"):
        for block in view.run.layer_blocks("activation_max"):
            for j, layer in enumerate(block.layers):
                on = block.logged[:, j]
                _limit_finding(
                    layer, block.step[on], block.value[on, j], share, findings, signs, layer
                )
    for name, t in sources:
        _limit_finding(name, t.step, t.value, share, findings, signs, None)


def _limit_finding(
    name: str,
    step: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    value: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    share: float,
    findings: list[Finding],
    signs: list[Sign],
    layer: str | None,
) -> None:
    finite = np.isfinite(value)
    broken = np.flatnonzero(~finite)
    if broken.size >= 3:
        first = int(step[broken[0]])
        text = (
            f"{name} is not finite in {broken.size} of {value.size} points, first at step {first}"
        )
        findings.append(finding(NON_FINITE_LAYER, text, step=first, layer=layer))
        signs.append(Sign("bad_activations", 1.0, text, (first,), (name,)))
    near = np.flatnonzero((np.abs(np.where(finite, value, 0.0)) >= share * FP16_MAX) & finite)
    over = np.flatnonzero(finite & (np.abs(np.where(finite, value, 0.0)) > 1.01 * FP16_MAX))
    if near.size == 0 or over.size:  # values above the limit show that it is not float16
        return
    inf = broken
    first = int(step[near[0]])
    text = (
        f"{name} reaches {value[near].max():.5g} of 65504, the largest float16, from step {first}"
    )
    if inf.size:
        text += f", and is not finite from step {int(step[inf[0]])}"
    findings.append(
        finding(
            NEAR_LIMIT, text, step=first, layer=layer, data={"maximum": float(value[near].max())}
        )
    )
    signs.append(Sign("near_fp16_limit", 1.0 if inf.size else 0.6, text, (first,), (name,)))


def silent_series(view: View) -> list[Finding]:
    """Findings for series whose non-finite tail was inferred from their silence."""
    found: list[Finding] = []
    norm = view.grad_track
    written = norm is not None and bool((~np.isfinite(norm.value) & ~norm.inferred).any())
    if written:  # the NaN is in the log: SD306 says so
        return found
    for name in ("loss", "grad_norm"):
        t = track(view.run, name)
        if t is not None and t.inferred.any() and bool(t.inferred[-1]):
            first = int(t.step[np.flatnonzero(t.inferred)[0]])
            found.append(
                finding(
                    SILENT,
                    f"{name} is no longer logged from step {first} while others go on",
                    step=first,
                )
            )
    return found
