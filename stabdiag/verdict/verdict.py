"""The verdict: health, cause, onset, layers and the one sentence that says it."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.ledger import Attribution
from stabdiag.causes.signs import Sign
from stabdiag.findings import CAUSES, Finding, Health, MonitorItem, Root, Severity, Verdict
from stabdiag.steps.layers import LayersResult
from stabdiag.steps.timeline import Timeline
from stabdiag.verdict.monitoring import settling

SURE = 0.4  # under this the log can't tell: the runner-up is as likely as not
LEAST_POINTS = 12  # finite points of the loss that a verdict needs, unless it is not finite
WORDS = {
    "optimizer": "the optimizer (learning rate, betas, update size)",
    "data": "the data",
    "overflow": "numerical overflow",
    "initialization": "the initialization",
    "weight_decay": "the weight decay",
    "architecture": "the architecture (one part of the model)",
    "state_corruption": "a corrupted or wrongly restored state",
    "vanishing": "vanishing gradients",
    "none": "no fault",
}
AT_RESTART = ("schedule_reset", "rise_at_restart", "drop_at_restart", "at_every_restart")
WHOLE_RUN = ("initialization", "architecture", "weight_decay", "vanishing")


def conclude(
    timeline: Timeline,
    layers: LayersResult,
    attribution: Attribution,
    signs: tuple[Sign, ...],
    findings: tuple[Finding, ...],
    monitoring: tuple[MonitorItem, ...],
) -> Verdict:
    """Put the verdict together from what the steps found and how the ledger weighs it."""
    cause, probability = _cause(timeline, attribution)
    health = _health(timeline, cause, findings)
    onset = _onset(timeline, cause, attribution, signs)
    named = layers.guilty if cause not in ("none", "inconclusive", "data") else ()
    settle: tuple[str, ...] = ()
    if cause == "inconclusive" or (cause != "none" and probability < 0.8):
        settle = settling(monitoring, attribution.best.cause)
    root = _root(timeline, cause)
    return Verdict(
        health=health,
        cause=cause,
        probability=probability,
        onset_step=onset,
        layers=named,
        summary=_summary(timeline, health, cause, attribution, onset, named, findings),
        settle=settle,
        root=root,
        handbook=_handbook(timeline, cause),
    )


def _cause(timeline: Timeline, attribution: Attribution) -> tuple[str, float]:
    view = timeline.view
    best = attribution.best
    points = 0 if view.loss is None else int(np.count_nonzero(np.isfinite(view.loss.x)))
    if best.cause == "none" and points < LEAST_POINTS:  # silence is no health
        return "inconclusive", 0.0
    if best.probability < SURE:
        return "inconclusive", best.probability
    return best.cause, best.probability


def _health(timeline: Timeline, cause: str, findings: tuple[Finding, ...]) -> Health:
    if cause == "none":
        loud = any(
            f.severity >= Severity.WARNING and not f.rule.startswith("SD7") for f in findings
        )
        return "unstable" if loud else "healthy"
    if timeline.diverged is not None or _ends_broken(timeline):
        return "diverged"
    if cause == "inconclusive" and not any(f.severity >= Severity.WARNING for f in findings):
        return "inconclusive"
    return "unstable"


def _ends_broken(timeline: Timeline) -> bool:
    """Whether the run ends in what went wrong: not where a later segment, or the loss, goes on."""
    view, main = timeline.view, timeline.main
    if view.loss is not None and view.loss.x.size and not np.isfinite(view.loss.x[-1]):
        return True
    if main is None or main.end is not None or main.recovered:
        return False
    track = view.loss.track if view.loss is not None else view.grad_track
    if track is None or main.segment != int(track.segment[-1]):
        return False
    rise = main.loss_event
    if rise is not None and main.recovery == "none" and rise.size > 1.0:
        return True  # it ends more than its whole range above where it stood
    if main.kind == "loss_scale_collapse":
        return not _trains_on(timeline, main.peak)
    # a NaN grad norm beside a loss that goes on falling: the log is the first suspect
    return main.kind == "non_finite" and (view.loss is None or main.loss_onset is not None)


def _trains_on(timeline: Timeline, step: int) -> bool:
    """Whether updates went on after the loss scale had fallen: finite grad norms, a falling loss."""
    view = timeline.view
    norm = view.grad_track
    if norm is not None:
        after = norm.value[norm.step > step][-20:]
        if after.size == 0 or float(np.mean(~np.isfinite(after))) >= 0.5:
            return False
    if view.loss is None:
        return norm is not None
    x = view.loss.x[view.loss.track.step > step]
    x = x[np.isfinite(x)]
    if x.size < 10:
        return False
    edge = max(3, x.size // 5)
    return bool(np.median(x[-edge:]) < np.median(x[:edge]))


def _onset(
    timeline: Timeline, cause: str, attribution: Attribution, signs: tuple[Sign, ...]
) -> int | None:
    main = timeline.main
    if cause == "none" or (cause == "inconclusive" and attribution.best.cause == "none"):
        return None if main is None or cause == "none" else main.onset
    first = _first_step(timeline)
    leading = attribution.best.cause if cause == "inconclusive" else cause
    whole = [s.steps[0] for s in signs if s.name in AT_RESTART and s.steps]
    spikes = [s.steps[0] for s in signs if s.name == "same_layers" and s.steps]
    if spikes and leading == "architecture":
        return spikes[0]
    if leading in WHOLE_RUN and not (
        main is not None and leading == "architecture" and _timed(signs)
    ):
        return first
    if whole and leading in ("state_corruption", "data"):
        return whole[0]
    if main is not None:
        return main.onset
    slow = [s.steps[0] for s in signs if s.name == "slow_rise" and s.steps]
    if timeline.diverged_step is not None or slow:
        return timeline.diverged_step if timeline.diverged_step is not None else slow[0]
    unseen = ("falls_silent", "bad_activations")
    silent = [s.steps[0] for s in signs if s.name in unseen and s.steps]
    if silent:
        return silent[0]
    return first


def _timed(signs: tuple[Sign, ...]) -> bool:
    return not any(s.name in ("dominant_layer", "layer_parts") and s.strength > 0.5 for s in signs)


def _first_step(timeline: Timeline) -> int | None:
    view = timeline.view
    track = view.loss.track if view.loss is not None else (view.grad_track or view.param)
    return int(track.step[0]) if track is not None and track.step.size else None


def _root(timeline: Timeline, cause: str) -> Root | None:
    """A schedule that was lost at a restart is the root of what the learning rate does later."""
    if not timeline.resets or cause in ("none", "inconclusive"):
        return None
    reset = timeline.resets[0]
    main = timeline.main
    if main is None or main.onset <= reset.step:
        return None
    return Root(
        "state_corruption",
        reset.step,
        f"the schedule was lost at the restart at step {reset.step}: the learning rate went from "
        f"{reset.before:.3g} to {reset.after:.3g}; the loss followed at step {main.onset}",
    )


def _handbook(timeline: Timeline, cause: str) -> str:
    """One line on the handbook's rule where the verdict reads otherwise."""
    main = timeline.main
    if main is None or cause in ("none", "inconclusive") or main.rule == "undecidable":
        return ""
    agrees = (main.rule == "optimizer" and cause == "optimizer") or (
        main.rule == "data_or_overflow" and cause in ("data", "overflow")
    )
    if agrees:
        return ""
    reads = {
        "optimizer": "an optimizer issue",
        "data_or_overflow": "data or overflow",
    }[main.rule]
    return (
        f"The handbook's rule reads {reads} here ({main.rule_reason}); the verdict follows the "
        "whole ledger, in which the order of the two is one piece."
    )


def _summary(
    timeline: Timeline,
    health: Health,
    cause: str,
    attribution: Attribution,
    onset: int | None,
    layers: tuple[str, ...],
    findings: tuple[Finding, ...],
) -> str:
    view = timeline.view
    points = view.loss.x.size if view.loss is not None else 0
    if cause == "none" and health != "healthy":
        loud = max(findings, key=lambda f: f.severity)
        return f"No fault of the run itself stands out, but {loud.message}."
    if cause == "none":
        return f"No instability found in {points} points of the loss; {_seen(timeline)}."
    what = _what(timeline, cause if cause != "inconclusive" else attribution.best.cause)
    where = f", in {layers[0]}" if layers else ""
    when = f" at step {onset}" if onset is not None else ""
    if onset is not None and onset == _first_step(timeline) and main_is_whole(timeline, cause):
        when = " from the start"
    if cause == "inconclusive":
        if health == "inconclusive":
            return (
                f"The log holds too little to judge: {points} points of the loss{_else(timeline)}."
            )
        first, second = attribution.ranks[0], attribution.ranks[1]
        return (
            f"{what}{when}{where}; the log can't tell the cause: "
            f"{first.cause} {first.probability:.0%}, {second.cause} {second.probability:.0%}."
        )
    share = attribution.best.probability
    sure = f"{share:.0%}" if share < 0.995 else ">99%"
    return f"{what}{when}{where}; most likely {WORDS[cause]} ({sure})."


def main_is_whole(timeline: Timeline, cause: str) -> bool:
    """Whether the verdict is about the whole run, not about one episode."""
    return timeline.main is None or cause in WHOLE_RUN


def _else(timeline: Timeline) -> str:
    blips = timeline.view.grad_track is not None and timeline.view.loss is None
    return ", and the grad norm alone can't clear a run" if blips else ""


def _what(timeline: Timeline, cause: str) -> str:
    main = timeline.main
    if main is not None and cause not in WHOLE_RUN:
        kinds = {
            "non_finite": "Values became non-finite",
            "loss_scale_collapse": "The loss scale collapsed",
            "loss_spike": "The loss spiked",
            "level_shift": "The loss rose to a new level",
            "lone_nan": "A lone non-finite loss appeared",
            "zero_loss": "The loss was exactly 0",
            "param_jump": "The parameter norm jumped",
        }
        broken = [e.onset for e in main.events if e.kind == "non_finite"]
        if main.kind == "non_finite" and broken and min(broken) > main.onset:
            return f"Values became non-finite at step {min(broken)}, after trouble that began"
        text = kinds.get(main.kind, "The run became unstable")
        return text + (" and came back," if main.recovered and main.kind == "loss_spike" else "")
    return {
        "initialization": "The run started from a poor initialization",
        "architecture": "One part of the model is out of proportion",
        "weight_decay": "The parameters grow without bound",
        "vanishing": "The loss hardly moves",
    }.get(cause, "The run diverged" if timeline.diverged is not None else "The run is unstable")


def _seen(timeline: Timeline) -> str:
    view = timeline.view
    blips = sum(1 for e in timeline.episodes if e.kind == "grad_spike")
    if blips:
        return f"{blips} lone grad-norm spike{'s' if blips > 1 else ''} left the loss untouched"
    return (
        "the grad norm is steady" if view.grad is not None else "the grad norm could not be judged"
    )


__all__ = ["CAUSES", "conclude"]
