"""Step 1's findings and signs: the alignment of grad norm and loss, the LR, the restarts."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.rules.timeline import (
    DIVERGENCE,
    GRAD_GROWTH,
    GRAD_SPIKE,
    LEVEL_SHIFT,
    LOSS_SPIKE,
    LR_JUMP,
    PLATEAU,
    RECURRENT,
    RESUME_CHANGE,
    SCHEDULE_RESET,
)
from stabdiag.steps.episode_signs import episode_signs, growth_text
from stabdiag.steps.episodes import Draft
from stabdiag.steps.events import Event
from stabdiag.steps.initialization import vocabulary_of
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.view import View

TITLE = "Isolate the timeline"


def report(timeline: Timeline) -> Outcome:
    """Say what the timeline shows; skipped where neither loss nor grad norm can be judged."""
    view = timeline.view
    if view.loss is None and view.grad_track is None:
        return Outcome(1, TITLE, (), (), (), "neither a loss nor a grad norm was recognised")
    findings: list[Finding] = []
    signs: list[Sign] = []
    looked: list[str] = []
    if view.loss is not None:
        tested = int(np.count_nonzero(np.isfinite(view.loss.z)))
        looked.append(
            f"loss: {tested} of {view.loss.x.size} points scored against {view.loss.threshold:.3g} "
            f"({view.limits(LOSS_SPIKE, 'false_alarms'):g} lone false alarms expected)"
        )
    if view.grad is not None:
        looked.append(f"grad norm: {int(np.count_nonzero(np.isfinite(view.grad.z)))} points scored")
    judged = set(timeline.judged)
    for number, draft in enumerate(timeline.episodes):
        _episode(number, draft, view, findings)
        if number in judged:
            episode_signs(timeline, number, draft, signs)
    _learning_rate(timeline, findings, signs)
    _restarts(timeline, findings, signs)
    _whole_run(timeline, findings, signs)
    return Outcome(
        1, TITLE, tuple(looked), tuple(findings), tuple(signs), _untested(view), _when(timeline)
    )


def _when(timeline: Timeline) -> str:
    """When it began and what the lead is, for an episode that is not a rise of the loss itself."""
    main = timeline.main
    if main is None or main.loss_event is not None:
        return ""
    what = KINDS[main.kind]
    text = f"it began at step {main.onset}: {what}"
    if main.lead.steps is not None:
        text += (
            f"; the grad norm went {main.lead.steps} \u00b1 {main.lead.uncertainty} steps before "
            "the loss"
        )
    return text


def _untested(view: View) -> str:
    """Why the timeline can't be told, "" where it can: nothing was scored."""
    if view.loss is None:
        return "no loss is logged: the grad norm alone can't say when it began"
    finite = int(np.count_nonzero(np.isfinite(view.loss.x)))
    if finite == 0:
        return "no finite loss is logged"
    if not np.isfinite(view.loss.z).any():
        return f"{finite} finite points of the loss: too few for a baseline"
    return ""


def _episode(number: int, draft: Draft, view: View, findings: list[Finding]) -> None:
    """The findings of one episode."""
    event = draft.loss_event
    if event is not None:
        rule = LOSS_SPIKE if draft.has("loss_spike") else LEVEL_SHIFT
        back = f"recovered by step {draft.end}" if draft.end is not None else "did not come back"
        text = (
            f"the loss rose from step {event.onset} to {_number(event, view)} at step {event.peak} "
            f"(score {event.score:.1f}, {event.size:.0%} of the loss range), {back}"
        )
        mild = draft.recovery == "fast" and event.size < 0.5 and event.score < 2 * LEAST_ERROR
        findings.append(
            finding(
                rule,
                text,
                step=event.onset,
                last_step=draft.end,
                severity=Severity.WARNING if mild else rule.severity,
                data={"score": event.score, "size": event.size, "peak_step": event.peak},
            )
        )
    for e in draft.events:
        data = {"score": e.score, "ratio": e.ratio}
        if e.kind == "grad_growth":
            text = growth_text(e)
            findings.append(finding(GRAD_GROWTH, text, step=e.onset, data=data))
        if e.kind == "grad_spike":
            text = (
                f"the grad norm rose to {e.ratio:.3g} times its level at step {e.peak} "
                f"(score {e.score:.1f})"
            )
            findings.append(finding(GRAD_SPIKE, text, step=e.onset, last_step=e.end, data=data))


KINDS = {
    "non_finite": "values became non-finite",
    "loss_scale_collapse": "the loss scale collapsed",
    "lone_nan": "a lone non-finite loss",
    "zero_loss": "a loss of exactly 0",
    "param_jump": "the parameter norm jumped",
    "odd_batch": "an unusual batch moved the grad norm",
    "grad_growth": "the grad norm grew and stayed high",
}
LEAST_ERROR = 6.0


def _number(event: Event, view: View) -> str:
    spike = event.spike
    if spike is None or view.loss is None:
        return "a higher level"
    return f"{view.loss.x[spike.peak]:.4g} (from {spike.center:.4g})"


def _learning_rate(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    points = view.limits(LR_JUMP, "max_points")
    for jump in timeline.jumps[:20]:
        text = (
            f"the learning rate rose {jump.ratio:.3g} times to {jump.after:.3g} at step {jump.step}"
        )
        near = [
            i
            for i, d in enumerate(timeline.episodes)
            if d.kind != "grad_spike"
            and -view.cadence <= d.onset - jump.step <= points * view.cadence
        ]
        findings.append(
            finding(
                LR_JUMP,
                text,
                step=jump.step,
                severity=Severity.WARNING if near else Severity.INFO,
                data={"ratio": jump.ratio, "before": jump.before, "after": jump.after},
            )
        )
        for i in near:
            signs.append(
                Sign("lr_jump", ramp(jump.ratio, 1.3, 2.0), text, (jump.step,), ("lr",), i)
            )
    if view.lr is not None and view.lr.cadence == 1:
        for i in timeline.judged:
            d = timeline.episodes[i]
            if d.kind in ("loss_spike", "level_shift") and not any(
                -view.cadence <= d.onset - j.step <= points * view.cadence for j in timeline.jumps
            ):
                signs.append(
                    Sign(
                        "lr_steady",
                        1.0,
                        f"the learning rate did not jump before step {d.onset}",
                        (d.onset,),
                        ("lr",),
                        i,
                    )
                )
    for reset in timeline.resets[:20]:
        text = f"at the restart at step {reset.step} the learning rate goes from {reset.before:.3g} to {reset.after:.3g}: its schedule was not restored"
        findings.append(
            finding(
                SCHEDULE_RESET,
                text,
                step=reset.step,
                data={"before": reset.before, "after": reset.after},
            )
        )
        signs.append(Sign("schedule_reset", 1.0, text, (reset.step,), ("lr",)))


def _restarts(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    least = view.limits(RESUME_CHANGE, "min_change")
    score = view.limits(RESUME_CHANGE, "min_score")
    for r in timeline.restarts:
        if np.isfinite(r.score) and abs(r.score) >= score and abs(r.change) >= least:
            word = "falls" if r.change < 0 else "rises"
            text = f"at the restart at step {r.step} the loss {word} by {abs(r.change):.0%} of its range ({abs(r.score):.0f} standard errors)"
            findings.append(
                finding(
                    RESUME_CHANGE, text, step=r.step, data={"change": r.change, "score": r.score}
                )
            )
            name = "drop_at_restart" if r.change < 0 else "rise_at_restart"
            signs.append(Sign(name, 1.0, text, (r.step,), ("loss",)))
        for i, d in enumerate(timeline.episodes):
            if d.kind == "grad_spike" or d.segment != r.segment:
                continue
            if -view.cadence <= d.onset - r.step <= 5 * view.cadence:
                signs.append(
                    Sign(
                        "at_restart",
                        1.0,
                        f"it began {d.onset - r.step} steps after the restart at step {r.step}",
                        (r.step,),
                        ("loss",),
                        i,
                    )
                )


def _whole_run(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    spikes = [d for d in timeline.episodes if d.has("loss_spike")]
    if len(spikes) >= view.limits(RECURRENT, "min_spikes"):
        text = f"the loss spiked {len(spikes)} times, first at step {spikes[0].onset}, last at {spikes[-1].onset}"
        findings.append(
            finding(
                RECURRENT,
                text,
                step=spikes[0].onset,
                last_step=spikes[-1].onset,
                data={"spikes": len(spikes)},
            )
        )
        signs.append(
            Sign(
                "recurrent",
                ramp(len(spikes), 1, 4),
                text,
                tuple(d.onset for d in spikes[:6]),
                ("loss",),
            )
        )
    if timeline.diverged is not None and view.loss is not None:
        e = timeline.diverged
        text = f"the loss ends at {e.last:.4g}, {e.rise / view.loss.unit:.0%} of its range above its best level {e.best:.4g}"
        findings.append(
            finding(
                DIVERGENCE, text, step=timeline.diverged_step, data={"best": e.best, "last": e.last}
            )
        )
        signs.append(
            Sign(
                "diverged",
                ramp(e.rise / view.loss.unit, 0.1, 0.3),
                text,
                (timeline.diverged_step or 0,),
                ("loss",),
            )
        )
    _plateau(timeline, findings, signs)


COMMON_VOCABULARIES = (
    2, 10, 100, 256, 1000, 28996, 30522, 32000, 32064, 32128, 49152, 50257, 50265, 50280, 50304,
    50432, 65536, 100277, 128000, 128256, 151643, 151936, 152064, 256000, 256128, 262144,
)  # fmt: skip


def _vocabulary(view: View, level: float) -> int | None:
    """The size of which `level` is the uniform guess, of the stated or the common ones."""
    stated = vocabulary_of(view.run)
    sizes = (stated,) if stated is not None else COMMON_VOCABULARIES
    near = view.limits(PLATEAU, "uniform_tolerance")
    return next((v for v in sizes if abs(level / np.log(v) - 1.0) <= near), None)


def _plateau(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """A loss that hardly moved over the whole run, all of it positive."""
    view = timeline.view
    if view.loss is None:
        return
    x = view.loss.x[np.isfinite(view.loss.x)]
    if x.size < view.limits(PLATEAU, "min_points") or float(np.min(x)) <= 0:
        return
    edge = max(5, x.size // 20)
    first, last = float(np.median(x[:edge])), float(np.median(x[-edge:]))
    best = min(float(np.median(part)) for part in np.array_split(x, max(2, x.size // edge)))
    gain = 1.0 - best / first
    text = f"the loss gained only {gain:.1%} over {x.size} points ({first:.4g} to {last:.4g})"
    vocabulary = _vocabulary(view, last) if gain < view.limits(PLATEAU, "max_gain") else None
    if vocabulary is not None:
        text += f"; it sits at ln({vocabulary}), a uniform guess"
    strength = 1.0 - ramp(
        gain, view.limits(PLATEAU, "max_gain"), 2 * view.limits(PLATEAU, "max_gain")
    )
    if strength > 0:
        signs.append(Sign("plateau", strength, text, (), ("loss",)))
    if gain < view.limits(PLATEAU, "max_gain"):
        findings.append(
            finding(
                PLATEAU,
                text,
                step=int(view.loss.track.step[0]),
                last_step=int(view.loss.track.step[-1]),
                data={"gain": gain},
            )
        )
