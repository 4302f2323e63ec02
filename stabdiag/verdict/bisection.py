"""The bisection plan: which part to reproduce with, what to freeze or cut, in which order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabdiag.findings import LayerPlan, PlanMove, Verdict
from stabdiag.steps.layer_scores import LayerScore
from stabdiag.steps.layers import LayersResult
from stabdiag.steps.roles import part_of, parts_of
from stabdiag.verdict.reproduction import outline

_NAMED = 3  # layers with a move of their own
_CUT = 4  # parts named in the move that cuts them off
# One run that changes the whole model's setting: cheaper than halving, where that is the cause.
_WHOLE = {
    "optimizer": "Train on from the checkpoint before the onset at half the learning rate.",
    "weight_decay": "Train on from the checkpoint before the onset with ten times the weight decay.",
    "initialization": "Train the first 1000 steps on another seed.",
    "state_corruption": "Train on from an earlier checkpoint, with nothing else changed.",
}
Parts = Sequence[tuple[str, list[str]]]


def plan(layers: LayersResult, verdict: Verdict) -> LayerPlan | None:
    """Return how to bisect the model, None where there is nothing to find in it.

    That is where nothing is known to be wrong, or the data is and no layer is named.

    Where the log names layers, the block that explains it comes first; else one run with hooks
    finds what is not finite, and else the model is halved by parts: log2 of their number runs.
    """
    if verdict.cause == "none" or verdict.health == "healthy":
        return None
    parts = parts_of([s.layer for s in layers.scores])
    runs = math.ceil(math.log2(len(parts))) if len(parts) > 1 else 0
    if layers.block:
        moves = (*_tests(layers), *_closing_in(layers.block, parts))
        alone = layers.broken and len(layers.block) == 1  # it may be brought there: look at all
        code = outline(() if alone else layers.block, verdict.onset_step)
        return LayerPlan(layers.block, _reason(layers), moves, runs, code)
    if verdict.cause == "data" or verdict.health == "inconclusive":
        return None
    reason = f"The log does not single out a layer: {_why_none(layers)}."
    code = outline((), verdict.onset_step)
    if verdict.cause == "overflow":
        return LayerPlan((), reason, _hooks(), 1, code)
    return LayerPlan((), reason, (*_whole(verdict), *_halving(parts)), runs, code)


def _reason(layers: LayersResult) -> str:
    """Why this block."""
    block, first = layers.block, layers.guilty[0]
    if layers.broken and len(block) > 1 and block[0] == first:
        return (
            f"{first} is the nearest to the loss that turns non-finite, while {block[-1]} above it "
            "is still finite: it is born between them. What is below only hands it on."
        )
    if layers.broken:
        return _reason_alone(first, layers.scores)
    inside = [name for name in layers.guilty if name in block]
    beside = [name for name in layers.guilty if name not in block]
    verb = "stands" if len(inside) == 1 else "stand"
    text = f"{_named(inside)} {verb} out."
    if beside:
        verb, place = ("does", "lies") if len(beside) == 1 else ("do", "lie")
        text += f" {_named(beside)} {verb}, too, but less, or {place} too far off for one part."
    return text


def _reason_alone(layer: str, scores: Sequence[LayerScore]) -> str:
    """Why a layer that is not finite stands for itself."""
    matrices = [s.layer for s in scores if s.role.matrix]
    if matrices and layer == matrices[-1]:
        return (
            f"{layer} is the first to turn non-finite and the last logged layer before the loss: it, "
            "the loss, or what the forward pass hands to them; the log does not say which."
        )
    return f"{layer} is not finite; the log does not show from where it comes."


def _why_none(layers: LayersResult) -> str:
    """What the log shows instead of a layer that stands out."""
    if not layers.scores:
        return "it has no norms by layer"
    for sign in layers.outcome.signs:
        if sign.name in ("layers_all_up", "tensor_jump_many", "vanishing_depth"):
            return sign.text
    first = {s.bad_step for s in layers.scores}
    if len(first) == 1 and (step := first.pop()) >= 0:
        return f"all {len(layers.scores)} turn non-finite at step {step}"
    return f"none of {len(layers.scores)} stands out"


def _tests(layers: LayersResult) -> tuple[PlanMove, ...]:
    """The cheapest run that tells for each layer in the block, by what it stands out with."""
    if layers.broken:
        return _non_finite(layers.broken[0])
    by_name = {s.layer: s for s in layers.scores}
    inside = [by_name[name] for name in layers.guilty if name in layers.block and name in by_name]
    moves = [_test(s) for s in inside[:_NAMED]]
    return (*moves, *(_frozen(s.layer) for s in inside[:_NAMED] if s.kind != "gradient"))


def _non_finite(layer: str) -> tuple[PlanMove, ...]:
    return (
        PlanMove(
            "Replay the step with the code below: hooks and anomaly detection.",
            "An output that is not finite: the forward pass, look at its input. Outputs finite, a "
            "gradient not: the operation that anomaly detection names (square root or norm of 0, "
            "0/0 behind a mask).",
        ),
        PlanMove(
            f"Run {layer} in fp32, autocast off for it alone.",
            "Trouble gone: the range of the low precision. Still there: the operation itself.",
        ),
    )


def _test(s: LayerScore) -> PlanMove:
    match s.kind:
        case "gradient":
            return PlanMove(
                f"Give {s.layer} a parameter group of its own with 1/{max(2.0, s.peer_ratio):.2g} "
                "of the learning rate, and clip it by itself.",
                "Trouble gone: look for what scales it (initialization, input, a sum in place of "
                "a mean). Still there: its size is not what breaks the run.",
            )
        case "growth":
            return PlanMove(
                f"Give {s.layer} the learning rate and weight decay of its peers.",
                "It grows no more: its parameter group. It still does: the scale of its input.",
            )
        case "jump":
            return PlanMove(
                f"Compare {s.layer} with the last checkpoint, element by element.",
                "A few elements differ: a flipped bit or a wrong shard. All do: a load, or one "
                "huge update.",
            )
        case "start":
            return PlanMove(
                f"Initialise {s.layer} at the scale of its peers.",
                "Trouble gone: the initialization. Still there: go on with the next run.",
            )
    return PlanMove(
        f"Replay the batch of the onset and another one, with hooks on {s.layer}.",
        "Large on the first alone: the batch brings it out. On both: the layer does.",
    )


def _frozen(layer: str) -> PlanMove:
    return PlanMove(
        f"Freeze {layer} as it was before the onset.",
        "Trouble gone: its update makes it. Still there: its forward pass or its input.",
    )


def _closing_in(block: Sequence[str], parts: Parts) -> tuple[PlanMove, ...]:
    """Run the block alone; cut the rest away, from the outside in."""
    span = block[0] if len(block) == 1 else f"{block[0]} to {block[-1]}"
    alone = PlanMove(
        f"Run {span} alone, on the input that it had before the onset.",
        "Fails: the fault is inside. Clean: the input brings it; go on towards the input.",
    )
    names = [name for name, _ in parts]
    at = [names.index(part_of(name)) for name in block if part_of(name) in names]
    rest = names[: min(at)] + names[max(at) + 1 :] if at else []
    if not rest:
        return (alone,)
    order = _outermost(rest)
    more = f" and {len(order) - _CUT} more" if len(order) > _CUT else ""
    cut = PlanMove(
        f"Replace the rest by nothing or by a linear map: {', '.join(order[:_CUT])}{more}.",
        "The smallest model that still fails is the one to debug.",
    )
    return alone, cut


def _outermost(names: Sequence[str]) -> list[str]:
    """From both ends inwards: the last, the first, the last but one ..."""
    left, right, out = 0, len(names) - 1, []
    while left <= right:
        out.append(names[right])
        if left < right:
            out.append(names[left])
        left, right = left + 1, right - 1
    return out


def _hooks() -> tuple[PlanMove, ...]:
    return (
        PlanMove(
            "Replay the step with the code below: hooks on every module at once.",
            "The first output that is not finite names the module. All outputs finite: anomaly "
            "detection names the operation in the backward pass.",
        ),
        PlanMove(
            "Run that module alone in fp32 on the same input.",
            "Finite: the range of the low precision. Not: the operation, or an input of zeros.",
        ),
    )


def _whole(verdict: Verdict) -> tuple[PlanMove, ...]:
    """The run that may make all halving needless."""
    do = _WHOLE.get(verdict.cause)
    tells = "Trouble gone: it is the run, no layer need be found. Still there: halve the model."
    return (PlanMove(do, tells),) if do else ()


def _halving(parts: Parts) -> tuple[PlanMove, ...]:
    """Freeze half of what is left, run after run; each outcome leaves one half."""
    if len(parts) < 2:
        half, first = "the half of the blocks nearest to the input", "the other half"
    else:
        middle = (len(parts) + 1) // 2
        half, first = _span(parts[:middle]), _span(parts[middle:])
    moves = [
        PlanMove(
            "Replay the batch of the onset twice from the checkpoint before it.",
            "The same both times: go on. Not: it is chance, and halving would follow noise.",
        ),
        PlanMove(
            f"Freeze {half} from that checkpoint on.",
            f"Trouble gone: it is among them. Still there: it is in {first}.",
        ),
        PlanMove(
            "Halve what is left in the same way, until one part is left.",
            "Gone with both halves, or with none: it is the whole model (learning rate, data, "
            "precision), not a part of it.",
        ),
    ]
    if not parts:
        moves.append(
            PlanMove(
                "Log the gradient norm of each layer (`stabdiag audit` has the lines).",
                "The next time the log says which; 12 blocks take 4 runs to halve, 96 take 7.",
            )
        )
    return tuple(moves)


def _span(parts: Parts) -> str:
    return parts[0][0] if len(parts) == 1 else f"{parts[0][0]} to {parts[-1][0]}"


def _named(layers: Sequence[str]) -> str:
    more = len(layers) - _NAMED
    return ", ".join(layers[:_NAMED]) + (f" and {more} more" if more > 0 else "")
