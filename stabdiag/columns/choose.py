"""Several columns that could be one series: which is it, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stabdiag.columns.aliases import BEFORE_CLIPPING, DETECTION_PARTS
from stabdiag.columns.layers import without_split_metric
from stabdiag.columns.names import RUN_SEPARATOR, words
from stabdiag.columns.recognise import Candidate
from stabdiag.columns.records import ColumnRole, RoleKind
from stabdiag.model import Column, Note

# A rival with fewer points than this share of the fullest one is a summary of it, not the series
# (epoch means beside step values); project choice, far below any real difference in cadence.
SPARSE_SHARE = 0.2
_SINGLE = frozenset({"metric", "tokens", "time", "epoch", "batch_statistic"})


@dataclass(frozen=True)
class Chosen:
    """The roles after the contest, the sums of parts, and notes on what was guessed."""

    roles: tuple[ColumnRole, ...]
    sums: Mapping[str, tuple[str, ...]]
    notes: tuple[Note, ...]


def rivals(candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Candidates by the canonical name that they compete for, where only one column can have it."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        role = candidate.role
        if role.kind in _SINGLE and "/" not in role.name:
            groups.setdefault(role.name, []).append(candidate)
    return groups


def choose(
    candidates: Sequence[Candidate], taken: Mapping[str, str], loaded: Mapping[str, Column]
) -> Chosen:
    """Let the candidates of one run compete, each canonical name going to one column.

    Args:
        candidates: one a column, in the table's order.
        taken: canonical names that the user assigned, with their columns.
        loaded: the cells of columns that have rivals, to see which are nearly empty.
    """
    winners: dict[str, str] = {}
    groups = rivals(candidates)
    generator = _index(_best(groups.get("loss", []), loaded))
    for name, group in groups.items():
        if name in taken:
            winners[name] = taken[name]
            continue
        paired = [c for c in group if generator and _index(c) == generator and name != "val_loss"]
        best = _best(paired or group, loaded)
        if best is not None:
            winners[name] = best.role.column
    roles = [_settled(candidate.role, winners) for candidate in candidates]
    roles = _clipped_beside(roles, winners)
    roles = _layers_once(roles, candidates)
    sums: dict[str, tuple[str, ...]] = {}
    notes: tuple[Note, ...] = ()
    if "loss" not in winners and "loss" not in taken:
        roles, sums, notes = _loss_from_parts(roles)
    roles = _without_policy_clipping(roles)
    return Chosen(tuple(roles), sums, notes)


def _points(candidate: Candidate, loaded: Mapping[str, Column]) -> int:
    column = loaded.get(candidate.role.column)
    return -1 if column is None else int(np.count_nonzero(column.logged))


def _best(group: Sequence[Candidate], loaded: Mapping[str, Column]) -> Candidate | None:
    if not group:
        return None
    points = [_points(candidate, loaded) for candidate in group]
    fullest = max(points)
    full = [c for c, n in zip(group, points, strict=True) if n < 0 or n >= SPARSE_SHARE * fullest]
    return min(full, key=lambda candidate: candidate.fit)


def _index(candidate: Candidate | None) -> str:
    """The number that tells two optimizers apart: loss_1, grad_norm_1 and current_lr_1 belong."""
    if candidate is None:
        return ""
    last = words(candidate.role.column).rsplit("_", 1)[-1]
    return last if last in ("0", "1") else ""


def _settled(role: ColumnRole, winners: Mapping[str, str]) -> ColumnRole:
    if role.kind not in _SINGLE or "/" in role.name or winners.get(role.name) == role.column:
        return role
    winner = winners.get(role.name, "the column given for it")
    metric = role.column if role.run is None else role.column.rsplit(RUN_SEPARATOR, 1)[-1]
    why = f"also a name of {role.name.replace('_', ' ')}, which is read from {winner}"
    if role.name == "loss":
        return replace(role, name=f"loss/{metric}", why=why)
    if role.kind in ("epoch", "time", "tokens"):
        return replace(role, kind="ignored", name="", why=why)
    kind: RoleKind = "batch_statistic" if role.kind == "batch_statistic" else "other"
    return replace(role, kind=kind, name=f"other/{metric}", why=why)


def _clipped_beside(roles: Sequence[ColumnRole], winners: Mapping[str, str]) -> list[ColumnRole]:
    """Beside a norm named as before clipping, the plain one is the norm after it."""
    before = words(winners.get("grad_norm", "")).endswith(tuple(BEFORE_CLIPPING.split()))
    if not before or "grad_norm_clipped" in winners:
        return list(roles)
    why = f"beside {winners['grad_norm']}, the norm after clipping"
    return [
        replace(role, kind="metric", name="grad_norm_clipped", why=why)
        if role.kind == "other" and words(role.column).endswith("grad_norm")
        else role
        for role in roles
    ]


def _layers_once(roles: Sequence[ColumnRole], candidates: Sequence[Candidate]) -> list[ColumnRole]:
    """Give each layer of a metric one column; take off a metric name split around the layers."""
    at = [index for index, role in enumerate(roles) if role.kind == "layer"]
    named = [roles[index].layer or "" for index in at]
    layers = without_split_metric([roles[index].column for index in at], named)
    kept: dict[tuple[str, str], int] = {}
    for index, layer in zip(at, layers, strict=True):
        key = (roles[index].name, layer)
        rival = kept.get(key)
        if rival is None or candidates[index].fit < candidates[rival].fit:
            kept[key] = index
    out = list(roles)
    for index, layer in zip(at, layers, strict=True):
        role = roles[index]
        if kept[role.name, layer] == index:
            out[index] = replace(role, layer=layer)
        else:
            twin = roles[kept[role.name, layer]].column
            why = f"the same layer is read from {twin}"
            out[index] = replace(
                role, kind="other", name=f"other/{role.column}", layer=None, why=why
            )
    return out


def _loss_from_parts(
    roles: Sequence[ColumnRole],
) -> tuple[list[ColumnRole], dict[str, tuple[str, ...]], tuple[Note, ...]]:
    """The loss where no column is the total: the sum of known parts, or the only or first loss."""
    out = list(roles)
    further = [i for i, role in enumerate(out) if role.name.startswith("loss/")]
    parts = [i for i in further if _part(out[i]) in DETECTION_PARTS]
    sums: dict[str, tuple[str, ...]] = {}
    if len(parts) > 1:
        sums["loss"] = tuple(out[i].column for i in parts)
        for i in parts:
            out[i] = replace(out[i], why="a part of the loss, which is the sum of the parts")
        evaluated = [
            role.column for role in out if role.scope == "eval" and _part(role) in DETECTION_PARTS
        ]
        if len(evaluated) > 1 and not any(role.name == "val_loss" for role in out):
            sums["val_loss"] = tuple(evaluated)
        text = f"no total loss is logged: the sum of {', '.join(sums['loss'])} stands for it"
        return out, sums, (Note("guessed", text, len(parts)),)
    if not further:
        return out, sums, ()
    first = further[0]
    column = out[first].column
    if len(further) == 1:
        out[first] = replace(out[first], name="loss", why="the only column that is a loss")
        return out, sums, ()
    out[first] = replace(out[first], name="loss", why="the first of several losses without a total")
    others = ", ".join(out[i].column for i in further[1:4])
    text = f"no total loss is logged: {column} is taken for it, not {others}"
    return out, sums, (Note("guessed", text, len(further)),)


def _without_policy_clipping(roles: Sequence[ColumnRole]) -> list[ColumnRole]:
    """PPO's clip fraction is of the policy's ratio, not of gradients."""
    if not any(words(role.column).endswith(("approx_kl", "clip_range")) for role in roles):
        return list(roles)
    why = "the share of clipped policy ratios, not of gradients"
    return [
        replace(role, kind="other", name=f"other/{role.column}", why=why)
        if role.name == "clip_fraction"
        else role
        for role in roles
    ]


def _part(role: ColumnRole) -> str:
    parts = words(role.column).split("_")
    return "_".join(parts[1:]) if parts[0] in ("train", "val") else "_".join(parts)
