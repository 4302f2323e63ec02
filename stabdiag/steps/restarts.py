"""Restarts: whether the run went on where its checkpoint stood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64
from stabdiag.signals.shifts import level_change
from stabdiag.steps.view import View

COMPARED = 20  # logged points compared on each side of a restart


@dataclass(frozen=True)
class Restart:
    """One restart: the loss after it against the loss before it.

    `change` is the shift of the level as a share of the loss range, `score` the same in robust
    standard errors; NaN where there are too few points. `paired` says that the very same steps
    were compared (repeated after the restart).
    """

    step: int
    segment: int
    index: int
    change: float
    score: float
    paired: bool
    repeated: int


def restarts(view: View) -> list[Restart]:
    """Compare the loss before and after each restart of the run."""
    if view.loss is None:
        return []
    t, x, unit = view.loss.track, view.loss.x, view.loss.unit
    found = []
    for border in t.borders:
        stop = int(np.searchsorted(t.segment, t.segment[border], side="right"))
        new = slice(border, min(border + COMPARED, stop))
        old = np.flatnonzero(t.segment == t.segment[border - 1])
        both, i_old, i_new = np.intersect1d(t.step[old], t.step[new], return_indices=True)
        if both.size >= 5:
            change, score = _paired(x[old][i_old], x[new][i_new], view.loss.floor)
            paired = True
        else:
            at = old[t.step[old] <= t.step[border]][-COMPARED:]
            change, score = level_change(x[at], x[new], view.loss.floor)
            paired = False
        overlap = int(np.count_nonzero(t.step[old] >= t.step[border]))
        found.append(
            Restart(
                step=int(t.step[border]),
                segment=int(t.segment[border]),
                index=border,
                change=change / unit,
                score=score,
                paired=paired,
                repeated=overlap,
            )
        )
    return found


def _paired(old: F64, new: F64, floor: float) -> tuple[float, float]:
    """Median difference of the same steps, and its robust standard errors."""
    ok = np.isfinite(old) & np.isfinite(new)
    difference = (new - old)[ok]
    if difference.size < 5:
        return float("nan"), float("nan")
    middle = float(np.median(difference))
    spread = max(1.4826 * float(np.median(np.abs(difference - middle))), floor)
    return middle, middle / (1.25 * spread / float(np.sqrt(difference.size)))
