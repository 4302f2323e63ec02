"""What really happened in a run: onset and size of the effect, against its healthy twin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from loop import Record
from numpy.typing import NDArray

SIGMAS = 3.0
MAD_TO_SIGMA = 1.4826
SPIKE_SIGMAS = 6.0
RISE = 1.6  # a contiguous rise of the grad norm above this multiple of its median

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What a label says of a fault's effect; steps, or None for never / not measured."""

    loss_onset: int | None = None
    grad_onset: int | None = None
    visible_loss: bool | None = None
    visible_grad: bool | None = None
    loss_sigmas: float | None = None
    loss_peak: int | None = None
    grad_ratio: float | None = None
    recovers: bool | None = None
    stuck: bool = False


def against_twin(record: Record, twin: Record, onset: int, logged: NDArray[np.bool_]) -> Truth:
    """Measure a timed fault against the same run without it.

    Args:
        record: the run with the fault.
        twin: the run without, equal up to the onset.
        onset: first step the fault acts on.
        logged: [rows] whether a row of the record is written to the log.
    """
    rows = min(len(record.step), len(twin.step))
    steps = np.array(record.step[:rows])
    after = np.flatnonzero((steps >= onset) & (np.arange(rows) >= _last_arrival(steps, onset)))
    loss, clean = np.array(record.loss[:rows]), np.array(twin.loss[:rows])
    grad, clean_grad = _logs(record.grad_norm[:rows]), _logs(twin.grad_norm[:rows])
    loss_off = _off(loss, clean, noise(clean))
    grad_off = _off(grad, clean_grad, noise(clean_grad))
    shown = logged[:rows]
    bad = not np.isfinite(loss[after]).all()
    peak = after[np.argmax(np.nan_to_num(np.abs(loss_off[after]), nan=np.inf))]
    both = after[np.isfinite(grad[after]) & np.isfinite(clean_grad[after])]
    ratio = np.exp(np.max(grad[both] - clean_grad[both])) if len(both) else np.inf
    return Truth(
        loss_onset=_first(steps, after, loss_off),
        grad_onset=_first(steps, after, grad_off),
        visible_loss=_any_off(loss_off[after][shown[after]]),
        visible_grad=_any_off(grad_off[after][shown[after]]),
        loss_sigmas=None if bad else float(np.max(loss_off[after])),
        loss_peak=int(steps[peak]),
        grad_ratio=None if bad or np.isinf(ratio) else float(ratio),
        recovers=bool(_any_calm(loss_off[after])),
    )


def by_itself(record: Record, plateau: float) -> Truth:
    """Find the first spike of a run that has no twin: NaN loss, or a robust z above 6.

    The grad norm's onset is the start of its contiguous rise up to the loss spike. A run whose
    last losses lie above `plateau` has learned nothing: it is stuck.
    """
    loss, grad = np.array(record.loss), _logs(record.grad_norm)
    steps = np.array(record.step)
    spike = _earlier(_first_spike(loss), _first_drift(loss))
    recovers = bool(
        np.isfinite(loss[-20:]).all()
        and np.median(loss[-20:]) <= 1.15 * np.min(_medians(loss)) + 0.05
    )
    stuck = not np.median(loss[-30:]) < plateau
    recovers = recovers and not stuck
    if stuck and np.max(loss) < 1.2 * loss[0]:
        spike = None  # a plateau from the start has bounces, not spikes
    if spike is None:
        return Truth(recovers=recovers, stuck=stuck)
    start = spike
    level = np.median(grad[max(spike - 60, 0) : max(spike - 5, 1)])
    while start > 0 and not grad[start - 1] < level + np.log(RISE) and spike - start < 60:
        start -= 1
    return Truth(
        loss_onset=int(steps[spike]), grad_onset=int(steps[start]), recovers=recovers, stuck=stuck
    )


def _earlier(spike: int | None, drift: int | None) -> int | None:
    """Return the spike, unless the loss had drifted away long before it."""
    if spike is None or drift is None:
        return drift if spike is None else spike
    return drift if drift < spike - 30 else spike


def _first_drift(loss: Floats, window: int = 25) -> int | None:
    """Return where the loss leaves its best level for good, slowly."""
    if len(loss) < 4 * window or not np.isfinite(loss).all():
        return None
    level = _medians(loss, window // 2)
    best = np.minimum.accumulate(level)
    lost = level > best + np.maximum(3 * noise(loss), 0.25)
    if not lost[-window:].all():
        return None
    return int(np.flatnonzero(~lost)[-1]) + 1


def noise(values: Floats) -> float:
    """Return the noise of a series around its own running median (robust sigma)."""
    usable = values[30:] if len(values) > 90 else values
    usable = usable[np.isfinite(usable)]
    if len(usable) < 10:
        return 0.05
    residual = usable - _medians(usable)
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(residual - np.median(residual))))
    return max(sigma, 1e-3)


def _medians(values: Floats, half: int = 10) -> Floats:
    padded = np.pad(values, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.median(windows, axis=1)


def _logs(values: list[float]) -> Floats:
    array = np.array(values)
    positive = np.where(np.isnan(array), np.nan, np.maximum(array, 1e-12))
    return np.log(positive)


def _off(values: Floats, clean: Floats, sigma: float) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        off = (values - clean) / sigma
    off[~np.isfinite(values) & np.isfinite(clean)] = np.nan
    return off


def _is_off(off: Floats) -> NDArray[np.bool_]:
    return np.isnan(off) | (np.abs(np.nan_to_num(off)) > SIGMAS)


def _any_off(off: Floats) -> bool:
    return bool(_is_off(off).any())


def _any_calm(off: Floats) -> bool:
    tail = off[-20:]
    return bool(np.isfinite(tail).all()) and float(np.median(tail)) < SIGMAS


def _first(steps: NDArray[np.int64], after: NDArray[np.int64], off: Floats) -> int | None:
    places = after[_is_off(off[after])]
    return int(steps[places[0]]) if len(places) else None


def _last_arrival(steps: NDArray[np.int64], onset: int) -> int:
    """Return the row at which `onset` is reached for the last time (a restart repeats steps)."""
    return int(np.flatnonzero(steps == onset)[-1])


def _first_spike(loss: Floats, window: int = 50, skip: int = 10) -> int | None:
    for place in range(1, len(loss)):
        if not np.isfinite(loss[place]):
            return place
        if place < skip:  # too short a past: only a clear rise over the first loss counts
            if loss[place] > 1.2 * loss[0]:
                return place
            continue
        past = loss[max(place - window, 0) : place]
        level = np.median(past[-15:])
        sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(past - np.median(past)))), 0.02)
        if loss[place] - level > max(SPIKE_SIGMAS * sigma, 0.05 * max(level, 0.5)):
            return place
    return None
