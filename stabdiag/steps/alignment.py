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
from stabdiag.signals.precursors import blip_rate, lone_blips, rise_before
from stabdiag.steps.episodes import Draft
from stabdiag.steps.events import Event
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.view import View

TITLE = "Isolate the timeline"
BLIP_FACTOR = 3.0  # times the level: SIGNALS, lone steps ahead of a natural spike
BLIP_BACK = 25
HOLD_POINTS = 4  # SIGNALS: a half-life of 5 points or more is most often the data's


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
            _signs(timeline, number, draft, signs)
    _learning_rate(timeline, findings, signs)
    _restarts(timeline, findings, signs)
    _whole_run(timeline, findings, signs)
    return Outcome(1, TITLE, tuple(looked), tuple(findings), tuple(signs))


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
            text = _growth_text(e)
            findings.append(finding(GRAD_GROWTH, text, step=e.onset, data=data))
        if e.kind == "grad_spike":
            text = (
                f"the grad norm rose to {e.ratio:.3g} times its level at step {e.peak} "
                f"(score {e.score:.1f})"
            )
            findings.append(finding(GRAD_SPIKE, text, step=e.onset, last_step=e.end, data=data))


def _growth_text(event: Event) -> str:
    return f"the grad norm grew {event.ratio:.3g} times from step {event.onset} on and stayed there"


def _signs(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """The signs of one episode for the ledger."""
    if draft.loss_event is not None:
        _loss_signs(timeline, number, draft, signs)
    for e in draft.events:
        at, series = (e.onset,), ("grad_norm",)
        if e.kind == "grad_growth":
            strength = ramp(e.size, 3.0, 6.0)
            signs.append(Sign("grad_growth", strength, _growth_text(e), at, series, number))
        if e.kind == "odd_batch":
            text = f"the grad norm rose {e.ratio:.3g} times on an unusual batch at step {e.onset}"
            signs.append(Sign("odd_batch", 1.0, text, at, series, number))


LEAST_ERROR = 6.0


def _number(event: Event, view: View) -> str:
    spike = event.spike
    if spike is None or view.loss is None:
        return "a higher level"
    return f"{view.loss.x[spike.peak]:.4g} (from {spike.center:.4g})"


def _loss_signs(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """Signs of one loss episode for the ledger; steps in the sentences."""
    view = timeline.view
    event = draft.loss_event
    assert event is not None and event.spike is not None and view.loss is not None
    at = (draft.onset,)

    def add(name: str, strength: float, text: str, series: tuple[str, ...] = ("loss",)) -> None:
        if strength > 0:
            signs.append(Sign(name, strength, text, at, series, number))

    score = min(event.score, 50.0)
    add(
        "loss_event",
        max(ramp(score, 3.5, 8.0), 0.4),
        f"the loss left its baseline at step {event.onset} (score {event.score:.1f})",
    )
    top = float(view.loss.x[event.spike.peak])
    start = view.loss.x[np.isfinite(view.loss.x)][0]
    add(
        "loss_explodes",
        ramp((top - float(start)) / view.loss.unit, 0.3, 2.0),
        f"the loss rose far above its first value at step {event.peak}",
    )
    half = event.spike.half
    if half is not None and half <= 1:
        if view.loss.track.cadence == 1:
            text = f"half of the spike at step {event.peak} was gone after one step"
            add("one_step", 1.0, text)
    elif half is not None and half <= HOLD_POINTS:
        add("slow_decay", 1.0, f"the spike at step {event.peak} decayed over {half} logged points")
    else:
        text = f"half of the rise at step {event.onset} was still there {HOLD_POINTS} points later"
        add("new_level", 1.0, text)
    if half is not None and half <= HOLD_POINTS:
        _aftermath(timeline, number, draft, signs)
    if draft.recovery in ("none", "partial"):
        add("no_return", 1.0, f"the loss did not come back after step {draft.onset}")
    steps = draft.lead.steps
    if view.dense and steps is not None:
        if steps >= 2:
            add(
                "grad_leads",
                ramp(steps, 1, 3),
                f"the grad norm rose {steps} steps before the loss",
                ("grad_norm", "loss"),
            )
        elif steps == 0:
            add("same_step", 1.0, "grad norm and loss rose at the same step", ("grad_norm", "loss"))
    _grad_signs(timeline, number, draft, signs)


def _aftermath(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """Whether a passing spike left the model worse: one bad batch does not, a bad update does.

    The points 2 to 8 after the peak against the baseline before the onset.
    """
    view, event = timeline.view, draft.loss_event
    assert event is not None and event.spike is not None and view.loss is not None
    loss, spike, at = view.loss, event.spike, (draft.onset,)
    after = loss.x[spike.peak + 2 : spike.peak + 9] - spike.center
    after = after[np.isfinite(after)]
    if after.size >= 4:
        rest = float(np.median(after)) / loss.unit
        noise = 1.25 * spike.scale / loss.unit / np.sqrt(after.size)
        text = f"{rest:.1%} of the loss range was left of the spike 2 to 8 points after step {event.peak}"
        lingers = ramp(rest, max(0.025, 1.5 * noise), max(0.08, 4.0 * noise))
        if lingers > 0:
            signs.append(Sign("loss_lingers", lingers, text, at, ("loss",), number))
        elif rest < 0.03:
            text = (
                f"the loss was back on its course 2 points after step {event.peak}: no lasting harm"
            )
            signs.append(Sign("clean_return", 1.0, text, at, ("loss",), number))
    g = view.grad
    if g is None or g.track.cadence > 2:
        return
    j = g.track.at(draft.segment, draft.onset)
    if not 0 < j < g.x.size:
        return
    high = g.x[j + 3 : j + 12] - g.base.center[j]
    high = high[np.isfinite(high)]
    if high.size >= 4:
        factor = float(np.exp(np.median(high)))
        text = f"the grad norm stayed {factor:.2g} times its level after step {draft.onset}"
        lingers = ramp(factor, 1.2, 1.8)
        if lingers > 0:
            signs.append(Sign("grad_lingers", lingers, text, at, ("grad_norm",), number))


def _grad_signs(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    view = timeline.view
    g = view.grad
    if g is None or g.track.cadence > 2:
        return
    onset = draft.onset
    at = g.track.at(draft.segment, onset)
    blips = lone_blips(g.x, g.base.center, at, back=BLIP_BACK, factor=BLIP_FACTOR)
    rate = blip_rate(g.x, g.base.center, max(0, at - BLIP_BACK), factor=BLIP_FACTOR)
    if blips.size >= 2 and blips.size > 3.0 * rate * BLIP_BACK:
        steps = tuple(int(s) for s in g.track.step[blips][:6])
        text = (
            f"{blips.size} lone grad-norm steps above {BLIP_FACTOR:.0f} times the level in the "
            f"{BLIP_BACK} points before step {onset}"
        )
        signs.append(
            Sign("lone_blips", ramp(blips.size, 1, 3), text, steps, ("grad_norm",), number)
        )
    rise = rise_before(g.x, g.base.center, at, back=6)
    if rise > 0.2:
        text = f"the grad norm was {np.exp(rise):.2g} times its level in the 6 points before step {onset}"
        signs.append(
            Sign("grad_trend", ramp(rise, 0.2, 0.5), text, (onset,), ("grad_norm",), number)
        )
    after = g.x[at : at + 10] - g.base.center[at] if at < g.x.size else g.x[:0]
    after = after[np.isfinite(after)]
    if draft.loss_event is not None and after.size and float(np.max(after)) < np.log(2.0):
        text = f"the grad norm stayed under twice its level while the loss rose at step {onset}"
        signs.append(Sign("quiet_grad", 1.0, text, (onset,), ("grad_norm",), number))


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
