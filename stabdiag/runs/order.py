"""Rows in the order of the run: steps of every row, restarts, and where another run begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from stabdiag.model import F64, I64, Mask

# Share of falling steps above which rows are out of order rather than restarted: a shuffled file
# has one half, a run that is restarted every twenty records one in twenty.
SHUFFLED = 0.2
# Sorted by step, rows out of place change over from one stretch to another so often at most for
# each fall of the step: a late row does so three times, a block twice.
CHANGES = 3
# A start given up after so few points belongs to the run that follows it.
ABORTED_POINTS = 3
# The same first step written again so often at most is a restart, more often a way of logging.
REPEATED_STARTS = 3
# Share of falls at which the epoch must rise for steps counted anew each epoch.
EPOCH_RISES = 0.9
_LEVEL_POINTS = 5
_NOISE_POINTS = 20


@dataclass(frozen=True)
class Rows:
    """What the order of rows is found from, shape [R] each, in file order.

    `step` is NaN where missing; `train` rows are training records; `loss` and `epoch` hold NaN
    where missing. `counted` says that the reader counted the rows itself. `metrics` are masks of
    where each metric is logged. `segment` is the log's own count of restarts, where it has one.
    """

    step: F64
    train: Mask
    loss: F64
    epoch: F64
    counted: bool = False
    metrics: tuple[Mask, ...] = ()
    segment: I64 | None = None


@dataclass(frozen=True)
class Said:
    """What was repaired or guessed, and the rows (indices into the given ones) that it is about."""

    kind: Literal["repaired", "guessed"]
    text: str
    rows: I64


@dataclass(frozen=True)
class Ordered:
    """The rows in run order: `rows` [R] indices into the given ones, the rest in that order.

    `run` counts runs from 0, `segment` restarts within each run; `said` is what was repaired or
    guessed. `united` is True where rows of the same steps hold different metrics in turn.
    """

    rows: I64
    step: I64
    run: I64
    segment: I64
    said: tuple[Said, ...] = ()
    united: bool = False


@dataclass
class _State:
    """Steps while they are repaired: `step` [R]; `at` are the rows that steer, [T]."""

    step: F64
    at: I64
    said: list[Said] = field(default_factory=list)


def ordered(rows: Rows) -> Ordered:
    """Put rows into the order of their runs and find restarts and further runs.

    A step that falls back is a restart, or another run where it falls to the first step and the
    loss starts anew. Rows merely out of order (each step once) are sorted.
    """
    size = rows.step.size
    steers = rows.train & np.isfinite(rows.step)
    if not steers.any():
        steers = np.isfinite(rows.step)
    state = _State(_filled(rows.step), np.flatnonzero(steers))
    if state.at.size == 0:
        count = np.arange(size, dtype=np.int64)
        zeros = np.zeros(size, dtype=np.int64)
        return Ordered(count, count, zeros, zeros)
    if rows.counted:
        bounds = _bounds_by_epoch(rows, state)
        return _assigned(rows, state, bounds)
    _count_on_over_epochs(rows, state)
    if rows.segment is not None and _falls_where_told(rows, state, _told(rows, state)):
        return _assigned(rows, state, _bounds(rows, state))
    if _is_united(rows, state):
        return _sorted(state, united=True)
    if _is_shuffled(state.step[state.at]):
        return _sorted(state)
    return _assigned(rows, state, _bounds(rows, state))


def _filled(step: F64) -> F64:
    """Steps with gaps filled from the row before (the first ones from the row after)."""
    known = np.isfinite(step)
    if not known.any():
        return step
    last = np.maximum.accumulate(np.where(known, np.arange(step.size), -1))
    last[last < 0] = np.flatnonzero(known)[0]
    return step[last]


def _told(rows: Rows, state: _State) -> I64:
    """Where the log's own count of restarts changes: indices into the steering rows."""
    if rows.segment is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.diff(rows.segment[state.at])) + 1


def _falls_where_told(rows: Rows, state: _State, told: I64) -> bool:
    """Whether the step falls at restarts alone: nothing is out of order then.

    A count of restarts that falls itself is that of logs put behind one another, in any order.
    """
    if rows.segment is not None and (np.diff(rows.segment[state.at]) < 0).any():
        return False
    falls = np.flatnonzero(np.diff(state.step[state.at]) < 0) + 1
    return bool(np.isin(falls, told).all())


def _cadence(step: F64) -> float:
    gaps = np.diff(step)
    gaps = gaps[gaps > 0]
    if not gaps.size:
        return 0.0
    even = gaps[0] == gaps[-1] and gaps.min() == gaps.max()
    return float(gaps[0] if even else np.median(gaps))


def _count_on_over_epochs(rows: Rows, state: _State) -> None:
    """Turn steps that start again every epoch into steps of the whole run."""
    step, epoch = state.step[state.at], rows.epoch[state.at]
    falls = np.flatnonzero(np.diff(step) < 0) + 1
    if falls.size == 0 or not np.isfinite(epoch).all():
        return
    rises = epoch[falls] > epoch[falls - 1]
    if np.mean(rises) < EPOCH_RISES:
        return
    length = float(step.max() - min(1.0, step.min()) + 1)
    done = np.floor(_filled(rows.epoch)) - np.floor(epoch[0])
    state.step = state.step + length * done
    text = f"steps start again every epoch: counted on by {length:g} steps an epoch"
    state.said.append(Said("guessed", text, state.at[falls]))


def _is_shuffled(step: F64) -> bool:
    falls = np.flatnonzero(np.diff(step) < 0) + 1
    if falls.size == 0:
        return False
    if falls.size > SHUFFLED * step.size and falls.size > 2:
        return True
    if np.unique(step).size < step.size:
        return False
    # Each step once: blocks or single rows out of place change over a few times when sorted, a
    # resume off the grid of the steps before it (or another run) again and again.
    stretch = np.zeros(step.size, dtype=np.int64)
    stretch[falls] = 1
    by_step = np.cumsum(stretch)[np.argsort(step)]
    return bool(np.count_nonzero(np.diff(by_step)) <= CHANGES * falls.size)


def _is_united(rows: Rows, state: _State) -> bool:
    """Whether one metric after the other is logged over the same steps (a file for each)."""
    falls = np.flatnonzero(np.diff(state.step[state.at]) < 0) + 1
    if falls.size == 0 or falls.size >= len(rows.metrics):
        return False
    bounds = state.at[falls].tolist()
    stretches = zip([0, *bounds], [*bounds, rows.step.size], strict=True)
    logged = [{i for i, m in enumerate(rows.metrics) if m[a:b].any()} for a, b in stretches]
    return sum(map(len, logged)) == len(set().union(*logged)) and all(logged)


def _sorted(state: _State, *, united: bool = False) -> Ordered:
    step = state.step.astype(np.int64)
    rows = np.argsort(step, kind="stable").astype(np.int64)
    zeros = np.zeros(step.size, dtype=np.int64)
    behind = np.flatnonzero(np.diff(step) < 0) + 1
    text = "rows are out of order: sorted by step"
    if united:
        text = "metrics stand one after the other: put together by their steps"
    said = (*state.said, Said("repaired", text, behind))
    return Ordered(rows, step[rows], zeros, zeros, said, united)


@dataclass(frozen=True)
class _Bound:
    """Where a restart or another run begins: an index into the steering rows, [T].

    From there on `shift` is added to the steps as logged.
    """

    index: int
    new_run: bool
    shift: float


def _bounds(rows: Rows, state: _State) -> list[_Bound]:
    """Bounds where the step falls back, is the first one again, or the log counts a restart."""
    step, loss = state.step[state.at], rows.loss[state.at]
    back = np.flatnonzero(np.diff(step) < 0) + 1
    again = np.flatnonzero((np.diff(step) == 0) & (step[1:] == step[0])) + 1
    before, after = loss[again - 1], loss[again]
    again = again[(before != after) & ~np.isnan(before) & ~np.isnan(after)]
    if again.size <= REPEATED_STARTS:
        back = np.union1d(back, again)
    back = np.union1d(back, _told(rows, state))
    bounds: list[_Bound] = []
    start, stretch, shift = 0, 0, 0.0
    for index in back.tolist():
        own = step[start:index]
        # A resume from the second record or later trains on from a checkpoint.
        at_start = step[index] <= step[index - 1]
        at_start &= step[index] < np.min(own[own > own[0]], initial=np.inf)
        aborted = index - stretch <= ABORTED_POINTS and index - start <= 2 * ABORTED_POINTS
        new_run = False
        if at_start and not aborted:
            if _goes_on(loss[start:index], loss[index:]):
                shift += step[index - 1] + max(_cadence(own), 1.0) - step[index]
                text = "steps start again while the loss goes on: counted on"
                state.said.append(Said("guessed", text, state.at[index : index + 1]))
            else:
                new_run, start, shift = True, index, 0.0
        bounds.append(_Bound(index, new_run, shift))
        stretch = index
    return bounds


def _bounds_by_epoch(rows: Rows, state: _State) -> list[_Bound]:
    """Bounds where the epoch falls back, for rows that the reader counted."""
    step, epoch = state.step[state.at], rows.epoch[state.at]
    if not np.isfinite(epoch).any():
        return []
    epoch = _filled(epoch)
    bounds: list[_Bound] = []
    start, shift = 0, 0.0
    for index in (np.flatnonzero(np.diff(epoch) < 0) + 1).tolist():
        at_start = epoch[index] <= epoch[start] + max(_cadence(epoch[start:index]), 0.01)
        if at_start and index - start > ABORTED_POINTS:
            shift = float(step[0] - step[index])
            start = index
            bounds.append(_Bound(index, True, shift))
        else:
            same = start + int(np.argmax(epoch[start:index] >= epoch[index]))
            shift = float(step[same] + _shift_at(bounds, same) - step[index])
            bounds.append(_Bound(index, False, shift))
    return bounds


def _shift_at(bounds: list[_Bound], index: int) -> float:
    """What is added to the step at an index, by the bounds found so far."""
    before = [bound.shift for bound in bounds if bound.index <= index]
    return before[-1] if before else 0.0


def _goes_on(before: F64, after: F64) -> bool:
    """Whether the loss after a fall of the step goes on where it was, rather than starting anew."""
    past, new = before[np.isfinite(before)], after[np.isfinite(after)]
    if past.size < 2 * _LEVEL_POINTS or new.size < _LEVEL_POINTS:
        return False
    first = float(np.median(past[:_LEVEL_POINTS]))
    last = float(np.median(past[-_LEVEL_POINTS:]))
    here = float(np.median(new[:_LEVEL_POINTS]))
    with np.errstate(over="ignore"):
        noise = float(np.median(np.abs(np.diff(past[-_NOISE_POINTS:]))))
    apart = abs(first - last)
    return apart > 5 * noise and abs(here - last) < 0.25 * apart


def _assigned(rows: Rows, state: _State, bounds: list[_Bound]) -> Ordered:
    """Give every row, steering or not, its run, segment and step."""
    size = rows.step.size
    run = np.zeros(size, dtype=np.int64)
    segment = np.zeros(size, dtype=np.int64)
    step = state.step.copy()
    steers = np.zeros(size, dtype=np.bool_)
    steers[state.at] = True
    own_run, own_segment = 0, 0
    for bound in bounds:
        first = _first_row(rows, state, steers, bound.index)
        own_run, own_segment = (own_run + 1, 0) if bound.new_run else (own_run, own_segment + 1)
        run[first:], segment[first:] = own_run, own_segment
        step[first:] = state.step[first:] + bound.shift
    step = _in_step_units(rows, state, step, steers)
    return Ordered(
        np.arange(size, dtype=np.int64), step.astype(np.int64), run, segment, tuple(state.said)
    )


def _first_row(rows: Rows, state: _State, steers: Mask, index: int) -> int:
    """First row behind a bound: an evaluation at the new step stands before the training row."""
    row, low = int(state.at[index]), int(state.at[index - 1])
    if rows.segment is not None and rows.segment[row] != rows.segment[low]:
        return low + int(np.argmax(rows.segment[low : row + 1] == rows.segment[row]))
    new, old = state.step[row], state.step[low]
    while row - 1 > low and not steers[row - 1]:
        before = rows.step[row - 1]
        if not (np.isfinite(before) and before <= new and before < old):
            break
        row -= 1
    return row


def _in_step_units(rows: Rows, state: _State, step: F64, steers: Mask) -> F64:
    """Move other records to the training step before them where theirs counts something else.

    Some loggers write the epoch or the size of the validation set where others write the step.
    """
    others = np.flatnonzero(~steers & np.isfinite(rows.step))
    if others.size == 0:
        return step
    behind = np.searchsorted(state.at, others)
    before = state.at[np.maximum(behind - 1, 0)]
    after = state.at[np.minimum(behind, state.at.size - 1)]
    # Before the first training row only the row after says something, and the reverse at the end.
    odd = (behind > 0) & (step[others] < step[before])
    odd |= (behind < state.at.size) & (step[others] > step[after]) & (step[before] <= step[after])
    places = np.unique(behind).size
    if np.count_nonzero(odd) <= 0.5 * others.size or (places == 1 and others.size > 2):
        return step
    moved = step.copy()
    moved[others] = step[before]
    text = "evaluation records count something else than steps: set to the step before them"
    state.said.append(Said("repaired", text, others))
    return moved
