"""What is drawn: the main series with fewer points, a close-up of the episode, the LR's phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from stabdiag.drawings import ChartSeries, CloseUp, LrPhase, NotFinite, PhaseKind
from stabdiag.model import F64, I64
from stabdiag.steps.episodes import Draft
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import Track, track
from stabdiag.steps.view import View

BUCKETS = 2000
DRAWN = ("loss", "val_loss", "grad_norm", "param_norm", "lr", "loss_scale")
NEAR = ("loss", "grad_norm")
NEAR_EVENTS = 12  # the most severe of them, drawn with more points
NEAR_BUCKETS = 50  # of the stretch of one
MOST_STRETCHES = 2000  # of points that are not finite; with more, neighbours are joined
NEAR_POINTS = 24  # logged points shown before an episode and after it, at the least
NEAR_SHARE = 1 / 3  # of the run: an episode that fills more needs no close-up
PHASE_POINTS = 200  # places at which the direction of the learning rate is read
LEAST_PHASE = 0.03  # of them: shorter is a wobble or a single drop
MOST_PHASES = 12  # more are cycles, and no list of them helps
_KINDS: Mapping[int, PhaseKind] = {1: "rise", 0: "constant", -1: "decay"}


def charts(timeline: Timeline) -> tuple[ChartSeries, ...]:
    """The main series reduced to at most 4 points a bucket (first, lowest, highest, last).

    Of the most severe events all points near the onset, the peak and the end are kept.
    """
    worst = sorted(timeline.episodes, key=lambda e: -e.severity)[:NEAR_EVENTS]
    cadence = timeline.view.cadence
    tracks = (track(timeline.view.run, name) for name in DRAWN)
    return tuple(_drawn(t, _kept(t, worst, cadence)) for t in tracks if t is not None)


def _kept(t: Track, near: Sequence[Draft], cadence: int) -> I64:
    """Indices to draw: of the whole track, and more of them near the events."""
    keep = [reduced(t.value)]
    if keep[0].size < t.step.size:
        for one in near:
            end = one.end if one.end is not None else one.peak
            a, b = t.at(one.segment, one.onset), t.at(one.segment, end + 1)
            keep.append(a + reduced(t.value[a:b], NEAR_BUCKETS))
            around = NEAR_POINTS * cadence
            for at in (one.onset, one.peak, end):
                a, b = t.at(one.segment, at - around), t.at(one.segment, at + around + 1)
                keep.append(np.arange(a, b))
    return np.unique(np.concatenate(keep))


def not_finite(step: I64, value: F64) -> tuple[NotFinite, ...]:
    """Every point that is not finite, those in a row together, in the order logged.

    With more than `MOST_STRETCHES` rows of them neighbours are joined; no point is left out.
    """
    bad = np.flatnonzero(~np.isfinite(value))
    if not bad.size:
        return ()
    nan = np.isnan(value[bad])
    starts = np.flatnonzero(np.append(True, (np.diff(bad) > 1) | (nan[1:] != nan[:-1])))
    if starts.size > MOST_STRETCHES:
        starts = starts[np.linspace(0, starts.size, MOST_STRETCHES + 1).astype(np.int64)[:-1]]
    stops = np.append(starts[1:], bad.size)
    counts = np.add.reduceat(nan.astype(np.int64), starts)
    out = []
    for a, b, nans in zip(starts.tolist(), stops.tolist(), counts.tolist(), strict=True):
        kind = "NaN" if nans == b - a else "NaN or Inf" if nans else "Inf"
        at = step[bad[a:b]]
        out.append(NotFinite(int(at.min()), int(at.max()), b - a, kind))
    return tuple(out)


def close_up(timeline: Timeline) -> CloseUp | None:
    """Loss and grad norm around the main episode, None where a close-up would show no more."""
    view, main = timeline.view, timeline.main
    tracks = [t for name in NEAR if (t := track(view.run, name)) is not None]
    if main is None or not tracks:
        return None
    first, last = min(int(t.step[0]) for t in tracks), max(int(t.step[-1]) for t in tracks)
    end = main.end if main.end is not None else main.peak
    around = max(NEAR_POINTS * view.cadence, end - main.onset)
    a, b = max(first, main.onset - around), min(last, end + around)
    if b - a > NEAR_SHARE * (last - first):
        b = min(b, main.onset + 2 * NEAR_POINTS * view.cadence)  # at least how it began
        a = max(a, main.onset - NEAR_POINTS * view.cadence)
    if b - a > NEAR_SHARE * (last - first):
        return None
    series = []
    for t in tracks:
        inside = np.flatnonzero((t.step >= a) & (t.step <= b))
        if inside.size:
            series.append(_drawn(t, inside[reduced(t.value[inside])]))
    return CloseUp(a, b, tuple(series)) if series else None


def lr_phases(view: View) -> tuple[LrPhase, ...]:
    """Where the learning rate climbs, holds and falls; empty where it is not logged or cycles."""
    if view.lr is None:
        return ()
    step, value = view.lr.step, view.lr.value
    ok = np.flatnonzero(np.isfinite(value))
    if ok.size < 3:
        return ()
    places = ok[np.unique(np.linspace(0, ok.size - 1, PHASE_POINTS).astype(np.int64))]
    y = value[places]
    change = np.diff(y)
    way = np.where(np.abs(change) > 1e-6 * np.max(np.abs(y)), np.sign(change), 0.0)
    stretches = _stretches(way)
    if len(stretches) > MOST_PHASES:
        return ()
    return tuple(
        LrPhase(_KINDS[w] if a or w <= 0 else "warmup", int(step[places[a]]), int(step[places[b]]))
        for w, a, b in stretches
    )


def _stretches(way: F64) -> list[tuple[int, int, int]]:
    """(direction, first place, last place) of each stretch; short ones go to the one before."""
    least = max(1, int(LEAST_PHASE * way.size))
    found: list[tuple[int, int, int]] = []
    place = 0
    for direction, group in groupby(way.astype(int).tolist()):
        length = sum(1 for _ in group)
        short = length < least and not (place == 0 and direction > 0)  # a warm-up may be short
        if found and (short or found[-1][0] == direction):
            found[-1] = (found[-1][0], found[-1][1], place + length)
        else:
            found.append((direction, place, place + length))
        place += length
    return found


def _drawn(t: Track, keep: I64) -> ChartSeries:
    steps, values = tuple(t.step[keep].tolist()), tuple(t.value[keep].tolist())
    return ChartSeries(t.name, steps, values, not_finite(t.step, t.value))


def reduced(value: F64, buckets: int = BUCKETS) -> I64:
    """Indices to draw, sorted: of each bucket the first, lowest, highest, last and non-finite."""
    n = value.size
    if n <= 4 * buckets:
        return np.arange(n)
    edges = np.linspace(0, n, buckets + 1).astype(np.int64)
    good = np.isfinite(value)
    drawn = np.zeros(n, dtype=np.bool_)
    for some in (good, ~good):
        at = np.flatnonzero(some)
        border = np.searchsorted(at, edges)
        filled = border[1:] > border[:-1]
        drawn[at[border[:-1][filled]]] = drawn[at[border[1:][filled] - 1]] = True
    at = np.flatnonzero(good)
    y, start = value[at], np.unique(np.searchsorted(at, edges[:-1]))
    start = start[start < at.size]
    if start.size:
        size = np.diff(np.append(start, at.size))
        for extreme in (np.minimum, np.maximum):
            there = np.flatnonzero(y == np.repeat(extreme.reduceat(y, start), size))
            drawn[at[there[np.searchsorted(there, start)]]] = True  # the first of equal ones
    return np.flatnonzero(drawn)
