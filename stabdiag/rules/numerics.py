"""Rules of step 3: non-finite values, loss scale, range limits."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

NON_FINITE_LOSS = Rule(
    id="SD301",
    name="non-finite-loss",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=("loss",),
    what="The loss became NaN or Inf.",
    why_bad="A NaN in the loss or the gradients reaches every parameter with the next update.",
    advice="Restart from a checkpoint before the first non-finite value; find its tensor with "
    "anomaly detection on that batch.",
    thresholds=(),
    example="loss is NaN from step 100 on",
    sources=("handbook step 3",),
)
NON_FINITE_GRAD = Rule(
    id="SD302",
    name="non-finite-gradient",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=("grad_norm",),
    what="The gradient norm is NaN or Inf over a stretch, or so often that steps are lost.",
    why_bad="Under a loss scaler these steps are skipped: the model no longer learns. Without one "
    "the update destroys the weights.",
    advice="Log the loss scale and per-layer norms; train the offending part in bf16 or fp32.",
    thresholds=(
        Threshold("min_run", 3, "points in a row", "lone ones are a scaler at work"),
        Threshold(
            "dense_count", 6, "points", "6 in 20 steps: 8 of 8 labelled overflows, no healthy run"
        ),
        Threshold("dense_span", 20, "steps", "as dense_count"),
    ),
    example="grad_norm is NaN from step 100 on",
    sources=("labelled fault-injection runs, section 7", "Micikevicius et al. (2018)"),
)
SKIPPED_STEP = Rule(
    id="SD303",
    name="isolated-skipped-steps",
    workflow_step=3,
    severity=Severity.INFO,
    needs=("grad_norm",),
    what="Lone steps with a non-finite grad norm and a finite loss.",
    why_bad="Nothing: this is how a loss scaler finds its range (0.2-1.6 % of healthy fp16 steps).",
    advice="None, unless they come more and more often.",
    thresholds=(
        Threshold(
            "warmup", 100, "steps", "the scaler falls from its first value; no sign of trouble"
        ),
    ),
    example="3 lone steps with a non-finite grad norm and a finite loss (first 30): a loss scaler"
    " at work, harmless",
    sources=(
        "labelled fault-injection runs, section 7",
        "Hugging Face console logs: 30 of 30 benign",
    ),
)
SCALE_COLLAPSE = Rule(
    id="SD304",
    name="loss-scale-collapse",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=("loss_scale",),
    what="The loss scale fell again and again without coming back.",
    why_bad="Each fall is a skipped step; at the floor nothing is learned. Where the forward pass "
    "overflows, halving can't help.",
    advice="Find the layer whose activations near 65504; keep it in fp32 or train in bf16.",
    thresholds=(
        Threshold(
            "min_fall",
            1000,
            "times below its running maximum",
            "7 of 8 labelled overflows pass; healthy scales stay within 16",
            above=1.0,
        ),
        Threshold(
            "min_lasting_fall",
            64,
            "times below its running maximum, over the last quarter",
            "a floor under the scale stops the fall (1 of 8 labelled overflows)",
            above=1.0,
        ),
    ),
    example="the loss scale falls from step 100 on, to 1/1,024 of its maximum by step 109, and "
    "does not come back",
    sources=("labelled fault-injection runs, section 7", "PyTorch GradScaler"),
)
NEAR_LIMIT = Rule(
    id="SD305",
    name="near-the-fp16-limit",
    workflow_step=3,
    severity=Severity.WARNING,
    needs=("activation_max",),
    what="A logged maximum came near 65504, the largest float16.",
    why_bad="The next increase is Inf in the forward pass.",
    advice="Clamp, rescale or keep this layer in fp32.",
    thresholds=(Threshold("min_share", 0.5, "share of 65504", "one doubling away"),),
    example="activation_max reaches 48000 of 65504, the largest float16, from step 100",
    sources=("IEEE 754 binary16", "transformers issues 5651, 14189"),
)
HIDDEN_NAN = Rule(
    id="SD306",
    name="hidden-nan",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=("loss",),
    what="A NaN that the logger hid: an empty cell, a dropped field, or a loss of 0.0 beside a NaN "
    "grad norm.",
    why_bad="The run looks alive in charts while every parameter is NaN.",
    advice="Stop the run; set logging_nan_inf_filter=False (Hugging Face) or log NaN as it is.",
    thresholds=(),
    example="loss is missing, which stands for NaN here, from step 100 on (grad_norm from 100, "
    "loss from 100)",
    sources=("transformers logging_nan_inf_filter", "trl issue 6702", "AlgoPerf, Megatron formats"),
)
NON_FINITE_LAYER = Rule(
    id="SD307",
    name="non-finite-layer",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=(),
    what="Per-layer series show where non-finite values came first.",
    why_bad="In a backward pass everything below the culprit is NaN too: among those that turn bad "
    "at once, the one nearest to the loss is the first suspect; a lone one is the culprit.",
    advice="Reproduce the step with anomaly detection on this layer.",
    thresholds=(),
    example="h.2.mlp.c_fc.weight turns non-finite first, at step 100",
    sources=("labelled fault-injection runs, section 6",),
)
NON_FINITE_PARAMS = Rule(
    id="SD308",
    name="non-finite-parameters",
    workflow_step=3,
    severity=Severity.ERROR,
    needs=("param_norm",),
    what="The parameter norm became NaN or Inf and stayed so.",
    why_bad="A weight is broken; the loss shows it as soon as a batch touches it.",
    advice="Find the tensor (per-layer norms), and restart from a checkpoint before this step.",
    example="param_norm is NaN from step 100 on",
    sources=("handbook step 3", "labelled fault-injection runs, section 6"),
)
RULES = (
    NON_FINITE_LOSS,
    NON_FINITE_GRAD,
    SKIPPED_STEP,
    SCALE_COLLAPSE,
    NEAR_LIMIT,
    HIDDEN_NAN,
    NON_FINITE_LAYER,
    NON_FINITE_PARAMS,
)
