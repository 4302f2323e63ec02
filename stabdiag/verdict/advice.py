"""What to do now, most useful first, with commands that can be pasted."""

from __future__ import annotations

import shlex

from stabdiag.findings import Verdict
from stabdiag.steps.layers import LayersResult
from stabdiag.steps.timeline import Timeline

ADVICE: dict[str, tuple[str, ...]] = {
    "optimizer": (
        "Lower the peak learning rate or lengthen the warm-up; with Adam try beta2 0.95 and update clipping.",
        "Restart from the checkpoint before the onset with the lower rate, on the same data.",
    ),
    "data": (
        "Look at the batch of the onset; replay it on the checkpoint before: the same again is data.",
        "Skip or filter these batches and continue.",
    ),
    "overflow": (
        "Find the first Inf or NaN with anomaly detection on that batch: a value beyond float16, or an "
        "operation with no finite gradient (sqrt, log, division, a masked row).",
        "Train in bf16, or keep that part in fp32; go on from a checkpoint before it, if there is one.",
    ),
    "initialization": (
        "Re-run the first 1000 steps with another seed: the same again is systematic.",
        "Initialise the head and embeddings smaller, scale residual outputs by 1/sqrt(2 x layers).",
    ),
    "weight_decay": (
        "Check the weight decay's value, its sign and the parameter groups that it reaches.",
    ),
    "architecture": (
        "Reproduce it with the named part alone; check its input scale, normalisation and parameter group.",
    ),
    "state_corruption": (
        "Compare the checkpoint before with the state after: weights, optimizer moments, scheduler, generators.",
        "Restart from an earlier checkpoint; verify what the loader restores.",
    ),
    "vanishing": (
        "Add normalisation or residual connections, or use another activation; check the initialization.",
    ),
    "inconclusive": ("Log what is named under `settle` and run again from the last checkpoint.",),
    "none": ("Nothing to do.",),
}


def next_steps(timeline: Timeline, verdict: Verdict, layers: LayersResult) -> tuple[str, ...]:
    """Advice for the cause, then the commands that look closer, then what to log."""
    run = timeline.view.run
    log = " ".join(shlex.quote(f) for f in run.files) if run.files else "LOG"
    if len(run.siblings) > 1:
        log += f" --run {shlex.quote(run.name)}"
    out = list(ADVICE[verdict.cause])
    if verdict.cause == "none":
        missing = [c for c in ("grad_norm", "lr") if c not in timeline.view.run.series]
        return (f"stabdiag audit {log}",) if missing else tuple(out)
    if layers.block and verdict.layers:
        part = (
            layers.block[0]
            if len(layers.block) == 1
            else f"{layers.block[0]} to {layers.block[-1]}"
        )
        out.append(f"Smallest part to reproduce it with: {part}.")
    out.append(f"stabdiag timeline {log}")
    if verdict.layers:
        out.append(f"stabdiag layers {log}")
    out += [f"What would settle it: {text}." for text in verdict.settle]
    return tuple(out)
