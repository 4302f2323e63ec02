"""How far each layer parts from its peers: gradient, growth, jump, start; one score to rank by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabdiag.rules.initialization import INITIAL_IMBALANCE
from stabdiag.rules.layers import DOMINANT_LAYER, PARAM_PARTS, TENSOR_JUMP
from stabdiag.rules.limits import Limits
from stabdiag.signals.peers import finite_median, largest_other, median_without_each
from stabdiag.steps.layer_stats import LayerStats
from stabdiag.steps.roles import Role, role_of

Kind = Literal["", "gradient", "growth", "jump", "start"]  # the sign that a score is from
OVER_MEDIAN = 2.0  # a layer counts for no more than this many times its ratio to the median layer


@dataclass(frozen=True)
class LayerScore:
    """One layer's figures beside its peers'; NaN where not logged, 1.0 is "as its peers".

    `limit`: the ratio that would be out of proportion for such a layer. `peer_ratio`: gradient
    over the same role's in other blocks (over the median layer where there is no peer), the median
    over time; `consistent`: share of the time it passes the limit. `growth`: norm at the end over
    the start; `growth_ratio` the same over the median of the other weight matrices (not over its
    peers: a fault may sit in every block alike). `onset_jump`: change of the log norm at the onset,
    `jump_usual` times the usual one. `start_ratio`: first norm over the largest other one.
    """

    layer: str
    role: Role
    order: int
    limit: float
    median_ratio: float
    peer_ratio: float
    consistent: float
    tenfold: float
    growth: float
    growth_ratio: float
    onset_jump: float
    jump_usual: float
    start_ratio: float
    peak_score: float
    left_step: int
    bad_step: int
    score: float
    why: str
    kind: Kind


def score_layers(
    grad: LayerStats | None, param: LayerStats | None, limits: Limits
) -> list[LayerScore]:
    """Score every layer that has a grad norm or a parameter norm, in file order.

    The score is 1 where one of the signs reaches its limit: gradient against peers of the same
    role, growth of the norm against peers, a jump at the onset, the start against the others.
    Source: labelled fault-injection runs, section 6 (growth and jump rank the culprit first in
    .57 and .50 of the cases, the size of the gradient in .20).
    """
    names = list(dict.fromkeys([*(grad.layers if grad else ()), *(param.layers if param else ())]))
    roles = {n: role_of(n) for n in names}
    caps = _limits(roles, limits)
    handbook = limits(DOMINANT_LAYER, "handbook_ratio")
    g = _gradients(grad, roles, caps, handbook) if grad else {}
    p = _norms(param, roles) if param else {}
    out = []
    for order, name in enumerate(names):
        ratio, median, consistent, tenfold, peak, left, bad_g = g.get(
            name, (np.nan, np.nan, 0.0, 0.0, np.nan, -1, -1)
        )
        grow, grow_ratio, jump, usual, start, bad_p = p.get(
            name, (np.nan, np.nan, 0.0, 0.0, np.nan, -1)
        )
        bad = min((b for b in (bad_g, bad_p) if b >= 0), default=-1)
        score, why, kind = _combine(
            roles[name], caps[name], ratio, consistent, grow, grow_ratio, jump, usual, start, limits
        )
        out.append(
            LayerScore(name, roles[name], order, caps[name], median, ratio, consistent, tenfold, grow, grow_ratio,
                jump, usual, start, peak, left, bad, score, why, kind,
            )
        )  # fmt: skip
    return out


def _limits(roles: dict[str, Role], limits: Limits) -> dict[str, float]:
    """How many times its peers' a layer's gradient may be: the first block leads in health, too."""
    depths = [r.depth for r in roles.values() if r.depth is not None]
    first = min(depths, default=0)
    count: dict[str, int] = {}
    for r in roles.values():
        count[r.peers] = count.get(r.peers, 0) + 1

    def limit(role: Role) -> float:
        if role.depth is None or count[role.peers] == 1:
            return limits(DOMINANT_LAYER, "min_end_ratio")
        inner = role.depth > first
        return limits(DOMINANT_LAYER, "min_inner_ratio" if inner else "min_peer_ratio")

    return {name: limit(role) for name, role in roles.items()}


def _gradients(
    stats: LayerStats, roles: dict[str, Role], caps: dict[str, float], handbook: float
) -> dict[str, tuple[float, float, float, float, float, int, int]]:
    sample = stats.sample
    overall = finite_median(sample)[:, None]
    reference = np.repeat(overall, len(stats.layers), axis=1)
    peers: dict[str, list[int]] = {}
    for j, name in enumerate(stats.layers):
        peers.setdefault(roles[name].peers, []).append(j)
    with np.errstate(invalid="ignore", divide="ignore"):
        for group in peers.values():
            if len(group) > 1:  # on the log scale: of two peers their geometric mean
                reference[:, group] = np.exp(median_without_each(np.log(sample[:, group])))
        ratio, to_median = sample / reference, sample / overall
        # out of proportion to its peers and to the model: a small one among tiny is neither
        deep = np.array([roles[name].depth is not None for name in stats.layers], dtype=np.bool_)
        ratio[:, deep] = np.fmin(ratio, OVER_MEDIAN * to_median)[:, deep]
        cap = np.array([caps[name] for name in stats.layers])
        ok = np.isfinite(ratio)
        count = np.maximum(ok.sum(axis=0), 1)
        over = (ok & (ratio > cap)).sum(axis=0) / count
        tenfold = (ok & (ratio >= handbook)).sum(axis=0) / count
    usual, usual_to_median = finite_median(ratio.T), finite_median(to_median.T)
    return {
        name: (
            float(usual[j]),
            float(usual_to_median[j]),
            float(over[j]),
            float(tenfold[j]),
            float(stats.peak_score[j]),
            int(stats.left_step[j]),
            int(stats.bad_step[j]),
        )
        for j, name in enumerate(stats.layers)
    }


def _norms(
    stats: LayerStats, roles: dict[str, Role]
) -> dict[str, tuple[float, float, float, float, float, int]]:
    with np.errstate(invalid="ignore", divide="ignore"):
        growth = stats.last / stats.first
        usual = stats.jump / stats.jump_usual
        times = stats.onset_jump / np.maximum(usual, 1e-4)
    matrix = np.array([roles[n].matrix for n in stats.layers], dtype=np.bool_)
    middle = median_without_each(np.where(matrix, growth, np.nan)[None, :])[0]
    largest = largest_other(np.where(matrix, stats.first, np.nan))
    out = {}
    for j, name in enumerate(stats.layers):
        reference = max(float(middle[j]), 1.0) if np.isfinite(middle[j]) else np.nan
        start = float(stats.first[j] / largest[j]) if largest[j] > 0 else np.nan
        shrinks = growth[j] < 0.99
        out[name] = (
            float(growth[j]),
            float(growth[j] / reference) if reference and np.isfinite(reference) else np.nan,
            float(np.nan_to_num(stats.onset_jump[j])),
            float(np.nan_to_num(times[j])),
            start if shrinks else np.nan,
            int(stats.bad_step[j]),
        )
    return out


def _combine(
    role: Role,
    cap: float,
    ratio: float,
    consistent: float,
    growth: float,
    growth_ratio: float,
    jump: float,
    usual: float,
    start: float,
    limits: Limits,
) -> tuple[float, str, Kind]:
    parts: list[tuple[float, str, Kind]] = [(0.0, "", "")]
    end = role.role in ("embedding", "head", "other") and role.depth is None
    if np.isfinite(ratio) and ratio > 1 and (consistent > 0 or ratio > 0.3 * cap):
        weight = 1.0 if role.matrix else 0.6
        parts.append(
            (
                weight * np.log(ratio) / np.log(cap),
                f"gradient {ratio:.3g} times its peers'",
                "gradient",
            )
        )
    if role.matrix and np.isfinite(growth_ratio) and growth_ratio > 1 and growth > 1:
        least = limits(PARAM_PARTS, "min_head_growth" if end else "min_growth_ratio")
        parts.append(
            (
                1.2 * np.log(growth_ratio) / np.log(least),
                f"norm grew {growth:.3g} times, {growth_ratio:.3g} times its peers'",
                "growth",
            )
        )
    if (
        role.matrix
        and jump > limits(TENSOR_JUMP, "min_log_change")
        and usual > limits(TENSOR_JUMP, "min_usual")
    ):
        text = f"norm jumped by {np.expm1(min(jump, 50.0)):.0%} at the onset"
        parts.append((1.0 + jump, text, "jump"))
    if role.matrix and np.isfinite(start) and start > 2:
        parts.append(
            (
                np.log(start) / np.log(limits(INITIAL_IMBALANCE, "min_ratio")),
                f"starts {start:.3g} times above every other",
                "start",
            )
        )
    best, why, kind = max(parts)
    return float(best), why, kind
