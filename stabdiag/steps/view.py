"""What all steps look at: the run's main tracks, scored once, and the limits in force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, Run
from stabdiag.rules import CATALOGUE, Limits
from stabdiag.rules.monitoring import POST_CLIP
from stabdiag.settings import Settings
from stabdiag.steps.tracks import Scored, Track, is_post_clip, score_loss, score_norm, track
from stabdiag.threads import each


@dataclass(frozen=True)
class View:
    """One run as the steps see it. A track is None where the series was not logged."""

    run: Run
    limits: Limits
    settings: Settings
    loss: Scored | None
    grad: Scored | None  # before clipping as far as the log shows; None where it is not
    grad_track: Track | None  # the grad norm as logged, after clipping too
    param: Track | None
    lr: Track | None
    scale: Track | None
    post_clip: bool

    @property
    def cadence(self) -> int:
        """Steps between two points of the loss (of the grad norm where there is no loss)."""
        main = self.loss.track if self.loss is not None else self.grad_track
        return main.cadence if main is not None else 1

    @property
    def dense(self) -> bool:
        """Whether loss and grad norm are logged at every step, so that their order can be told."""
        return (
            self.loss is not None
            and self.grad is not None
            and self.loss.track.cadence == 1
            and self.grad.track.cadence == 1
        )


def build_view(run: Run, settings: Settings) -> View:
    """Score the main tracks of a run.

    Raises:
        UsageError: the settings name an unknown threshold.
    """
    limits = Limits(CATALOGUE, settings.thresholds)
    loss = track(run, "loss")
    grad = track(run, "grad_norm")
    clipped = track(run, "grad_norm_clipped") if grad is None else None
    post_clip = grad is not None and is_post_clip(grad, limits(POST_CLIP, "min_share"))
    usable = grad is not None and not post_clip and _has_positive(grad.value)

    def scored(main: Track | None) -> Scored | None:
        if main is None:
            return None
        if main is loss:
            return score_loss(main, limits, settings, run.weight)
        return score_norm(main, limits, settings.window)

    scored_loss, scored_grad = each(scored, (loss, grad if usable else None))
    return View(
        run=run,
        limits=limits,
        settings=settings,
        loss=scored_loss,
        grad=scored_grad,
        grad_track=grad if grad is not None else clipped,
        param=track(run, "param_norm"),
        lr=track(run, "lr"),
        scale=track(run, "loss_scale"),
        post_clip=post_clip or clipped is not None,
    )


def _has_positive(value: F64) -> bool:
    return bool(np.count_nonzero(np.isfinite(value) & (value > 0)) >= 3)
