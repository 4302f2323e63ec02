"""Step 1: when did it begin, and which moved first, the grad norm or the loss?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.rules.timeline import DIVERGENCE
from stabdiag.signals.trend import Ending, ending
from stabdiag.steps import events as ev
from stabdiag.steps.episodes import Draft, group
from stabdiag.steps.quiet_events import grad_growth, odd_batches, zero_losses
from stabdiag.steps.restarts import Restart, restarts
from stabdiag.steps.schedule import LrChange, lr_jumps, lr_resets
from stabdiag.steps.tracks import is_signed
from stabdiag.steps.view import View

FIRST_OF = 0.5  # the first episode at least so severe, of the worst, is where it began
PASSING = 0.3  # of the final rise: a spike so small that passed is not what the run ended in
SAME_AGAIN = 0.02  # of the loss range: repeated steps that differ by less are the same
MOST_JUDGED = 12  # episodes weighed one by one
LEAST = 0.7  # severity of an episode that may carry the verdict


@dataclass(frozen=True)
class Timeline:
    """The run's episodes in order, and what happened at its restarts and to its learning rate.

    `primary` is the index of the episode that the verdict is about, None where there is none.
    `diverged` compares the loss's end with its best level (None: it came back, or can't be told).
    """

    view: View
    episodes: tuple[Draft, ...]
    primary: int | None
    jumps: tuple[LrChange, ...]
    resets: tuple[LrChange, ...]
    restarts: tuple[Restart, ...]
    diverged: Ending | None
    diverged_step: int | None

    @property
    def main(self) -> Draft | None:
        """The episode that the verdict is about."""
        return None if self.primary is None else self.episodes[self.primary]

    @property
    def judged(self) -> tuple[int, ...]:
        """Numbers of the episodes that are weighed: the most severe ones, in order."""
        order = sorted(range(len(self.episodes)), key=lambda i: -self.episodes[i].severity)
        chosen = [i for i in order if self.episodes[i].kind != "grad_spike"][:MOST_JUDGED]
        return tuple(sorted({*chosen, *([] if self.primary is None else [self.primary])}))

    @property
    def loss_episodes(self) -> tuple[Draft, ...]:
        """Episodes in which the loss itself spiked or shifted."""
        return tuple(e for e in self.episodes if e.has("loss_spike") or e.has("level_shift"))


def isolate(view: View) -> Timeline:
    """Find the events of a run, group them into episodes and pick the one where it began."""
    back = restarts(view)
    found = [
        *ev.loss_spikes(view),
        *ev.grad_spikes(view),
        *ev.non_finite_loss(view),
        *ev.non_finite_grad(view),
        *ev.non_finite_params(view),
        *ev.scale_collapse(view),
        *ev.param_jumps(view),
        *zero_losses(view),
        *odd_batches(view),
        *grad_growth(view),
    ]
    found = [
        e for e in found if not (_returns_to_course(view, e, back) or _seen_before(view, e, back))
    ]
    episodes = group(view, found)
    diverged, step = _divergence(view)
    primary = _primary(episodes)
    if primary is not None and diverged is not None and step is not None:
        early = episodes[primary]
        passing = early.recovered and early.loss_event is not None
        if passing and early.end is not None and early.end < step:
            size = early.loss_event.size if early.loss_event is not None else 0.0
            if view.loss is not None and size < PASSING * diverged.rise / view.loss.unit:
                primary = None  # a blip that passed is not what the run ended in
    return Timeline(
        view=view,
        episodes=tuple(episodes),
        primary=primary,
        jumps=tuple(lr_jumps(view)),
        resets=tuple(lr_resets(view)),
        restarts=tuple(back),
        diverged=diverged,
        diverged_step=step,
    )


def _primary(episodes: list[Draft]) -> int | None:
    """The first episode that matters beside the worst; grad spikes alone never do."""
    serious = [
        (i, e.severity)
        for i, e in enumerate(episodes)
        if e.kind != "grad_spike" and e.severity >= LEAST
    ]
    if not serious:
        return None
    worst = max(s for _, s in serious)
    capped = min(worst, 30.0)
    return next(i for i, s in serious if s >= FIRST_OF * capped)


def _seen_before(view: View, event: ev.Event, back: list[Restart]) -> bool:
    """Whether a rise right after a restart is where these very steps stood the first time."""
    if event.kind not in ("level_shift", "loss_spike"):
        return False
    return any(
        r.paired
        and r.segment == event.segment
        and 0 <= event.onset - r.step <= 5 * view.cadence
        and abs(r.change) < SAME_AGAIN
        for r in back
    )


def _returns_to_course(view: View, event: ev.Event, back: list[Restart]) -> bool:
    """Whether a rise only brings the loss back to its level before a drop at a restart."""
    if event.kind not in ("level_shift", "loss_spike") or view.loss is None or event.spike is None:
        return False
    before = [r for r in back if r.index <= event.index and r.change < 0 and abs(r.score) > 4]
    if not before:
        return False
    restart = before[-1]
    x = view.loss.x[max(0, restart.index - 20) : restart.index]
    x = x[np.isfinite(x)]
    if x.size < 3:
        return False
    level = float(np.median(x)) + 3.0 * event.spike.scale
    top = view.loss.x[event.spike.peak : event.spike.peak + 5]
    return float(np.nanmedian(top)) <= level


def _divergence(view: View) -> tuple[Ending | None, int | None]:
    """Whether the loss ends well above its best level, and where it parted from it."""
    if view.loss is None or is_signed(view.loss.x):
        return None, None
    if view.loss.x.size and not np.isfinite(view.loss.x[-1]):  # step 3 says how it ends
        return None, None
    loss, limits = view.loss, view.limits
    kept = view.run.series["loss"]  # what a restart overwrote is no level to hold the end against
    x = kept.value
    finite = int(np.count_nonzero(np.isfinite(x)))
    window = max(3, min(int(limits(DIVERGENCE, "window")), finite // 6))
    end = ending(x, window=window)
    if end is None:
        return None, None
    noise = max(end.noise, loss.floor) / np.sqrt(window) * 1.25
    tall = end.rise >= limits(DIVERGENCE, "min_rise") * loss.unit
    if not (tall and end.rise >= limits(DIVERGENCE, "min_noise") * noise):
        return None, None
    # where the level passes a fifth of the final rise for good
    limit = end.best + 0.2 * end.rise
    with np.errstate(invalid="ignore"):
        under = np.flatnonzero(x <= limit)
    first = int(under[-1]) + 1 if under.size else 0
    first = min(first, x.size - 1)
    return end, int(kept.step[first])
