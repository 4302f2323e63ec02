"""Episodes: the events that belong together, with their lead and how they ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.findings import HandbookRule, Recovery
from stabdiag.rules.timeline import LOSS_SPIKE
from stabdiag.signals.precursors import Lead, lead_between
from stabdiag.steps.events import Event
from stabdiag.steps.view import View

LOSS_KINDS = ("loss_spike", "level_shift")  # of an event or episode in which the loss itself rose
NEAR_POINTS = 10  # events within so many logged points belong together
FLANK = 0.5  # log: a contiguous grad norm 1.6 x above its level belongs to a spike


@dataclass(frozen=True)
class Draft:
    """An episode before its attribution; steps as logged, `index` in the loss's track.

    `severity` orders episodes: how far and how high, non-finite above all.
    """

    kind: str
    segment: int
    onset: int
    peak: int
    end: int | None
    index: int
    events: tuple[Event, ...]
    loss_onset: int | None
    grad_onset: int | None
    lead: Lead
    recovery: Recovery
    steps_lost: int
    rule: HandbookRule
    rule_reason: str
    severity: float

    @property
    def recovered(self) -> bool:
        """Whether the loss came back in full."""
        return self.recovery in ("fast", "slow")

    def has(self, kind: str) -> bool:
        """Whether an event of this kind is part of it."""
        return any(e.kind == kind for e in self.events)

    @property
    def loss_event(self) -> Event | None:
        """The largest event of the loss in it."""
        mine = [e for e in self.events if e.kind in LOSS_KINDS]
        return max(mine, key=lambda e: e.size) if mine else None


KIND_ORDER = (
    "non_finite",
    "loss_scale_collapse",
    "loss_spike",
    "level_shift",
    "lone_nan",
    "zero_loss",
    "param_jump",
    "odd_batch",
    "grad_growth",
    "grad_spike",
)


def event_severity(event: Event) -> float:
    """How much an event matters beside others of the run, dimensionless."""
    if event.kind == "non_finite":
        return 60.0
    if event.kind == "loss_scale_collapse":
        return 50.0
    if event.kind in ("lone_nan", "zero_loss"):
        return 6.0
    if event.kind == "param_jump":
        return min(event.score / 4.0, 5.0) * min(event.size / 0.1, 3.0)
    if event.kind in ("odd_batch", "grad_growth"):
        return 1.0
    height = np.sqrt(min(max(event.size, 1e-6) / 0.05, 400.0))
    return float(min(event.score / 6.0, 5.0) * height)


def group(view: View, events: list[Event]) -> list[Draft]:
    """Group events that lie within ten logged points of each other into episodes, in order."""
    ordered = sorted(events, key=lambda e: (e.segment, e.onset, KIND_ORDER.index(e.kind)))
    reach = NEAR_POINTS * view.cadence
    groups: list[list[Event]] = []
    last = 0
    for event in ordered:
        same = groups and groups[-1][-1].segment == event.segment
        if same and event.onset - last <= reach:
            groups[-1].append(event)
            last = max(last, event.end if event.end is not None else event.peak)
        else:
            groups.append([event])
            last = event.end if event.end is not None else event.peak
    return [_draft(view, tuple(g)) for g in groups]


def _draft(view: View, events: tuple[Event, ...]) -> Draft:
    kind = min((e.kind for e in events), key=KIND_ORDER.index)
    segment = events[0].segment
    losses = [
        e.onset
        for e in events
        if e.kind in LOSS_KINDS or (e.kind == "non_finite" and e.series == "loss")
    ]
    loss_onset = min(losses) if losses else None
    # lone grad-norm spikes that end before the loss moves are precursors, not the onset
    sharp = [
        e
        for e in events
        if e.kind != "param_jump"
        and e.series != "param_norm"  # logged now and then: it knows the interval only
        and not (e.kind == "grad_spike" and loss_onset is not None and _over(e, loss_onset))
    ] or list(events)
    onset = min(e.onset for e in sharp)
    grad_onset = _grad_onset(view, events, segment, loss_onset)
    if grad_onset is not None:
        onset = min(onset, grad_onset)
    lead = lead_between(
        loss_onset,
        grad_onset,
        loss_cadence=view.loss.track.cadence if view.loss else 1,
        grad_cadence=view.grad.track.cadence if view.grad else 1,
    )
    index = view.loss.track.at(segment, onset) if view.loss is not None else 0
    rises = [e for e in events if e.kind in LOSS_KINDS]
    biggest = max(rises or events, key=event_severity)
    end, recovery, lost = _recovery(view, events, kind, onset)
    followed = [e.onset for e in events if e.kind == "grad_spike" and e.onset > (loss_onset or 0)]
    rule, reason = _handbook(view, lead, loss_onset, grad_onset, kind, min(followed, default=None))
    return Draft(
        kind=kind,
        segment=segment,
        onset=onset,
        peak=max(biggest.peak, onset),
        end=None if end is None else max(end, onset),  # a restart may take the end back
        index=index,
        events=events,
        loss_onset=loss_onset,
        grad_onset=grad_onset,
        lead=lead,
        recovery=recovery,
        steps_lost=lost,
        rule=rule,
        rule_reason=reason,
        severity=max(event_severity(e) for e in events),
    )


def _over(event: Event, step: int) -> bool:
    """Whether an event was over before `step`."""
    return event.end is not None and event.end < step


def _grad_onset(
    view: View, events: tuple[Event, ...], segment: int, loss_onset: int | None
) -> int | None:
    """Where the grad norm's contiguous rise that reaches the loss onset began.

    The first non-finite grad norm counts; so does a rise of 1.6 times the level, point by point,
    back from the loss onset. Lone spikes that end before it are precursors, not a lead.
    """
    broken = [e.onset for e in events if e.kind == "non_finite" and e.series == "grad_norm"]
    if view.grad is None:
        return min(broken) if broken else None
    g = view.grad
    if loss_onset is None:
        spikes = [e.onset for e in events if e.kind == "grad_spike"]
        return min(spikes + broken) if spikes or broken else None
    at = g.track.at(segment, loss_onset)
    last = min(at + 2, g.x.size)
    with np.errstate(invalid="ignore"):
        high = (g.x - g.base.center) > FLANK
        scored = g.z > 3.0
    bad = ~np.isfinite(g.track.value)
    up = (high & scored) | bad
    start = next((i for i in range(at, last) if up[i]), None)
    if start is None:
        return min(broken) if broken else None
    while start > 0 and up[start - 1] and g.track.segment[start - 1] == segment:
        start -= 1
    found = int(g.track.step[start])
    return min([found, *broken])


def _recovery(
    view: View, events: tuple[Event, ...], kind: str, onset: int
) -> tuple[int | None, Recovery, int]:
    """(end step, recovery class, steps lost) of an episode."""
    last_step = int(view.loss.track.step[-1]) if view.loss is not None else onset
    losses = [e for e in events if e.kind in LOSS_KINDS]
    broken = [e for e in events if e.kind in ("non_finite", "loss_scale_collapse")]
    open_end = [e for e in (*losses, *broken) if e.end is None]
    if not open_end:
        ends = [e.end for e in events if e.end is not None]
        end = max(ends) if ends else onset
        fast = view.limits(LOSS_SPIKE, "fast_points") * view.cadence
        return end, "fast" if end - onset <= fast else "slow", max(0, end - onset)
    if any(e in broken for e in open_end):
        return None, "none", max(0, last_step - onset)
    worst = max(open_end, key=lambda e: e.size)
    return None, _partial(view, worst), max(0, last_step - onset)


def _partial(view: View, event: Event) -> Recovery:
    """`partial` where at least half of the height is gone at the end, else `none`."""
    if view.loss is None or event.spike is None:
        return "none"
    tail = view.loss.x[event.spike.peak + 1 :]
    tail = tail[np.isfinite(tail)]
    if tail.size < 3:
        return "none"
    rest = float(np.median(tail[-10:])) - event.spike.center
    return "partial" if rest < 0.5 * event.spike.excess else "none"


def _handbook(
    view: View,
    lead: Lead,
    loss_onset: int | None,
    grad_onset: int | None,
    kind: str,
    followed: int | None,
) -> tuple[HandbookRule, str]:
    """What the handbook's rule reads from the alignment, and why.

    `followed` is where a grad norm that did not rise at the loss's onset rose in its wake.
    """
    if view.grad is None:
        why = (
            "the grad norm is logged after clipping" if view.post_clip else "no grad norm is logged"
        )
        return "undecidable", why
    if loss_onset is None:
        return "undecidable", "the loss itself shows no spike"
    if grad_onset is None and followed is not None:
        return "data_or_overflow", f"the loss rose first, the grad norm from step {followed} on"
    if grad_onset is None:
        return "data_or_overflow", "the loss rose and the grad norm did not"
    steps, unsure = lead.steps or 0, lead.uncertainty or 0
    if unsure > 0 and abs(steps) <= unsure:
        return (
            "undecidable",
            f"logged every {unsure + 1} steps: a lead of {steps} is within the uncertainty",
        )
    if steps > 0:
        return (
            "optimizer",
            f"the grad norm rose {steps} step{'s' if steps > 1 else ''} before the loss",
        )
    if steps == 0:
        return (
            "data_or_overflow",
            "grad norm and loss rose at the same step: both come from that batch, no precursor",
        )
    plural = "s" if steps < -1 else ""
    return "data_or_overflow", f"the grad norm rose {-steps} step{plural} after the loss"
