"""Sequences beside the ordinary ones: each measure as an array, each score robust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.batches.features import Features
from stabdiag.model import F64, I64, Mask
from stabdiag.signals.baseline import MAD_TO_SIGMA

SMOOTHING = 0.5  # added to each count (Krichevsky and Trofimov, 1981): no token has probability 0
Measured = dict[str, F64]  # every measure of the sequences of a batch, [B] each
_MOST_FITTED = 200  # points of a Theil-Sen line; its pairs are the square of that
# Measures of which only more than usual is odd.
ONE_SIDED = frozenset(("rare", "odd", "script", "masked", "divergence"))
SEQUENCE_MEASURES = (
    *("length", "surprisal", "rare", "repetition", "compression"),
    *("odd", "script", "masked"),
)


# How close to 1 a share of repeated n-grams counts as all of them.
_NEARLY_ALL = 0.02


def opened(name: str, value: F64) -> F64:
    """A measure on the scale on which it is scored; what is bounded there has room at its end.

    The logarithm of lengths and ratios, and of the share that does not repeat.
    """
    with np.errstate(divide="ignore"):
        if name in ("length", "compression"):
            log = np.log(value)
            return np.where(np.isfinite(log), log, np.nan)
        if name == "repetition":
            return np.asarray(-np.log(1.0 - value + _NEARLY_ALL), dtype=np.float64)
    return value


def shown(name: str, value: float) -> float:
    """The measure itself again, from the scale on which it is scored."""
    if name in ("length", "compression"):
        return float(np.exp(value))
    if name == "repetition":
        return float(np.clip(1.0 + _NEARLY_ALL - np.exp(-value), 0.0, 1.0))
    return value


@dataclass(frozen=True)
class Reference:
    """Pooled token counts [V] of the ordinary sequences over the distinct `token`s of all."""

    token: I64
    count: F64

    def counts_of(self, one: Features) -> tuple[I64, F64]:
        """Places of a sequence's tokens in `token`, and its counts of them."""
        return np.searchsorted(self.token, one.token), one.count.astype(np.float64)


@dataclass(frozen=True)
class Scored:
    """One measure of the batch's sequences [B] beside the ordinary ones.

    `value` and `usual` are `opened`. `score` is in robust standard deviations from `usual`, NaN
    where not measured or not judged; its sign says the side. `size` is how odd that is: the score,
    or its absolute value where both sides are. `unusual` are those beyond the limit and well beyond
    every ordinary one. `peers` ordinary sequences could be measured.
    """

    name: str
    value: F64
    usual: float
    score: F64
    size: F64
    unusual: Mask
    peers: int


def reference_of(ordinary: Sequence[Features], batch: Sequence[Features]) -> Reference:
    """The tokens of the ordinary sequences pooled; those of the batch alone have count 0."""
    every = [one.token for one in (*ordinary, *batch)]
    token = np.unique(np.concatenate(every)) if every else np.zeros(0, dtype=np.int64)
    reference = Reference(token, np.zeros(token.size))
    for one in ordinary:
        place, count = reference.counts_of(one)
        reference.count[place] += count
    return reference


def surprisal(one: Features, reference: Reference, *, own: bool) -> float:
    """Mean bits a token under the ordinary distribution; NaN for a sequence without tokens.

    It is the cross entropy between the sequence's distribution and the smoothed reference, and
    its mean does not depend on the length. `own` leaves the sequence out of the reference.
    """
    place, count = reference.counts_of(one)
    total = count.sum()
    if total == 0:
        return float("nan")
    seen = reference.count[place] - (count if own else 0.0)
    size = reference.count.sum() - (total if own else 0.0)
    share = (seen + SMOOTHING) / (size + SMOOTHING * (reference.token.size + 1))
    return float(-(count * np.log2(share)).sum() / total)


def rare_share(one: Features, reference: Reference, below: float, *, own: bool) -> float:
    """Share of the tokens that make less than `below` of the ordinary ones; NaN without tokens."""
    place, count = reference.counts_of(one)
    total = count.sum()
    size = reference.count.sum() - (total if own else 0.0)
    if total == 0 or size <= 0:
        return float("nan")
    seen = reference.count[place] - (count if own else 0.0)
    return float(count[seen < below * size].sum() / total)


def divergence(batch: Sequence[Features], reference: Reference, *, own: bool) -> float:
    """Jensen-Shannon divergence (bits, 0 to 1) of a batch's tokens from the reference's.

    `own` leaves the batch out of the reference. NaN where either has no tokens.
    """
    mine = np.zeros(reference.token.size)
    for one in batch:
        place, count = reference.counts_of(one)
        mine[place] += count
    theirs = reference.count - (mine if own else 0.0)
    if mine.sum() <= 0 or theirs.sum() <= 0:
        return float("nan")
    p, q = mine / mine.sum(), theirs / theirs.sum()
    middle = (p + q) / 2
    return float((_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2)


def _relative_entropy(p: F64, q: F64) -> float:
    at = p > 0
    return float((p[at] * np.log2(p[at] / q[at])).sum())


def script_distance(one: Features, usual: dict[str, float]) -> float:
    """Share of the letters in other scripts than usual (total variation); NaN without letters."""
    if not one.scripts:
        return float("nan")
    scripts = {*one.scripts, *usual}
    return 0.5 * sum(abs(one.scripts.get(s, 0.0) - usual.get(s, 0.0)) for s in scripts)


def usual_scripts(ordinary: Sequence[Features]) -> dict[str, float]:
    """Mean share of each script over the ordinary sequences that hold letters."""
    have = [one.scripts for one in ordinary if one.scripts]
    names = sorted({name for shares in have for name in shares})
    return {name: sum(shares.get(name, 0.0) for shares in have) / len(have) for name in names}


def measured(
    batch: Sequence[Features],
    reference: Reference,
    scripts: dict[str, float],
    below: float,
    *,
    own: bool,
) -> Measured:
    """Every measure of the sequences of a batch, `opened`: shape [B] each.

    `own`: the sequences are among the ordinary ones, and are left out of the reference.
    """
    columns: dict[str, list[float]] = {
        "length": [float(one.length) for one in batch],
        "surprisal": [surprisal(one, reference, own=own) for one in batch],
        "rare": [rare_share(one, reference, below, own=own) for one in batch],
        "repetition": [one.repetition for one in batch],
        "compression": [one.compression for one in batch],
        "odd": [one.odd for one in batch],
        "script": [script_distance(one, scripts) for one in batch],
        "masked": [one.masked for one in batch],
    }
    return {
        name: opened(name, np.array(values, dtype=np.float64)) for name, values in columns.items()
    }


def scored(
    name: str,
    value: F64,
    length: F64,
    peers: F64,
    peer_length: F64,
    *,
    floor: float,
    limit: float,
    margin: float,
) -> Scored:
    """Score `value` [B] of the batch against that of its `peers` [M], at their log lengths.

    Most measures drift with the length (a long text repeats more): a Theil-Sen line through the
    peers is taken off. A mean over fewer tokens than usual is noisier, and counts for less. The
    spread is 1.4826 MAD of the peers, at least `floor`. What is unusual reaches `limit`, and
    `margin` times the farthest peer: where tails are heavy, a large score alone says little.
    """
    usable = np.isfinite(peers) & np.isfinite(peer_length)
    x, y = peer_length[usable], peers[usable]
    if y.size == 0:
        blank = np.full(value.size, np.nan)
        return Scored(name, value, float("nan"), blank, blank, np.isfinite(blank), 0)
    slope = 0.0 if name == "length" else theil_sen(x, y)
    middle = float(np.median(x))
    usual = float(np.median(y - slope * (x - middle)))

    def off(values: F64, at: F64) -> F64:
        """Distance from the line, in the unit of the measure; beyond the peers it is level."""
        line = usual + slope * (np.clip(at, x.min(), x.max()) - middle)
        weight = 1.0 if name == "length" else np.exp(np.minimum(0.0, at - middle) / 2)
        return np.asarray((values - line) * weight, dtype=np.float64)

    own = off(y, x)
    spread = max(MAD_TO_SIGMA * float(np.median(np.abs(own - np.median(own)))), floor)
    score, theirs = off(value, length) / spread, own / spread
    if name in ONE_SIDED:
        size, farthest = np.maximum(score, 0.0), float(theirs.max())
    else:
        size, farthest = np.abs(score), float(np.abs(theirs).max())
    known = np.where(np.isfinite(size), size, -np.inf)
    unusual = (known >= limit) & (known > margin * farthest)
    return Scored(name, value, usual, score, size, unusual, int(y.size))


def theil_sen(x: F64, y: F64) -> float:
    """Median slope over pairs of points (Sen, 1968); 0 where half the pairs share their x."""
    if x.size > _MOST_FITTED:
        keep = np.linspace(0, x.size - 1, _MOST_FITTED).round().astype(np.int64)
        x, y = x[keep], y[keep]
    rise = y[:, None] - y[None, :]
    run = x[:, None] - x[None, :]
    upper = np.triu(np.ones(run.shape, dtype=np.bool_), 1)
    apart = upper & (np.abs(run) > 0.05)  # closer lengths say nothing of a slope
    if np.count_nonzero(apart) * 2 < np.count_nonzero(upper):
        return 0.0
    return float(np.median(rise[apart] / run[apart]))
