"""Single events: what one series did that it should not have, in its own steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, Mask
from stabdiag.rules.layers import PARAM_JUMP
from stabdiag.rules.numerics import NON_FINITE_GRAD, SCALE_COLLAPSE, SKIPPED_STEP
from stabdiag.rules.timeline import GRAD_SPIKE, LEVEL_SHIFT, LOSS_SPIKE
from stabdiag.signals.baseline import MAD_TO_SIGMA, trailing_median
from stabdiag.signals.nonfinite import Stretch, densest, stretches
from stabdiag.signals.shifts import ahead_median, shift_scores
from stabdiag.signals.spikes import Spike, find_spikes
from stabdiag.steps.tracks import Scored, Track
from stabdiag.steps.view import View

CONVERGED = 0.1  # of the loss range
SHIFT_PAST = 20  # points before a level shift: fewer make no level that could shift
COARSE = 5  # steps between points from which a log is coarse
BROAD_SHARE = 0.15  # of the loss range
BROAD_SCORE = 0.75  # of the score that a level shift needs
FAMILIAR_POINTS, FAMILIAR_TIMES, FAMILIAR_SHARE = 200, 3, 0.8
CLEAR_SCORE = 8.0  # score from which a height of a share of the level is enough
SHIFT_POINTS = 5  # a level shift is the median of so many points
SHIFT_SCALE = float(np.sqrt(SHIFT_POINTS) / 1.25)  # from its height in spreads to its score
USUAL_POINTS = 50  # changes of the parameter norm that make its usual one
MANY = 200  # spikes kept of one series: beyond, the largest


@dataclass(frozen=True)
class Event:
    """One event of one series; `onset`, `peak` and `end` are steps (`end` None: never).

    `index` is the onset's position in the series' track. `score` is in robust standard
    deviations, `ratio` the peak over the level before (NaN for signed losses), `size` the height
    as a share of the loss range (of the log for norms).
    """

    kind: str
    series: str
    segment: int
    onset: int
    peak: int
    end: int | None
    index: int
    score: float
    ratio: float
    size: float
    spike: Spike | None = None


def _spike_event(kind: str, source: Scored, spike: Spike, ratio: float) -> Event:
    t = source.track
    return Event(
        kind=kind,
        series=t.name,
        segment=int(t.segment[spike.onset]),
        onset=int(t.step[spike.onset]),
        peak=int(t.step[spike.peak]),
        end=None if spike.end is None else int(t.step[spike.end]),
        index=spike.onset,
        score=spike.score,
        ratio=ratio,
        size=spike.excess / source.unit,
        spike=spike,
    )


def _near(source: Scored, other: Scored | None, hot: Mask, points: int = 2) -> Mask:
    """Which points of `source` have a hot point of `other` within `points` of their own, [N]."""
    near = np.zeros(source.x.size, dtype=np.bool_)
    if other is None:
        return near
    mine, theirs = source.track, other.track
    for i in np.flatnonzero(hot).tolist():
        at = mine.at(int(theirs.segment[i]), int(theirs.step[i]))
        near[max(0, at - points) : at + points + 1] = True
    return near


def loss_spikes(view: View) -> list[Event]:
    """Spikes and level shifts of the loss.

    A point seeds one by its own score and height, by a lower score beside a grad-norm spike, or
    as the start of a lasting shift (median of the next five points).
    """
    loss = view.loss
    if loss is None:
        return []
    limits = view.limits
    height = limits(LOSS_SPIKE, "min_excess")
    with np.errstate(invalid="ignore"):
        high = _tall(loss, height)
        lone = (loss.z >= loss.threshold) & high
        # two neighbours above a threshold are no single outlier of a heavy tail
        plain = (loss.z >= loss.pair_threshold) & high
        pair = plain & (np.roll(plain, 1) | np.roll(plain, -1))
        joint = (loss.z >= loss.joint_threshold) & high
        joint &= _near(loss, view.grad, _hot_grad(view))
        shift = shift_scores(loss.x, loss.base, loss.floor, SHIFT_POINTS)
        ahead = _ahead_median(loss, SHIFT_POINTS)
        tall = ahead >= limits(LEVEL_SHIFT, "min_excess")
        low = ahead * loss.unit >= height * np.abs(loss.base.center)
        low &= loss.base.center >= CONVERGED * loss.unit
        # a step of a sixth of the range is worth a lower score: coarse logs have few points for it
        broad = ahead >= BROAD_SHARE
        broad &= loss.track.cadence >= COARSE
        broad &= shift >= BROAD_SCORE * SHIFT_SCALE * loss.median_threshold
        tall |= low & (shift >= 2.0 * SHIFT_SCALE * loss.median_threshold)
        shift[:SHIFT_PAST] = np.nan
        lasting = ((shift >= SHIFT_SCALE * loss.median_threshold) & tall) | broad
    known = _familiar(loss, lone | joint)
    lone, joint = lone & ~known, joint & ~known
    sharp = lone | pair | joint
    hot = sharp | (lasting & (loss.z > 1.5) & ~_just_before(sharp))
    found = find_spikes(loss.x, loss.z, loss.base, hot, starts=loss.track.borders)
    events = []
    for s in sorted(sorted(found, key=lambda s: -s.excess)[:MANY], key=lambda s: s.onset):
        span = slice(s.onset, s.peak + 1)
        kind = "loss_spike" if sharp[span].any() else "level_shift"
        ratio = float(loss.x[s.peak] / s.center) if s.center > 0 else float("nan")
        event = _spike_event(kind, loss, s, ratio)
        best = float(np.nanmax(np.append(shift[span], s.score)))
        events.append(event if kind == "loss_spike" else _with_score(event, best))
    return events


def _just_before(sharp: Mask) -> Mask:
    """The points so near before a sharp one that it makes the median of those ahead, [N].

    What begins there begins at the sharp one: a calm point is no onset for what follows it.
    """
    out = np.zeros(sharp.size, dtype=np.bool_)
    for ahead in range(1, SHIFT_POINTS // 2 + 1):
        out[:-ahead] |= sharp[ahead:]
    return out & ~sharp


def _with_score(event: Event, value: float) -> Event:
    return Event(**{**event.__dict__, "score": value})


def _familiar(loss: Scored, lone: Mask) -> Mask:
    """Lone points no higher than several others shortly before: part of the distribution, [N].

    A mixture with a harder source in every tenth step has a spread that the MAD can't see.
    """
    out = np.zeros(lone.size, dtype=np.bool_)
    excess = np.nan_to_num(loss.excess, nan=-np.inf)
    for i in np.flatnonzero(lone)[:MANY].tolist():
        before = excess[max(0, i - FAMILIAR_POINTS) : i]
        out[i] = np.count_nonzero(before >= FAMILIAR_SHARE * excess[i]) >= FAMILIAR_TIMES
    return out


def _tall(loss: Scored, height: float) -> Mask:
    """Points high enough for a spike, [N]: a share of the loss range, or of the level itself.

    Late in a run the range of the start is no measure: a share of the level counts too, with a
    score that leaves no doubt.
    """
    need = height * loss.unit
    rise = loss.x - loss.base.center
    converged = loss.base.center < CONVERGED * loss.unit  # near 0 any share of it is nothing
    level = np.where(converged, np.inf, height * loss.base.center)
    clear = (loss.z >= CLEAR_SCORE) & (rise >= level)
    return np.asarray((rise >= need) | clear, dtype=np.bool_)


def _ahead_median(source: Scored, ahead: int) -> F64:
    """Height of the median of the next points as a share of the unit, [N]; NaN near the end."""
    n = source.x.size
    out = np.full(n, np.nan)
    if n >= ahead:
        filled = np.where(np.isfinite(source.x), source.x, np.inf)
        out[: n - ahead + 1] = ahead_median(filled, ahead)
    with np.errstate(invalid="ignore"):
        return np.asarray((out - source.base.center) / source.unit, dtype=np.float64)


def _hot_grad(view: View) -> Mask:
    if view.grad is None:
        return np.zeros(0, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        high = view.grad.z >= 6.0
        return np.asarray(high & (view.grad.excess >= np.log(2.0)), dtype=np.bool_)


def grad_spikes(view: View) -> list[Event]:
    """Spikes of the grad norm, on the log scale; the largest where there are very many."""
    grad = view.grad
    if grad is None:
        return []
    with np.errstate(invalid="ignore"):
        tall = grad.excess >= np.log(view.limits(GRAD_SPIKE, "min_ratio"))
        hot = (grad.z >= grad.threshold) & tall
    found = find_spikes(grad.x, grad.z, grad.base, hot, starts=grad.track.borders)
    kept = sorted(sorted(found, key=lambda s: -s.excess)[:MANY], key=lambda s: s.onset)
    return [_spike_event("grad_spike", grad, s, float(np.exp(min(s.excess, 700.0)))) for s in kept]


def _stretch_event(t: Track, kind: str, s: Stretch) -> Event:
    return Event(
        kind=kind,
        series=t.name,
        segment=int(t.segment[s.first]),
        onset=int(t.step[s.first]),
        peak=int(t.step[s.first]),
        end=int(t.step[s.last + 1]) if s.heals else None,
        index=s.first,
        score=float("inf"),
        ratio=float("nan"),
        size=float("inf"),
    )


def non_finite_loss(view: View) -> list[Event]:
    """Non-finite losses: lone ones that heal (`lone_nan`), and lasting ones (`non_finite`)."""
    if view.loss is None:
        return []
    t = view.loss.track
    found = stretches(t.value)
    events = []
    for s in found[:MANY]:
        lone = s.heals and s.points <= 2 and _back_to_normal(view.loss, s.last + 1)
        events.append(_stretch_event(t, "lone_nan" if lone else "non_finite", s))
    if len(found) >= 6:  # one empty batch is an accident; many NaN are not
        events = [Event(**{**e.__dict__, "kind": "non_finite"}) for e in events]
    return events


def _back_to_normal(loss: Scored, index: int) -> bool:
    if index >= loss.x.size:
        return False
    z = loss.z[index : index + 3]
    known = z[np.isfinite(z)]
    return bool(known.size == 0 or np.median(known) < 4.0)


def non_finite_grad(view: View) -> list[Event]:
    """Non-finite grad norms that are more than a loss scaler at work.

    A stretch of several, or several close together, after the scaler has found its first scale.
    """
    t = view.grad_track
    if t is None or view.post_clip:
        return []
    bad = ~np.isfinite(t.value)
    if not bad.any():
        return []
    limits = view.limits
    settled = _scaler_settled(view, t)
    run = int(limits(NON_FINITE_GRAD, "min_run"))
    events = [
        _stretch_event(t, "non_finite", s)
        for s in stretches(t.value)
        if s.points >= run and (s.first >= settled or not s.heals)
    ]
    at = np.flatnonzero(bad)
    at = at[at >= settled]
    span = max(1, round(limits(NON_FINITE_GRAD, "dense_span") / t.cadence))
    count, first = densest(at, span)
    if count >= min(limits(NON_FINITE_GRAD, "dense_count"), span):
        dense = Stretch(first, int(at[-1]), int(at[-1]) < t.value.size - 1, True, False)
        events.append(_stretch_event(t, "non_finite", dense))
    return sorted(events, key=lambda e: e.index)[:MANY]


def non_finite_params(view: View) -> list[Event]:
    """A parameter norm that turns non-finite for good: the weights are broken."""
    t = view.param
    if t is None:
        return []
    found = [s for s in stretches(t.value) if s.points >= 2 and not s.heals and s.first > 0]
    return [_stretch_event(t, "non_finite", s) for s in found]


def _scaler_settled(view: View, t: Track) -> int:
    """Index from which skipped steps are no longer the scaler's search for its first scale."""
    finite = np.flatnonzero(np.isfinite(t.value))
    if finite.size == 0:
        return 0
    first = int(finite[0])
    warm = t.step[0] + view.limits(SKIPPED_STEP, "warmup")
    # NaN from the first point on that heals within the warm-up is the search; else it is real
    if first == 0 or t.step[first] > warm:
        return 0
    return first


def scale_collapse(view: View) -> list[Event]:
    """A loss scale that fell without coming back: far below its settled maximum, or at a floor."""
    t = view.scale
    if t is None:
        return []
    ok = np.isfinite(t.value) & (t.value > 0)
    index = np.flatnonzero(ok)
    if index.size < 10:
        return []
    y = t.value[index]
    falls = np.flatnonzero(np.diff(y) < 0) + 1
    start = 0  # the first search: falls at every point from the first on
    while start < falls.size and falls[start] == start + 1:
        start += 1
    settled = int(falls[start - 1]) if start else 0
    # a search that never ends before the floor is the collapse itself
    if settled > 30 or settled >= y.size - 2:
        settled = 0
    top = np.maximum.accumulate(y[settled:])
    deep = y[settled:] <= top / view.limits(SCALE_COLLAPSE, "min_fall")
    # a floor under the scale, or a logger that ends early: less deep, but for good
    last = max(5, y.size // 4)
    low = y[settled:] <= top / view.limits(SCALE_COLLAPSE, "min_lasting_fall")
    if not deep.any() and low[-last:].all() and low.size > last:
        deep = low & (np.arange(low.size) > np.flatnonzero(~low)[-1])
    if not deep.any():
        return []
    bottom = settled + int(np.argmax(deep))
    since = settled + int(np.flatnonzero(y[settled:bottom] == top[bottom - settled])[-1]) + 1
    return [
        Event(
            kind="loss_scale_collapse",
            series=t.name,
            segment=int(t.segment[index[bottom]]),
            onset=int(t.step[index[_dense_fall(y, since, bottom)]]),
            peak=int(t.step[index[bottom]]),
            end=None,
            index=int(index[since]),
            score=float("inf"),
            ratio=float(y[bottom] / top[bottom - settled]),
            size=float("inf"),
        )
    ]


def _dense_fall(y: F64, since: int, bottom: int) -> int:
    """Where the falls to `bottom` began to come close together: gap under 4 x the median gap."""
    falls = np.flatnonzero(np.diff(y[since - 1 : bottom + 1]) < 0) + since
    if falls.size < 4:
        return since
    gaps = np.diff(falls)
    usual = max(2.0, 4.0 * float(np.median(gaps)))
    wide = np.flatnonzero(gaps > usual)
    return int(falls[wide[-1] + 1]) if wide.size else int(falls[0])


def param_jumps(view: View) -> list[Event]:
    """Changes of the global parameter norm far beyond the usual ones, in one logged interval."""
    t = view.param
    if t is None:
        return []
    ok = np.flatnonzero(np.isfinite(t.value) & (t.value > 0))
    if ok.size < 6:
        return []
    y = np.log(t.value[ok])
    change = np.abs(np.diff(y))
    change[np.diff(t.segment[ok]) != 0] = 0.0  # a restart takes the norm back: not a jump
    gap = np.maximum(np.diff(t.step[ok]), 1)
    rate = change / gap * t.cadence
    usual = trailing_median(rate, USUAL_POINTS, 3)
    usual = np.where(np.isfinite(usual), usual, np.inf)
    big = (rate > view.limits(PARAM_JUMP, "min_usual") * np.maximum(usual, 1e-5 * MAD_TO_SIGMA)) & (
        change > view.limits(PARAM_JUMP, "min_log_change")
    )
    events = []
    for i in np.flatnonzero(big)[:MANY].tolist():
        at = int(ok[i + 1])
        events.append(
            Event(
                kind="param_jump",
                series=t.name,
                segment=int(t.segment[at]),
                onset=int(t.step[ok[i]]) + 1,
                peak=int(t.step[at]),
                end=int(t.step[at]),
                index=at,
                score=float(rate[i] / max(usual[i], 1e-5)),
                ratio=float(np.exp(min(y[i + 1] - y[i], 700.0))),
                size=float(change[i]),
            )
        )
    return events
