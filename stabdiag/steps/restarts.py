"""Restarts: whether the run went on where its checkpoint stood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64
from stabdiag.signals.baseline import MAD_TO_SIGMA
from stabdiag.steps.view import View

COMPARED = 20  # logged points compared on each side of a restart
LEAST_PAIRS = 5  # steps logged both before and after a restart that can be compared one by one
NEAREST = 8  # points after a restart that are held against the course before it


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
        paired = both.size >= LEAST_PAIRS
        if paired:
            change, score = _paired(x[old][i_old], x[new][i_new], view.loss.floor)
        else:
            before = old[t.step[old] < t.step[border]][-COMPARED:]
            change, score = _against_course(
                t.step[before], x[before], t.step[new], x[new], view.loss.floor
            )
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


def _against_course(
    step: I64, x: F64, new_step: I64, new_x: F64, floor: float
) -> tuple[float, float]:
    """How far the points after a restart lie off the straight course of those before.

    The slope is the median of that between the halves' points (Theil-Sen on pairs), so that a
    loss that falls fast is not taken for one that fell at the restart.
    """
    new_step, new_x = new_step[:NEAREST], new_x[:NEAREST]
    ok, new_ok = np.isfinite(x), np.isfinite(new_x)
    step, x, new_step, new_x = step[ok], x[ok], new_step[new_ok], new_x[new_ok]
    if x.size < 6 or new_x.size < 3 or new_step[0] - step[-1] > step[-1] - step[0]:
        return float("nan"), float("nan")  # too few, or too far for a straight course
    half = x.size // 2
    slopes = (x[half : 2 * half] - x[:half]) / np.maximum(step[half : 2 * half] - step[:half], 1)
    slope = float(np.median(slopes))
    level = float(np.median(x - slope * step))
    spread = max(MAD_TO_SIGMA * float(np.median(np.abs(np.diff(x)))) / np.sqrt(2.0), floor)
    off = new_x - slope * new_step - level
    # a course bends: half of the change that it was about to make is no change of level
    change = float(np.median(off))
    bend = 0.5 * abs(slope) * float(np.median(new_step) - np.median(step))
    change = float(np.sign(change)) * max(0.0, abs(change) - bend)
    error = 1.25 * spread * np.sqrt(1.0 / x.size + 1.0 / new_x.size)
    return change, change / float(error)


def _paired(old: F64, new: F64, floor: float) -> tuple[float, float]:
    """Median difference of the same steps, and its robust standard errors."""
    ok = np.isfinite(old) & np.isfinite(new)
    difference = (new - old)[ok]
    if difference.size < 5:
        return float("nan"), float("nan")
    middle = float(np.median(difference))
    spread = max(MAD_TO_SIGMA * float(np.median(np.abs(difference - middle))), floor)
    return middle, middle / (1.25 * spread / float(np.sqrt(difference.size)))
