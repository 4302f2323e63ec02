"""The learning rate: jumps, and resets at restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.rules.timeline import LR_JUMP, SCHEDULE_RESET
from stabdiag.steps.tracks import Track
from stabdiag.steps.view import View

LONG_FALL = 20  # logged points of a steady fall: a decay, not a wobble
TURN_POINTS = 6  # logged points on each side that show a direction


@dataclass(frozen=True)
class LrChange:
    """The learning rate at `step` is `ratio` times that of the logged point before."""

    step: int
    segment: int
    before: float
    after: float
    kind: str = "jump"

    @property
    def ratio(self) -> float:
        """Rate after over rate before."""
        return self.after / self.before if self.before > 0 else float("inf")


def lr_jumps(view: View) -> list[LrChange]:
    """Rises of the learning rate that no warm-up makes: by a factor, and out of step.

    A linear warm-up doubles the rate at its second point with equal increments; a jump's
    increment is also many times the usual one.
    """
    t = view.lr
    if t is None:
        return []
    ok = np.flatnonzero(np.isfinite(t.value) & (t.value >= 0))
    if ok.size < 4:
        return []
    y, segment, step = t.value[ok], t.segment[ok], t.step[ok]
    change = np.diff(y)
    jumps = []
    limit = view.limits(LR_JUMP, "min_ratio")
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = y[1:] / y[:-1]
    for i in np.flatnonzero((factor > limit) & (change > 0)).tolist():
        if i < 2 or segment[i] != segment[i + 1]:
            continue
        past = change[max(0, i - 20) : i]
        usual = float(np.median(np.abs(past))) if past.size else 0.0
        if change[i] > 5.0 * usual and change[i] > 0.01 * float(y.max()):
            jumps.append(
                LrChange(int(step[i + 1]), int(segment[i + 1]), float(y[i]), float(y[i + 1]))
            )
    return jumps


def lr_resets(view: View) -> list[LrChange]:
    """Restarts at which the learning rate left its schedule, and turns of it in between.

    `kind` says how: "warmup" (fell back, climbs again), "raised", "turned" (from falling to
    rising), or "lowered" (someone chose a lower rate: no fault).
    """
    t = view.lr
    if t is None:
        return []
    found = []
    limit = view.limits(SCHEDULE_RESET, "min_change")
    for border in t.borders:
        before = _expected(t, border)
        after = float(t.value[border])
        if before is None or not np.isfinite(after) or before <= 0:
            continue
        kind = ""
        ahead = t.value[border : border + TURN_POINTS]
        climbs = ahead.size > 2 and bool(np.mean(np.diff(ahead) > 0) > 0.8)
        if after > (1.0 + limit) * before:
            kind = "raised"
        elif after < (1.0 - limit) * before:
            kind = "warmup" if climbs else "lowered"
        elif _turns(t, border):
            kind = "turned"
        if kind:
            found.append(LrChange(int(t.step[border]), int(t.segment[border]), before, after, kind))
    return found or _turns_between(t)


def _turns(t: Track, border: int) -> bool:
    """Whether a rate that was falling before the restart rises steadily after it."""
    before = t.value[max(0, border - TURN_POINTS) : border]
    after = t.value[border : border + TURN_POINTS]
    if before.size < TURN_POINTS or after.size < TURN_POINTS:
        return False
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return False
    fell, rises = np.diff(before) < 0, np.diff(after) > 0
    return bool(fell.mean() > 0.8 and rises.mean() > 0.8)


def _turns_between(t: Track) -> list[LrChange]:
    """One turn from a long steady fall to a steady rise inside a segment; several are a cycle."""
    ok = np.flatnonzero(np.isfinite(t.value))
    y = t.value[ok]
    if y.size < 2 * LONG_FALL:
        return []
    way = np.sign(np.diff(y))
    moved = np.flatnonzero(way != 0)
    turns = []
    fell, rises = way[moved[:-1]] < 0, way[moved[1:]] > 0
    for j in moved[1:][fell & rises & (moved[1:] >= LONG_FALL)].tolist():
        before, after = way[j - LONG_FALL : j], way[j : j + TURN_POINTS]
        steady = np.mean(before < 0) > 0.8 and np.mean(after > 0) > 0.8
        if steady and after.size == TURN_POINTS and y[j + 1] < 1.65 * y[j]:
            turns.append(j)
    if len(turns) != 1:
        return []
    j = turns[0]
    return [
        LrChange(
            int(t.step[ok[j + 1]]), int(t.segment[ok[j]]), float(y[j]), float(y[j + 1]), "turned"
        )
    ]


def _expected(t: Track, border: int) -> float | None:
    """The rate that the segment before had at (or just before) the step of the restart."""
    old = t.segment == t.segment[border - 1]
    same = np.flatnonzero(old & (t.step <= t.step[border]) & np.isfinite(t.value))
    if same.size == 0:
        same = np.flatnonzero(old & np.isfinite(t.value))[:1]
    return float(t.value[same[-1]]) if same.size else None
