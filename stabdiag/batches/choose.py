"""Which batch is meant, and which ordinary ones it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.findings import Episode, Report
from stabdiag.model import I64

NEAR_STEPS = 200  # steps with data indices before the batch, among which ordinary ones are chosen


@dataclass(frozen=True)
class Choice:
    """The step whose batch is looked at and why; None where the run shows no onset."""

    step: int | None
    why: str


def chosen_step(report: Report, steps: I64 | None, asked: int | None, cadence: int) -> Choice:
    """The step asked for, else the last one with data indices up to the diagnosed onset.

    Args:
        report: the diagnosis of the run.
        steps: steps with data indices, sorted, [N]; None where the log has none.
        asked: what --step says.
        cadence: steps between two logged points; the trigger may lie between them.
    """
    if asked is not None:
        return Choice(asked, "as asked with --step")
    episode = report.main_episode or next(iter(report.episodes), None)
    onset = report.verdict.onset_step if episode is None else episode.onset_step
    if onset is None:
        return Choice(None, "the run shows no onset; name a step with --step N")
    why = _why(onset, episode)
    if cadence > 1:
        why += f"; logged every {cadence} steps, and the trigger may be a batch in between"
    if steps is None or steps.size == 0:
        return Choice(onset, why)
    at = int(np.searchsorted(steps, onset, side="right")) - 1
    if at < 0:
        return Choice(onset, why)
    if steps[at] != onset:
        return Choice(int(steps[at]), f"the last step with data indices before step {onset}: {why}")
    return Choice(onset, why)


def _why(onset: int, episode: Episode | None) -> str:
    if episode is None:
        return f"the onset that the diagnosis names is step {onset}"
    grad, loss = episode.grad_onset_step, episode.loss_onset_step
    kind = episode.kind.replace("_", " ")
    if onset not in (grad, loss):
        return f"the main event ({kind}) begins at step {onset}"
    if grad is not None and (loss is None or grad < loss):
        later = "" if loss is None else f", before the loss (step {loss})"
        return (
            f"the grad norm leaves its course at step {grad}{later}; it was computed on this batch"
        )
    if grad is not None and grad == loss:
        return f"loss and grad norm leave their course at step {loss}, computed on this batch"
    return f"the loss leaves its course at step {loss}; it was computed on this batch"


def ordinary_steps(
    steps: I64, chosen: int, episodes: Sequence[Episode], cadence: int, count: int
) -> tuple[int, ...]:
    """Up to `count` steps before the chosen one, evenly spaced, apart from every episode.

    The logged step just before is left out too: the trouble may have begun unseen.

    Args:
        steps: steps with data indices, sorted, [N].
        chosen: the step that they are compared with.
        episodes: intervals in which nothing is ordinary.
        cadence: steps between two logged points.
        count: how many are wanted.
    """
    before = steps[steps < chosen - cadence]
    for episode in episodes:
        last = before[-1] if before.size and episode.end_step is None else episode.end_step
        if last is not None:
            before = before[(before < episode.onset_step - cadence) | (before > last + cadence)]
    near = before[-NEAR_STEPS:]
    if near.size <= count:
        return tuple(near.tolist())
    at = np.linspace(0, near.size - 1, count).round().astype(np.int64)
    return tuple(near[at].tolist())
