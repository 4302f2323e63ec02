"""One series of a run from its cells: last write wins over restarts, and each step once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stabdiag.model import F64, I64, Mask, Segment, Series


@dataclass(frozen=True)
class Timeline:
    """The rows of a run in order, shape [P] each.

    `row` is the table row. `alive` is False where a later restart trains over the same steps.
    `kept` is False outside the range of steps asked for.
    """

    row: I64
    step: I64
    segment: I64
    alive: Mask
    kept: Mask

    @cached_property
    def rising(self) -> bool:
        """Whether every row has a later step than the row before."""
        return bool(np.all(self.step[1:] > self.step[:-1]))


def timeline(rows: I64, step: I64, segment: I64, train: Mask) -> Timeline:
    """Rows with what restarts make of them: all from a restart's first step on is overwritten."""
    count = int(segment.max(initial=-1)) + 1
    start = np.full(count + 1, np.iinfo(np.int64).max, dtype=np.int64)
    steers = train if train.any() else np.ones_like(train)
    np.minimum.at(start, segment[steers], step[steers])
    # The lowest step at which any later segment begins.
    limit = np.minimum.accumulate(start[::-1])[::-1][1:]
    alive = step < limit[segment] if count else np.ones_like(train)
    return Timeline(rows, step, segment, alive, np.ones_like(train))


def within(line: Timeline, first_step: int | None, last_step: int | None) -> Timeline:
    """The timeline restricted to a range of steps, inclusive."""
    kept = line.kept.copy()
    if first_step is not None:
        kept &= line.step >= first_step
    if last_step is not None:
        kept &= line.step <= last_step
    return Timeline(line.row, line.step, line.segment, line.alive, kept)


def segments_of(line: Timeline, train: Mask) -> tuple[tuple[Segment, ...], I64]:
    """Segments that have rows in range, in file order, and each row's index into them [P]."""
    found: list[Segment] = []
    index = np.zeros(line.segment.size, dtype=np.int64)
    for segment in range(int(line.segment.max(initial=-1)) + 1):
        own = line.kept & (line.segment == segment)
        if not own.any():
            continue
        steers = own & train if (own & train).any() else own
        index[line.segment == segment] = len(found)
        found.append(
            Segment(
                first_step=int(line.step[steers].min()),
                last_step=int(line.step[steers].max()),
                first_row=int(line.row[own].min()),
                last_row=int(line.row[own].max()),
            )
        )
    return tuple(found), index


@dataclass(frozen=True)
class Built:
    """A series, the points that restarts overwrote, and steps written twice with other values."""

    series: Series
    abandoned: Series | None
    differing: int


def build_series(
    name: str, column: str, line: Timeline, segment: I64, value: F64, logged: Mask, inferred: Mask
) -> Built:
    """Take the logged points of one series, shape [P] arrays in, in the run's order of rows.

    Where a segment logs a step twice the last one is kept; they differ unless the values are
    equal (NaN equals NaN).
    """
    present = (logged | inferred) & line.kept
    dead = present & ~line.alive
    abandoned = None
    if dead.any():
        abandoned = _points(name, column, line, segment, value, inferred, dead)[0]
    series, differing = _points(name, column, line, segment, value, inferred, present & line.alive)
    return Built(series, abandoned, differing)


def _points(
    name: str,
    column: str,
    line: Timeline,
    segment: I64,
    value: F64,
    inferred: Mask,
    chosen: Mask,
) -> tuple[Series, int]:
    differing = 0
    if chosen.all() and line.rising and not inferred.any():
        # The usual series, logged at every row: nothing to pick, nothing to copy.
        return Series(name, column, line.step, value, line.row, segment, inferred), differing
    at = np.flatnonzero(chosen)
    step = line.step[at]
    if at.size and np.any(step[1:] <= step[:-1]):
        # Segments that a restart cut short don't overlap, so the step alone orders what is alive;
        # abandoned points of several segments stay apart.
        order = np.lexsort((np.arange(at.size), segment[at], step))
        at, step = at[order], step[order]
        repeated = (step[1:] == step[:-1]) & (segment[at[1:]] == segment[at[:-1]])
        old, new = value[at[:-1]][repeated], value[at[1:]][repeated]
        differing = int(np.count_nonzero(~((old == new) | (np.isnan(old) & np.isnan(new)))))
        last = np.append(~repeated, True)
        at, step = at[last], step[last]
    series = Series(
        name=name,
        column=column,
        step=step,
        value=np.where(inferred[at], np.nan, value[at]),
        row=line.row[at],
        segment=segment[at],
        inferred=inferred[at],
    )
    return series, differing
