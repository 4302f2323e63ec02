"""The bisection plan: which part to reproduce with, what to freeze or cut, in which order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabdiag.findings import LayerPlan, PlanMove, Verdict
from stabdiag.steps.layers import LayersResult
from stabdiag.steps.roles import part_of, parts_of

_NAMED = 3  # layers with a move of their own


def plan(layers: LayersResult, verdict: Verdict) -> LayerPlan | None:
    """Return how to bisect the model, None where there is nothing to find in it.

    That is where nothing is wrong, the data is, or no layer is logged.

    Where the log names layers, the block that holds them comes first; else the model is halved by
    blocks: log2 of their number runs.
    """
    order = [s.layer for s in layers.scores]
    if verdict.cause == "none" or not order:
        return None
    parts = parts_of(order)
    runs = max(1, math.ceil(math.log2(len(parts)))) if len(parts) > 1 else 0
    if layers.block and layers.guilty:
        verb = "stands" if len(layers.guilty) == 1 else "stand"
        reason = f"{_named(layers.guilty)} {verb} out; the block holds them in the model's order"
        moves = _named_moves(layers.guilty, layers.block, parts)
        return LayerPlan(layers.block, reason, moves, runs, outline(layers.block, verdict))
    if verdict.cause == "data":  # it is not in the model
        return None
    reason = "the log does not single out a layer: halve the model"
    return LayerPlan((), reason, _halving(parts), runs, outline((), verdict))


def _named(layers: Sequence[str]) -> str:
    more = len(layers) - _NAMED
    return ", ".join(layers[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _named_moves(
    guilty: Sequence[str], block: Sequence[str], parts: Sequence[tuple[str, list[str]]]
) -> tuple[PlanMove, ...]:
    span = block[0] if len(block) == 1 else f"{block[0]} to {block[-1]}"
    moves = [
        PlanMove(
            f"Run {span} alone, on its saved input of the step before the onset.",
            "Fails: the fault is inside. Clean: its input is at fault; go towards the input.",
        )
    ]
    for layer in guilty[:_NAMED]:
        moves.append(
            PlanMove(
                f"Freeze {layer} from the checkpoint before the onset.",
                "Trouble gone: its update does it. Still there: its forward or its input.",
            )
        )
    names = [name for name, _ in parts]
    first, last = part_of(block[0]), part_of(block[-1])
    if len(parts) > 2 and first in names and last in names:
        rest = [
            name
            for name in names
            if not names.index(first) <= names.index(name) <= names.index(last)
        ]
        if rest:
            moves.append(
                PlanMove(
                    f"Cut everything beside it, outermost first: {', '.join(_outermost(rest)[:4])}.",
                    "The smallest model that still fails is the one to debug.",
                )
            )
    return tuple(moves)


def _outermost(names: Sequence[str]) -> list[str]:
    """From both ends inwards: the last, the first, the last but one ..."""
    left, right, out = 0, len(names) - 1, []
    while left <= right:
        out.append(names[right])
        if left < right:
            out.append(names[left])
        left, right = left + 1, right - 1
    return out


def _halving(parts: Sequence[tuple[str, list[str]]]) -> tuple[PlanMove, ...]:
    if len(parts) < 2:
        return ()
    middle = len(parts) // 2
    lower = f"{parts[0][0]} to {parts[middle - 1][0]}" if middle > 1 else parts[0][0]
    upper = f"{parts[middle][0]} to {parts[-1][0]}" if middle < len(parts) - 1 else parts[-1][0]
    return (
        PlanMove(
            f"Freeze {lower} from the checkpoint before the onset.",
            f"Trouble gone: it is among them. Still there: it is in {upper}.",
        ),
        PlanMove("Halve the part that is left in the same way.", "One part is left at the end."),
    )


def outline(block: Sequence[str], verdict: Verdict) -> tuple[str, ...]:
    """Return a minimal reproduction in PyTorch for the layers of `block`, to paste and fill in.

    Names come from a log: each stands as a quoted literal.
    """
    step = verdict.onset_step if verdict.onset_step is not None else 0
    names = [f"    {name!a}," for name in block] or ["    # the log names none: begin with all"]
    trains = "name in SUSPECTS" if block else "True"
    return (
        f"# step {step}, from the last checkpoint before it, on its own batch",
        "SUSPECTS = [",
        *names,
        "]",
        "model.load_state_dict(torch.load(CHECKPOINT))",
        "for name, p in model.named_parameters():",
        f"    p.requires_grad_({trains})",
        "largest = {}",
        "def watch(name):",
        "    def hook(module, inputs, output):",
        "        y = output[0] if isinstance(output, tuple) else output",
        "        largest[name] = y.detach().abs().max().item()",
        "    return hook",
        "for name, module in model.named_modules():",
        "    if name in {s.rpartition('.')[0] for s in SUSPECTS}:" if block else "    if name:",
        "        module.register_forward_hook(watch(name))",
        "with torch.autograd.detect_anomaly():",
        "    loss = loss_of(model, BATCH)",
        "    loss.backward()",
        "for name, p in model.named_parameters():",
        "    if p.grad is not None:",
        "        print(name, p.grad.norm().item(), p.detach().norm().item())",
        "print(largest)",
    )
