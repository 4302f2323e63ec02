"""What to do now, most useful first, with commands that can be pasted."""

from __future__ import annotations

import shlex

import numpy as np

from stabdiag.findings import Verdict
from stabdiag.model import Run
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


def log_argument(run: Run) -> str:
    """The log and the run in it as a command of this tool takes them."""
    log = " ".join(shlex.quote(f) for f in run.files) if run.files else "LOG"
    return f"{log} --run {shlex.quote(run.name)}" if len(run.siblings) > 1 else log


def _step_with_indices(run: Run, onset: int | None) -> int | None:
    """The onset, or the last step before it for which the log has data indices."""
    if run.batch is None or not run.batch.ids or onset is None:
        return None
    at = int(np.searchsorted(run.batch.step, onset, side="right")) - 1
    return int(run.batch.step[at]) if at >= 0 else None


def next_steps(timeline: Timeline, verdict: Verdict, layers: LayersResult) -> tuple[str, ...]:
    """Advice for the cause, then the commands that look closer, then what to log."""
    run = timeline.view.run
    log = log_argument(run)
    out = list(ADVICE[verdict.cause])
    if verdict.cause == "none":
        missing = [c for c in ("grad_norm", "lr") if c not in timeline.view.run.series]
        return (f"stabdiag audit {log}",) if missing else tuple(out)
    handed_on = layers.broken and len(layers.block) == 1  # it may come from anywhere below
    if layers.block and verdict.layers and not handed_on:
        part = (
            layers.block[0]
            if len(layers.block) == 1
            else f"{layers.block[0]} to {layers.block[-1]}"
        )
        out.append(f"Smallest part to reproduce it with: {part}.")
    out.append(f"stabdiag timeline {log}")
    step = _step_with_indices(run, verdict.onset_step)
    if step is not None:
        out.append(f"stabdiag batch {log} --step {step}")
    if verdict.layers:
        out.append(f"stabdiag layers {log}")
    out += [f"What would settle it: {text}." for text in verdict.settle]
    return tuple(out)
