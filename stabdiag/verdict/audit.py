"""The audit: how well a run was logged, as points, and the lines that would close the gaps."""

from __future__ import annotations

from collections.abc import Sequence

from stabdiag.findings import Audit, AuditItem, MonitorItem
from stabdiag.model import Run
from stabdiag.rules.monitoring import AUDIT_POINTS, AUDIT_SHARES, OVERFLOW_POINTS
from stabdiag.verdict.logging_lines import FRAMEWORKS, lines_for
from stabdiag.verdict.monitoring import every_steps

_ASKED = {
    "loss": "every step",
    "grad_norm": "with the loss, before clipping",
    "param_norm": "every 100 to 200 steps",
    "lr": "every step",
    "grad_param_ratio": "with the grad norm",
    "val_loss": "now and then",
    "layers": "of each, grad norm every 10 steps, parameter norm every 100 to 200",
    "loss_scale": "every step, in fp16",
    "activation_max": "of each layer, every 10 steps",
    "batch": "data indices or statistics of each batch",
}
_UNDECIDABLE = {
    "loss": "when it began",
    "grad_norm": "whether the gradients rose before the loss: the handbook's rule",
    "param_norm": "a broken state or a too large update against a bad batch; a wrong weight decay",
    "lr": "a jump or a lost schedule against everything else",
    "grad_param_ratio": "whether updates are too large for their weights",
    "val_loss": "overfitting against a shift of the data",
    "layers": "which layer it is (step 4)",
    "loss_scale": "under fp16, skipped steps (normal) against a collapse of the scale",
    "activation_max": "which activation overflowed first, and how near the others are (step 3)",
    "batch": "which batch it was (step 2)",
}
_POINTS = {**AUDIT_POINTS, **OVERFLOW_POINTS}
_LIGHTNING_STARTS = ("lr-", "grad_2.0_norm")  # LearningRateMonitor, utilities.grad_norm
_HF_COLUMNS = ("learning_rate", "eval_loss", "train_runtime", "num_input_tokens_seen")


def audit_of(run: Run, monitoring: Sequence[MonitorItem]) -> Audit:
    """Score what the run logs against the minimum monitoring of the handbook.

    The score is the share of `AUDIT_POINTS`, and of `OVERFLOW_POINTS` where those are asked for,
    that is there, of 100; a metric that is logged but sparse, averaged or after clipping counts in
    part.
    """
    framework = _framework(run)
    items = tuple(_item(item, framework) for item in monitoring)
    most = sum(item.of for item in items)
    score = round(100 * sum(item.points for item in items) / most) if most else 0
    gaps = [item.metric for item in items if item.status != "ok"]
    return Audit(
        score=score,
        framework=framework,
        items=items,
        lines={name: lines_for(name, gaps) if gaps else () for name in FRAMEWORKS},
    )


def _item(item: MonitorItem, framework: str) -> AuditItem:
    of = _POINTS[item.metric]
    return AuditItem(
        metric=item.metric,
        asked=_ASKED[item.metric],
        found=_found(item),
        status=item.status,
        points=of * AUDIT_SHARES[item.status],
        of=of,
        cost="" if item.status == "ok" else _cost(item, framework),
    )


def _found(item: MonitorItem) -> str:
    every = every_steps(item.cadence) if item.cadence is not None else ""
    if item.metric == "layers" and item.status in ("ok", "sparse"):
        return item.advice
    if item.status == "ok":
        return every or item.advice or "logged"
    if item.status == "sparse":
        return every
    if item.status == "partial":
        return item.advice
    word = {
        "missing": "not logged",
        "post_clip": "after clipping",
        "averaged": "averaged over a window",
        "short": "too few points",
        "not_finite": "never finite",
    }[item.status]
    return f"{every}, {word}" if every else word


def _cost(item: MonitorItem, framework: str) -> str:
    """What can't be decided for want of it, with the numbers of this log."""
    undecidable = _UNDECIDABLE[item.metric]
    if item.status == "sparse" and item.metric in ("loss", "grad_norm"):
        mean = item.metric == "loss" and framework == "hf"
        return f"a lead of less than {item.cadence} steps can't be seen, nor a spike in between" + (
            "; the Trainer logs the mean over them: an onset is blurred" if mean else ""
        )
    if item.status == "sparse" and item.metric == "layers":
        return "between these steps can't be told: when a layer left, and which was first"
    if item.status == "partial" and item.metric == "activation_max":
        return f"can't be told: {undecidable}"
    if item.status == "short":
        often = "" if item.cadence == 1 else "log it more often, or "
        return f"too few points to judge by: {often}a longer stretch of the run is needed"
    if item.status == "partial":
        if "grad_norm" in item.advice:
            return f"can't be told: {undecidable}"
        return "can't be told: whether a layer's updates are too large for its weights"
    if item.status == "averaged":
        return "its onset is blurred over the window"
    if item.status == "post_clip":
        return "a norm at its clip value shows no spike: its absence says nothing"
    return f"can't be told: {undecidable}"


def _framework(run: Run) -> str:
    """The framework that a log looks like it is from; a plain loop where nothing says."""
    columns = {series.column for series in run.series.values()}
    if run.format in ("trainer_state", "hugging face") or len(columns & set(_HF_COLUMNS)) >= 2:
        return "hf"
    lightning = {"trainer/global_step"} & columns or any(
        column.endswith(("_step", "_epoch")) or column.startswith(_LIGHTNING_STARTS)
        for column in columns
    )
    return "lightning" if lightning else "pytorch"
