"""Rules of step 2: what was odd about the batch."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

BATCH_OUTLIER = Rule(
    id="SD201",
    name="unusual-batch",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=("loss",),
    what="A logged statistic of the batch (length, entropy, repetition, mixture) at the onset is far "
    "from what was usual.",
    why_bad="Outlier batches are common triggers: unusual tokens, very long or repeated sequences.",
    advice="Retrieve the batch by its indices and look at it; skip or filter it and replay.",
    thresholds=(
        Threshold(
            "min_score",
            6.0,
            "robust standard deviations",
            "72 % of labelled one-batch faults pass, 12 % of overflows, none of the others.",
        ),
        Threshold("window", 200, "logged points", "what was usual: so many points before"),
    ),
    example="seq_len is 2000 at step 100, usual is 500 (101 robust standard deviations off)",
    sources=("handbook step 2", "labelled fault-injection runs, section 3"),
)
ZERO_LOSS = Rule(
    id="SD202",
    name="batch-without-targets",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=("loss",),
    what="Isolated steps with a loss of exactly 0 and a grad norm of exactly 0 between normal ones.",
    why_bad="Those batches had no label left (all masked): they train nothing, and averages lie.",
    advice="Count the unmasked label tokens of each batch; check truncation and the chat template.",
    thresholds=(),
    example="loss and grad norm are exactly 0 at step 60 between normal ones: no target was left "
    "in the batch",
    sources=("trl issue 6668", "unsloth issue 1128"),
)
EMPTY_BATCH = Rule(
    id="SD203",
    name="lone-non-finite-loss",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=("loss",),
    what="One non-finite loss whose neighbours are normal.",
    why_bad="A mean over an empty batch is 0/0. A NaN from overflow or a broken state would not heal "
    "on the next step.",
    advice="Look for an empty or fully masked batch at this step.",
    example="the loss is not finite at step 100 alone, and normal on the next step",
    sources=("labelled fault-injection runs, section 7",),
)
RULES = (BATCH_OUTLIER, ZERO_LOSS, EMPTY_BATCH)
