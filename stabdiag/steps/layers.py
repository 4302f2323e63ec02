"""Step 4: which layers, and the smallest part of the model to reproduce it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, LayerRank
from stabdiag.rules.layers import (
    DOMINANT_LAYER,
    FIRST_TO_LEAVE,
    PARAM_PARTS,
    SAME_LAYERS,
    TENSOR_JUMP,
    VANISHING,
)
from stabdiag.steps import layer_numerics, norm_parting
from stabdiag.steps.layer_blips import SameLayers, marked_steps, same_layers
from stabdiag.steps.layer_block import block_of
from stabdiag.steps.layer_cells import Cells
from stabdiag.steps.layer_moment import usual_shares
from stabdiag.steps.layer_scores import LayerScore, score_layers
from stabdiag.steps.layer_stats import LayerStats, gather
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.view import View

TITLE = "Bisect the architecture"
GUILTY = 1.0  # layer score from which a layer is named in the verdict


@dataclass(frozen=True)
class LayersResult:
    """Step 4's outcome with the ranking, the layers to name, and the block to reproduce with."""

    outcome: Outcome
    ranks: tuple[LayerRank, ...]
    guilty: tuple[str, ...]
    block: tuple[str, ...]
    scores: tuple[LayerScore, ...] = ()
    broken: tuple[str, ...] = ()  # of `guilty`, where they are named for not being finite
    cells: Mapping[str, Cells] = field(default_factory=dict)  # by metric, of those that were read


def bisect(timeline: Timeline) -> LayersResult:
    """Rank the layers and say which contiguous part would reproduce the trouble."""
    view = timeline.view
    main = timeline.main
    onset = main.onset if main is not None else None
    marked = marked_steps(view)
    grad = gather(view.run, "grad_norm", onset, marked)
    param = gather(view.run, "param_norm", onset)
    if grad is None and param is None:
        other = gather(view.run, "activation_max", onset)
        if other is None:
            reason = "no per-layer gradient or parameter norms are logged"
            return LayersResult(Outcome(4, TITLE, (), (), (), reason), (), (), ())
        grad = other
    same = same_layers(view, grad, marked) if grad is not None else None
    scores = score_layers(grad, param, view.limits)
    findings: list[Finding] = []
    signs: list[Sign] = []
    if same is not None:
        _same(timeline, same, findings, signs)
    vanished = _vanishing(scores, grad, findings, signs, view.limits(VANISHING, "max_ratio"))
    broken = layer_numerics.born(timeline, scores, findings) or layer_numerics.lasting(
        (grad, param), findings, signs, quiet=main is None
    )
    if not vanished:
        _dominant(timeline, scores, findings, signs)
        _parting(timeline, scores, findings, signs)
    _jumps(timeline, scores, findings, signs)
    _spread_at_onset(timeline, grad, findings, signs)
    parted = _norm_scales(view, scores, findings, signs)
    ranked = _ranked(scores, broken)
    many = any(s.name == "tensor_jump_many" for s in signs)
    guilty = (
        broken
        or tuple(
            s.layer
            for s in ranked
            # where many jumped at once no single one is at fault
            if s.score >= GUILTY and not vanished and not (many and s.kind == "jump")
        )[:3]
    )
    by_score = bool(guilty) and not broken
    if parted and not guilty:
        guilty = parted
        ranked = _ranked(scores, parted)
    if same is not None and not guilty:
        guilty = same.layers[:3]
        ranked = _ranked(scores, same.layers)
    looked = ["1 layer" if len(scores) == 1 else f"{len(scores)} layers"]
    looked += ["grad norms"] if grad is not None else []
    looked += ["parameter norms"] if param is not None else []
    outcome = Outcome(4, TITLE, tuple(looked), tuple(findings), tuple(signs))
    return LayersResult(
        outcome=outcome,
        ranks=_records(ranked, grad),
        guilty=guilty,
        block=block_of(
            guilty,
            scores,
            view.limits,
            born=bool(broken) and main is not None,
            by_score=by_score,
        ),
        scores=tuple(scores),
        broken=broken,
        cells={stats.metric: stats.cells for stats in (grad, param) if stats is not None},
    )


def _norm_scales(
    view: View, scores: list[LayerScore], findings: list[Finding], signs: list[Sign]
) -> tuple[str, ...]:
    more_findings, more_signs, layers = norm_parting.part(view, tuple(scores))
    findings += more_findings
    signs += more_signs
    return layers


def _same(timeline: Timeline, same: SameLayers, findings: list[Finding], signs: list[Sign]) -> None:
    text = (
        f"{len(same.steps)} lone grad-norm spikes (first at step {same.steps[0]}) come through "
        f"{', '.join(same.layers[:3])}, which rise {same.factor:.3g} times more than the others"
    )
    findings.append(
        finding(
            SAME_LAYERS,
            text,
            step=same.steps[0],
            last_step=same.steps[-1],
            layer=same.layers[0],
            data={"layers": list(same.layers), "steps": list(same.steps), "factor": same.factor},
        )
    )
    signs.append(Sign("same_layers", 1.0, text, same.steps[:6], ("grad_norm",)))


def _vanishing(
    scores: list[LayerScore],
    grad: LayerStats | None,
    findings: list[Finding],
    signs: list[Sign],
    limit: float,
) -> bool:
    """Whether the gradients near the input are a tiny share of those near the loss."""
    if grad is None:
        return False
    index = {name: j for j, name in enumerate(grad.layers)}
    chain = [s for s in scores if s.role.matrix and s.role.depth is not None and s.layer in index]
    if len({s.role.depth for s in chain}) < 2:
        return False
    by_depth: dict[int, list[float]] = {}
    for s in chain:
        m = float(grad.median[index[s.layer]])
        if np.isfinite(m) and s.role.depth is not None:
            by_depth.setdefault(s.role.depth, []).append(m)
    if len(by_depth) < 2:
        return False
    depths = sorted(by_depth)
    first, last = float(np.median(by_depth[depths[0]])), float(np.median(by_depth[depths[-1]]))
    if last <= 0:
        return False
    ratio = first / last
    signs_text = f"the first block's gradients are {ratio:.2g} of the last block's: they vanish on the way down"
    strength = ramp(-np.log10(max(ratio, 1e-12)), 1.7, -np.log10(limit))
    if strength > 0:
        signs.append(Sign("vanishing_depth", strength, signs_text, (), ("grad_norm",)))
    if ratio < limit:
        findings.append(finding(VANISHING, signs_text, data={"ratio": ratio}))
    return ratio < 3 * limit


def _dominant(
    timeline: Timeline, scores: list[LayerScore], findings: list[Finding], signs: list[Sign]
) -> None:
    limits = timeline.view.limits
    share = limits(DOMINANT_LAYER, "consistent")
    matrices = [s for s in scores if s.role.matrix and np.isfinite(s.peer_ratio)]
    if not matrices:
        return

    def excess(s: LayerScore) -> float:
        return s.peer_ratio / s.limit

    top = max(matrices, key=excess)
    text = f"the gradient of {top.layer} is {top.peer_ratio:.3g} times its peers', all along"
    strength = ramp(np.log(max(excess(top), 1e-9)), np.log(0.8), np.log(2.0))
    if strength > 0:
        signs.append(Sign("dominant_layer", strength, text, (), (f"grad_norm/{top.layer}",)))
    for s in sorted(matrices, key=lambda s: -excess(s))[:5]:
        if s.consistent >= share:
            findings.append(
                finding(
                    DOMINANT_LAYER,
                    f"the gradient of {s.layer} is {s.peer_ratio:.3g} times its peers' "
                    f"in {s.consistent:.0%} of the points",
                    layer=s.layer,
                    data={"peer_ratio": s.peer_ratio, "consistent": s.consistent},
                )
            )


def _parting(
    timeline: Timeline, scores: list[LayerScore], findings: list[Finding], signs: list[Sign]
) -> None:
    limits = timeline.view.limits
    matrices = [s for s in scores if s.role.matrix and np.isfinite(s.growth_ratio)]
    inner = [s for s in matrices if s.role.depth is not None]
    ends = [s for s in matrices if s.role.depth is None]
    cases = [
        *((s, limits(PARAM_PARTS, "min_growth_ratio")) for s in inner),
        *((s, limits(PARAM_PARTS, "min_head_growth")) for s in ends),
    ]
    if not cases:
        return
    top, limit = max(cases, key=lambda c: c[0].growth_ratio / c[1])
    text = f"the norm of {top.layer} grew {top.growth:.3g} times, {top.growth_ratio:.3g} times its peers'"
    strength = ramp(np.log(max(top.growth_ratio / limit, 1e-9)), np.log(0.7), np.log(1.5))
    if strength > 0:
        signs.append(Sign("layer_parts", strength, text, (), (f"param_norm/{top.layer}",)))
    for s, least in sorted(cases, key=lambda c: -c[0].growth_ratio)[:5]:
        if s.growth_ratio >= least and s.growth >= limits(PARAM_PARTS, "min_growth"):
            findings.append(
                finding(
                    PARAM_PARTS,
                    f"the norm of {s.layer} grew {s.growth:.3g} times, {s.growth_ratio:.3g} times its peers'",
                    layer=s.layer,
                    data={"growth": s.growth, "growth_ratio": s.growth_ratio},
                )
            )


def _jumps(
    timeline: Timeline, scores: list[LayerScore], findings: list[Finding], signs: list[Sign]
) -> None:
    """Tensor norms that jumped at the onset: a few (overwritten), or many (a huge update)."""
    main = timeline.main
    limits = timeline.view.limits
    matrices = [s for s in scores if s.role.matrix and np.isfinite(s.growth)]
    if main is None or not matrices:
        return
    least, usual = limits(TENSOR_JUMP, "min_log_change"), limits(TENSOR_JUMP, "min_usual")
    jumped = [s for s in matrices if s.onset_jump > least and s.jump_usual > usual]
    if not jumped:
        quiet = max(s.onset_jump for s in matrices) < 0.5 * least
        if quiet:
            signs.append(
                Sign(
                    "tensors_quiet",
                    1.0,
                    f"no tensor's norm jumped at step {main.onset}",
                    (main.onset,),
                    ("param_norm",),
                    timeline.primary,
                )
            )
        return
    top = max(jumped, key=lambda s: s.onset_jump)
    share = len(jumped) / len(matrices)
    factor = float(np.exp(min(top.onset_jump, 50.0)))
    text = (
        f"{len(jumped)} of {len(matrices)} weight norms jumped around step {main.onset}, "
        f"{top.layer} by a factor of {factor:.3g}"
    )
    few = share <= 0.25 or len(jumped) == 1
    signs.append(
        Sign(
            "tensor_jump_few" if few else "tensor_jump_many",
            # one tensor alone by a factor of 4: overwritten; less is also a bad update's work
            ramp(top.onset_jump, 2 * least, 6 * least)
            if few
            else ramp(top.onset_jump, 0.5 * least, 2 * least),
            text,
            (main.onset,),
            (f"param_norm/{top.layer}",),
            timeline.primary,
        )
    )
    findings.append(
        finding(
            TENSOR_JUMP,
            text,
            step=main.onset,
            layer=top.layer,
            data={"factor": factor, "share": share},
        )
    )


def _spread_at_onset(
    timeline: Timeline, grad: LayerStats | None, findings: list[Finding], signs: list[Sign]
) -> None:
    """Whether all layers rose together at the onset, some unevenly, and who left first."""
    main = timeline.main
    if main is None or grad is None or main.kind in ("zero_loss", "lone_nan"):
        return
    ok = np.isfinite(grad.peak_score)
    if np.count_nonzero(ok) < 4:
        return
    up = float(np.mean(grad.peak_score[ok] > 4.0))
    spread = float(np.std(grad.peak_log[ok]))
    at = (main.onset,)
    if up > 0.6:
        text = f"{up:.0%} of the layers' grad norms rose at step {main.onset}"
        signs.append(
            Sign("layers_all_up", ramp(up, 0.5, 0.8), text, at, ("grad_norm",), timeline.primary)
        )
    if spread > 0.4 and up > 0.1:
        text = f"the layers' grad norms rose unevenly at step {main.onset} (spread of the log {spread:.2f})"
        signs.append(
            Sign(
                "layers_uneven", ramp(spread, 0.4, 0.9), text, at, ("grad_norm",), timeline.primary
            )
        )
    left = grad.left_step[grad.left_step >= 0]
    early = [grad.layers[j] for j in range(len(grad.layers)) if 0 <= grad.left_step[j] < main.onset]
    if left.size and 0 < len(early) <= max(3, len(grad.layers) // 4):
        first = min(int(s) for s in left)
        findings.append(
            finding(
                FIRST_TO_LEAVE,
                f"{early[0]} left its baseline at step {first}, before the onset at {main.onset}",
                step=first,
                layer=early[0],
                data={"layers": early[:5]},
            )
        )


def _ranked(scores: list[LayerScore], broken: tuple[str, ...]) -> list[LayerScore]:
    place = {name: i for i, name in enumerate(broken)}
    peak = [s.peak_score if np.isfinite(s.peak_score) else 0.0 for s in scores]
    top = max(peak, default=0.0) or 1.0
    return sorted(
        scores,
        key=lambda s: (
            place.get(s.layer, len(place)),
            -(s.score + 0.1 * (s.peak_score / top if np.isfinite(s.peak_score) else 0.0)),
            s.order,
        ),
    )


def _records(ranked: list[LayerScore], grad: LayerStats | None) -> tuple[LayerRank, ...]:
    share = usual_shares(grad) if grad is not None else {}

    def known(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return tuple(
        LayerRank(
            layer=s.layer,
            role=s.role.role,
            depth=s.role.depth,
            ratio_to_median=known(s.median_ratio),
            ratio_to_peers=known(s.peer_ratio),
            param_growth=known(s.growth),
            onset_step=s.left_step
            if s.left_step >= 0
            else (s.bad_step if s.bad_step >= 0 else None),
            peak_score=known(s.peak_score),
            rank=i + 1,
            why=s.why,
            consistent=known(s.consistent) if np.isfinite(s.peer_ratio) else None,
            tenfold=known(s.tenfold) if np.isfinite(s.peer_ratio) else None,
            small=not s.role.matrix,
            share=known(share.get(s.layer, np.nan)),
            order=s.order,
        )
        for i, s in enumerate(ranked)
    )
