"""The sequences of a batch ranked by how unusual they are, with the reasons and the findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stabdiag.batches.features import Features
from stabdiag.batches.measures import (
    SEQUENCE_MEASURES,
    Measured,
    Reference,
    Scored,
    divergence,
    measured,
    reference_of,
    scored,
    shown,
    usual_scripts,
)
from stabdiag.batches.reasons import (
    TITLES,
    empty_reason,
    reason,
    stand_out,
    twin_reason,
    whole_reason,
)
from stabdiag.batches.twins import Twins, twins_of
from stabdiag.findings import Finding, Severity
from stabdiag.inspection import Measure, RankedSequence
from stabdiag.model import F64
from stabdiag.rules import Limits
from stabdiag.rules.inspection import DUPLICATES, NO_TARGET, UNUSUAL_SEQUENCE
from stabdiag.steps.outcome import finding

MOST_NAMED = 20  # sequences named in a finding
BATCH_MEASURES = ("length", "surprisal", "repetition", "compression")
MANY_TWINS = 0.25  # share of a batch from which duplicates are more than a remark


@dataclass(frozen=True)
class Ranking:
    """The judgement of one batch; `judged` says whether there were enough ordinary sequences."""

    sequences: tuple[RankedSequence, ...]
    measures: tuple[Measure, ...]
    findings: tuple[Finding, ...]
    judged: bool
    not_measured: tuple[str, ...]


@dataclass(frozen=True)
class _Pool:
    """The ordinary batches, and what is usual in them."""

    batches: Sequence[Sequence[Features]]
    peers: tuple[Features, ...]
    reference: Reference
    scripts: dict[str, float]


def rank(
    ids: Sequence[str],
    batch: Sequence[Features],
    ordinary: Sequence[Sequence[Features]],
    step: int,
    limits: Limits,
) -> Ranking:
    """Rank the sequences of a batch against those of ordinary batches.

    Args:
        ids: what each sequence of the batch is called, [B].
        batch: their features, [B].
        ordinary: the features of the sequences of each ordinary batch.
        step: the step of the batch, for the findings.
        limits: the thresholds in force.
    """
    peers = tuple(one for own in ordinary for one in own)
    pool = _Pool(ordinary, peers, reference_of(peers, batch), usual_scripts(peers))
    judged = len(peers) >= limits(UNUSUAL_SEQUENCE, "min_sequences")
    scores, whole = _compared(batch, pool, limits) if judged else ([], [])
    twins = _odd_twins(batch, ordinary, limits)
    rows = [_sequence(i, ids, one, scores, twins) for i, one in enumerate(batch)]
    rows.sort(key=lambda row: row[0])
    ranked = tuple(replace(row, rank=place) for place, (_, row) in enumerate(rows, start=1))
    findings = (
        *_unusual(ids, batch, scores, pool, step, limits),
        *_whole(whole, pool, step, limits),
        *_without_targets(ids, batch, peers, step),
        *_repeated(ids, twins, step),
    )
    return Ranking(
        sequences=ranked,
        measures=tuple(_measure(one, 0) for one in whole),
        findings=findings,
        judged=judged,
        not_measured=_not_measured([*batch, *peers], scores, whole, judged=judged),
    )


def _compared(
    batch: Sequence[Features], pool: _Pool, limits: Limits
) -> tuple[list[Scored], list[Scored]]:
    """The sequences beside all ordinary ones, and the batch as a whole beside each ordinary one."""
    below = limits(UNUSUAL_SEQUENCE, "rare_below")
    mine = measured(batch, pool.reference, pool.scripts, below, own=False)
    theirs = [measured(own, pool.reference, pool.scripts, below, own=True) for own in pool.batches]
    return _scores(batch, mine, theirs, limits), _whole_batch(batch, pool, mine, theirs, limits)


def _scores(
    batch: Sequence[Features], mine: Measured, every: Sequence[Measured], limits: Limits
) -> list[Scored]:
    """Every measure that enough ordinary sequences have."""
    theirs = {name: np.concatenate([own[name] for own in every]) for name in SEQUENCE_MEASURES}
    made = [
        scored(
            name,
            mine[name],
            mine["length"],
            theirs[name],
            theirs["length"],
            floor=limits(UNUSUAL_SEQUENCE, f"spread_{name}"),
            limit=limits(UNUSUAL_SEQUENCE, "min_score"),
            margin=limits(UNUSUAL_SEQUENCE, "margin"),
        )
        for name in SEQUENCE_MEASURES
    ]
    least = limits(UNUSUAL_SEQUENCE, "min_sequences")
    some_target = np.array([not _trains_nothing(one) for one in batch], dtype=np.bool_)
    made = [  # that no target is left is a finding of its own
        replace(one, unusual=one.unusual & some_target) if one.name == "masked" else one
        for one in made
    ]
    return [one for one in made if one.peers >= least and np.isfinite(one.score).any()]


def _whole_batch(
    batch: Sequence[Features],
    pool: _Pool,
    mine: Measured,
    theirs: Sequence[Measured],
    limits: Limits,
) -> list[Scored]:
    """The batch as a whole beside each ordinary batch; none where these are too few."""
    if len(pool.batches) < limits(UNUSUAL_SEQUENCE, "min_batches") or not batch:
        return []
    own = {"divergence": divergence(batch, pool.reference, own=False)} | _means(mine)
    others = [
        {"divergence": divergence(one, pool.reference, own=True)} | _means(values)
        for one, values in zip(pool.batches, theirs, strict=True)
    ]
    level = np.zeros(len(others))  # a batch has no length of its own to compare at
    made = [
        scored(
            name,
            np.array([own[name]]),
            np.zeros(1),
            np.array([one[name] for one in others]),
            level,
            floor=limits(UNUSUAL_SEQUENCE, f"spread_{name}"),
            limit=limits(UNUSUAL_SEQUENCE, "min_score"),
            margin=limits(UNUSUAL_SEQUENCE, "batch_margin"),
        )
        for name in own
    ]
    return [one for one in made if np.isfinite(one.score).any()]


def _means(values: Measured) -> dict[str, float]:
    return {name: _mean(values[name]) for name in BATCH_MEASURES}


def _mean(values: F64) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _odd_twins(
    batch: Sequence[Features], ordinary: Sequence[Sequence[Features]], limits: Limits
) -> Twins | None:
    """The batch's duplicates where it has a larger share of them than each ordinary batch."""
    least = limits(DUPLICATES, "min_alike")
    twins = twins_of(batch, least)
    if not ordinary or twins.share <= max(twins_of(own, least).share for own in ordinary):
        return None
    return twins


def _sequence(
    i: int, ids: Sequence[str], one: Features, scores: Sequence[Scored], twins: Twins | None
) -> tuple[tuple[float, ...], RankedSequence]:
    """A sequence with its reasons; before it what it is ranked by, the smallest first."""
    other = twins.other[i] if twins is not None else None
    empty = _trains_nothing(one)
    reasons = [empty_reason(one)] if empty else []
    odd = sorted((s for s in scores if s.unusual[i]), key=lambda s: -s.size[i])
    reasons += [reason(s, i, one) for s in odd]
    if twins is not None and other is not None:
        reasons.append(twin_reason(twins.alike[i], ids[other]))
    size = max((float(s.size[i]) for s in scores if math.isfinite(s.size[i])), default=None)
    row = RankedSequence(
        rank=0,
        id=ids[i],
        length=one.length,
        score=size,
        reasons=tuple(reasons),
        measures=tuple(_measure(s, i) for s in scores),
        excerpt=one.excerpt,
    )
    return (not empty, not odd, other is None, -(size or 0.0), i), row


def _trains_nothing(one: Features) -> bool:
    return one.length == 0 or one.targets == 0


def _measure(one: Scored, i: int) -> Measure:
    value, score = shown(one.name, float(one.value[i])), float(one.score[i])
    usual = shown(one.name, one.usual)
    return Measure(
        name=TITLES[one.name],
        value=value if math.isfinite(value) else None,
        usual=usual if math.isfinite(usual) else None,
        score=score if math.isfinite(score) else None,
        unusual=bool(one.unusual[i]),
    )


def _unusual(
    ids: Sequence[str],
    batch: Sequence[Features],
    scores: Sequence[Scored],
    pool: _Pool,
    step: int,
    limits: Limits,
) -> list[Finding]:
    """One finding for all sequences that stand out, the first of them in words."""
    worst = {
        i: max((s for s in scores if s.unusual[i]), key=lambda s: s.size[i])
        for i in range(len(batch))
        if any(s.unusual[i] for s in scores)
    }
    if not worst:
        return []
    order = sorted(worst, key=lambda i: (-worst[i].size[i], i))
    first = order[0]
    text = (
        f"{stand_out(len(order), len(batch))} from {len(pool.peers)} ordinary ones; "
        f"first {ids[first]}: {reason(worst[first], first, batch[first])}"
    )
    data = {
        "sequences": [ids[i] for i in order[:MOST_NAMED]],
        "count": len(order),
        "measure": TITLES[worst[first].name],
        "score": float(worst[first].size[first]),
        "ordinary_sequences": len(pool.peers),
    }
    severity = _severity(float(worst[first].size[first]), limits)
    return [
        finding(UNUSUAL_SEQUENCE, text, step=step, last_step=step, data=data, severity=severity)
    ]


def _severity(size: float, limits: Limits) -> Severity:
    return Severity.WARNING if size >= limits(UNUSUAL_SEQUENCE, "warn_score") else Severity.INFO


def _whole(whole: Sequence[Scored], pool: _Pool, step: int, limits: Limits) -> list[Finding]:
    odd = sorted((s for s in whole if s.unusual[0]), key=lambda s: -s.size[0])
    if not odd:
        return []
    said = "; ".join(whole_reason(one, pool.peers[0].unit) for one in odd)
    text = f"the batch as a whole stands out from {len(pool.batches)} ordinary ones: {said}"
    data = {
        TITLES[one.name]: {
            "value": shown(one.name, float(one.value[0])),
            "usual": shown(one.name, one.usual),
            "score": float(one.size[0]),
        }
        for one in odd
    }
    severity = _severity(float(odd[0].size[0]), limits)
    return [
        finding(UNUSUAL_SEQUENCE, text, step=step, last_step=step, data=data, severity=severity)
    ]


def _without_targets(
    ids: Sequence[str], batch: Sequence[Features], peers: Sequence[Features], step: int
) -> list[Finding]:
    own = [i for i, one in enumerate(batch) if _trains_nothing(one)]
    if not own:
        return []
    others = sum(_trains_nothing(one) for one in peers)
    text = (
        f"{len(own)} of {len(batch)} sequences without a target ({empty_reason(batch[own[0]])}); "
        f"of {len(peers)} ordinary ones {others}"
    )
    data = {"sequences": [ids[i] for i in own[:MOST_NAMED]], "count": len(own), "ordinary": others}
    return [finding(NO_TARGET, text, step=step, last_step=step, data=data)]


def _repeated(ids: Sequence[str], twins: Twins | None, step: int) -> list[Finding]:
    if twins is None:
        return []
    own = [i for i, other in enumerate(twins.other) if other is not None]
    exact = sum(twins.alike[i] == 1.0 for i in own)
    text = (
        f"{len(own)} of {len(ids)} sequences repeat another of the batch ({exact} exactly), more "
        "than in any ordinary batch"
    )
    data = {"sequences": [ids[i] for i in own[:MOST_NAMED]], "count": len(own), "exact": exact}
    severity = Severity.WARNING if twins.share >= MANY_TWINS else Severity.INFO
    return [finding(DUPLICATES, text, step=step, last_step=step, data=data, severity=severity)]


def _not_measured(
    every: Sequence[Features], scores: Sequence[Scored], whole: Sequence[Scored], *, judged: bool
) -> tuple[str, ...]:
    """What could not be looked at, and why."""
    out = []
    if every and all(one.scripts is None for one in every):
        out.append("scripts and odd characters: token ids without --tokenizer are no text")
    if every and all(one.targets is None for one in every):
        out.append("masked targets: the corpus has no labels")
    if judged and not whole:
        out.append("the batch as a whole: too few ordinary batches")
    scored_names = {one.name for one in scores}
    lost = [TITLES[n] for n in ("repetition", "compression") if judged and n not in scored_names]
    if lost:
        out.append(f"{' and '.join(lost)}: the sequences are too short")
    return tuple(out)
