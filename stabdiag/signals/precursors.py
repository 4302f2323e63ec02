"""What the grad norm did before an onset: contiguous rise, lone blips, trend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64


@dataclass(frozen=True)
class Lead:
    """Loss onset minus grad-norm onset in steps; None where the log can't tell, with the reason."""

    steps: int | None
    uncertainty: int | None
    reason: str


def lead_between(
    loss_onset: int | None, grad_onset: int | None, *, loss_cadence: int, grad_cadence: int
) -> Lead:
    """The lead of the grad norm with its uncertainty: an onset is known to within one cadence.

    With every step logged the uncertainty is 0; two series logged every c steps can't show a
    lead of less than c.
    """
    if loss_onset is None:
        return Lead(None, None, "no loss spike")
    if grad_onset is None:
        return Lead(None, None, "no grad-norm spike")
    uncertainty = max(loss_cadence, grad_cadence) - 1
    return Lead(loss_onset - grad_onset, uncertainty, "")


def lone_blips(log_norm: F64, level: F64, at: int, *, back: int, factor: float) -> I64:
    """Indices in the `back` points before `at` with a lone grad norm `factor` above its level.

    Lone: no more than 2 neighbouring points together. `level` is the trailing median of the log
    norm. Source: natural optimizer instabilities show such blips 2-26 steps ahead.
    """
    start = max(0, at - back)
    with np.errstate(invalid="ignore"):
        high = (log_norm[start:at] - level[start:at]) > np.log(factor)
    index = np.flatnonzero(high) + start
    if index.size == 0:
        return index.astype(np.int64)
    groups = np.split(index, np.flatnonzero(np.diff(index) > 1) + 1)
    return np.asarray([int(g[0]) for g in groups if g.size <= 2], dtype=np.int64)


def blip_rate(log_norm: F64, level: F64, stop: int, *, factor: float) -> float:
    """Share of the points before `stop` that are blips: the run's own base rate."""
    known = np.isfinite(log_norm[:stop]) & np.isfinite(level[:stop])
    if not known.any():
        return 0.0
    high = (log_norm[:stop][known] - level[:stop][known]) > np.log(factor)
    return float(np.mean(high))


def rise_before(log_norm: F64, level: F64, at: int, *, back: int) -> float:
    """Median excess of the log grad norm over its level in the `back` points before `at`."""
    part = log_norm[max(0, at - back) : at] - level[max(0, at - back) : at]
    part = part[np.isfinite(part)]
    return float(np.median(part)) if part.size >= min(3, back) else 0.0
