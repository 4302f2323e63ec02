"""The signs of one episode: its size, its lead, its precursors and what it left behind."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.signals.precursors import blip_rate, lone_blips, rise_before
from stabdiag.steps.episodes import Draft
from stabdiag.steps.events import Event
from stabdiag.steps.outcome import ramp, share_text
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.view import View

BLIP_FACTOR = 3.0  # times the level: SIGNALS, lone steps ahead of a natural spike
BLIP_BACK = 25
HOLD_POINTS = 4  # SIGNALS: a half-life of 5 points or more is most often the data's


def growth_text(event: Event) -> str:
    """The sentence for a grad norm that grew for good."""
    return f"the grad norm grew {event.ratio:.3g} times from step {event.onset} on and stayed there"


def episode_signs(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """The signs of one episode for the ledger."""
    if draft.loss_event is not None:
        _loss_signs(timeline, number, draft, signs)
    for e in draft.events:
        at, series = (e.onset,), ("grad_norm",)
        if e.kind == "grad_growth":
            strength = ramp(e.size, 3.0, 6.0)
            signs.append(Sign("grad_growth", strength, growth_text(e), at, series, number))
        if e.kind == "odd_batch":
            text = f"the grad norm rose {e.ratio:.3g} times on an unusual batch at step {e.onset}"
            signs.append(Sign("odd_batch", 1.0, text, at, series, number))


def _loss_signs(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """Signs of one loss episode for the ledger; steps in the sentences."""
    view = timeline.view
    event = draft.loss_event
    assert event is not None
    assert event.spike is not None
    assert view.loss is not None
    at = (draft.onset,)

    def add(name: str, strength: float, text: str, series: tuple[str, ...] = ("loss",)) -> None:
        if strength > 0:
            signs.append(Sign(name, strength, text, at, series, number))

    score = min(event.score, 50.0)
    add(
        "loss_event",
        max(ramp(score, 4.5, 8.0), 0.15),
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
        lost = _collapsed(view, draft, event)
        add("collapsed" if lost else "new_level", 1.0, lost or text)
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


def _collapsed(view: View, draft: Draft, event: Event) -> str:
    """The sentence for a loss that stays far up with a grad norm that died, "" where it is not so.

    A new source of data raises the loss and its gradients; a model that is lost stays near its
    untrained level, and its gradients are a share of what they were.
    """
    if view.loss is None or event.spike is None or view.grad is None:
        return ""
    rest = view.loss.x[event.spike.peak :]
    rest = rest[np.isfinite(rest)]
    level = (
        (float(np.median(rest[-20:])) - event.spike.center) / view.loss.unit if rest.size else 0.0
    )
    g = view.grad
    at = g.track.at(draft.segment, draft.onset)
    after, before = g.x[at + 5 :], g.x[max(0, at - 30) : at]
    after, before = after[np.isfinite(after)], before[np.isfinite(before)]
    if level < 0.4 or after.size < 10 or before.size < 5:
        return ""
    ratio = float(np.exp(np.median(after[-30:]) - np.median(before)))
    if ratio > 0.5:
        return ""
    return (
        f"after step {event.onset} the loss stays {level:.0%} of its range up and the grad norm at "
        f"{ratio:.2g} of what it was: the model is lost"
    )


def _aftermath(timeline: Timeline, number: int, draft: Draft, signs: list[Sign]) -> None:
    """Whether a passing spike left the model worse: one bad batch does not, a bad update does.

    The points 2 to 8 after the peak against the baseline before the onset.
    """
    view, event = timeline.view, draft.loss_event
    assert event is not None
    assert event.spike is not None
    assert view.loss is not None
    loss, spike, at = view.loss, event.spike, (draft.onset,)
    after = loss.x[spike.peak + 2 : spike.peak + 9] - spike.center
    after = after[np.isfinite(after)]
    if after.size >= 4:
        rest = float(np.median(after)) / loss.unit
        noise = 1.25 * spike.scale / loss.unit / np.sqrt(after.size)
        text = (
            f"{share_text(rest)} the loss range was left of the spike 2 to 8 points after step "
            f"{event.peak}"
        )
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
