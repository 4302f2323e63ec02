"""What the learning rate says: jumps before an onset, a schedule that was lost, a rate of 0."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.rules.monitoring import LR_ENDED
from stabdiag.rules.timeline import LR_JUMP, SCHEDULE_RESET
from stabdiag.steps.outcome import finding, ramp
from stabdiag.steps.schedule import LrChange
from stabdiag.steps.timeline import Timeline

MOST = 20  # changes of the learning rate that are reported one by one


def read(timeline: Timeline) -> tuple[list[Finding], list[Sign]]:
    """Findings and signs of the learning rate."""
    if timeline.view.lr is None:
        return [], []
    findings: list[Finding] = []
    signs: list[Sign] = []
    for jump in timeline.jumps[:MOST]:
        _jump(timeline, jump, findings, signs)
    _steady(timeline, signs)
    for reset in timeline.resets[:MOST]:
        if reset.kind == "lowered":
            continue
        text = (
            f"at step {reset.step} the learning rate {RESETS[reset.kind]} "
            f"({reset.before:.3g} to {reset.after:.3g}): its schedule was not restored"
        )
        data = {"before": reset.before, "after": reset.after, "kind": reset.kind}
        findings.append(finding(SCHEDULE_RESET, text, step=reset.step, data=data))
        signs.append(Sign("schedule_reset", 1.0, text, (reset.step,), ("lr",)))
    _zero(timeline, findings, signs)
    return findings, signs


RESETS = {
    "warmup": "falls back and climbs again",
    "raised": "rises above where it stood",
    "turned": "turns from falling to rising",
}


def _near(timeline: Timeline, number: int, jump: LrChange) -> bool:
    """Whether an episode began within the few points after a jump of the learning rate."""
    view, draft = timeline.view, timeline.episodes[number]
    after = draft.onset - jump.step
    return -view.cadence <= after <= view.limits(LR_JUMP, "max_points") * view.cadence


def _by_design(timeline: Timeline) -> bool:
    """Whether the rate leaps to the same height again and again: a cyclic schedule."""
    tops = [j.after for j in timeline.jumps]
    return len(tops) >= 2 and max(tops) < 1.05 * min(tops)


def _jump(timeline: Timeline, jump: LrChange, findings: list[Finding], signs: list[Sign]) -> None:
    times = f"{jump.ratio:.3g} times" if jump.before > 0 else "from 0"
    text = f"the learning rate rose {times} to {jump.after:.3g} at step {jump.step}"
    near = [i for i in timeline.judged if _near(timeline, i, jump)]
    findings.append(
        finding(
            LR_JUMP,
            text,
            step=jump.step,
            severity=Severity.WARNING if near else Severity.INFO,
            data={"ratio": jump.ratio, "before": jump.before, "after": jump.after},
        )
    )
    strength = ramp(jump.ratio, 1.3, 2.0)
    if _by_design(timeline):
        strength *= 0.3
    signs += [Sign("lr_jump", strength, text, (jump.step,), ("lr",), i) for i in near]


def _steady(timeline: Timeline, signs: list[Sign]) -> None:
    """No jump before an onset, where the rate is logged at every step."""
    lr = timeline.view.lr
    if lr is None or lr.cadence != 1:
        return
    for i in timeline.judged:
        d = timeline.episodes[i]
        if d.loss_event is None or any(_near(timeline, i, j) for j in timeline.jumps):
            continue
        text = f"the learning rate did not jump before step {d.onset}"
        signs.append(Sign("lr_steady", 1.0, text, (d.onset,), ("lr",), i))


def _zero(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """A learning rate of exactly 0 over most of the run: nothing was trained."""
    lr = timeline.view.lr
    assert lr is not None
    finite = lr.value[np.isfinite(lr.value)]
    if finite.size < 20 or float(np.mean(finite == 0.0)) < 0.9:
        return
    text = f"the learning rate is exactly 0 in {np.mean(finite == 0.0):.0%} of its points"
    findings.append(finding(LR_ENDED, text, step=int(lr.step[0]), last_step=int(lr.step[-1])))
    signs.append(Sign("rate_zero", 1.0, text, (int(lr.step[0]),), ("lr",)))
