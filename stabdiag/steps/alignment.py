"""Step 1's findings and signs: the alignment of grad norm and loss, the LR, the restarts."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.rules.timeline import GRAD_GROWTH, GRAD_SPIKE, LEVEL_SHIFT, LOSS_SPIKE
from stabdiag.steps import restart_signs, schedule_signs, whole_run
from stabdiag.steps.episode_signs import episode_signs, growth_text
from stabdiag.steps.episodes import Draft
from stabdiag.steps.events import Event
from stabdiag.steps.outcome import Outcome, finding, share_text
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
        alarms = view.limits(LOSS_SPIKE, "false_alarms")
        asked = view.settings.spike_threshold is not None
        why = "as asked" if asked else f"{alarms:g} lone false alarms expected"
        looked.append(
            f"loss: {tested} of {view.loss.x.size} points scored against "
            f"{view.loss.threshold:.3g} ({why})"
        )
    if view.grad is not None:
        looked.append(f"grad norm: {int(np.count_nonzero(np.isfinite(view.grad.z)))} points scored")
    judged = set(timeline.judged)
    for number, draft in enumerate(timeline.episodes):
        moved = restart_signs.level_moved_at(timeline, number)
        _episode(draft, view, findings, own_loss=not moved)
        if number in judged:
            episode_signs(timeline, number, draft, signs)
    for part in (schedule_signs.read, restart_signs.read, whole_run.read):
        more_findings, more_signs = part(timeline)
        findings += more_findings
        signs += more_signs
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


def _episode(draft: Draft, view: View, findings: list[Finding], *, own_loss: bool) -> None:
    """The findings of one episode; a level that moved at a restart is SD105's, not a spike."""
    event = draft.loss_event
    if event is not None and own_loss:
        rule = LOSS_SPIKE if draft.has("loss_spike") else LEVEL_SHIFT
        back = f"recovered by step {draft.end}" if draft.end is not None else "did not come back"
        text = (
            f"the loss rose from step {event.onset} on, {_number(event, view)} at step {event.peak} "
            f"(score {event.score:.3g}, {share_text(event.size)} the loss range), {back}"
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
        return "to a higher level"
    return f"from {spike.center:.4g} to {view.loss.x[spike.peak]:.4g}"
