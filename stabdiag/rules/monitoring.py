"""Rules beside the five steps: what the log itself lacks or hides."""

from __future__ import annotations

from collections.abc import Mapping

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

POST_CLIP = Rule(
    id="SD701",
    name="grad-norm-after-clipping",
    workflow_step=0,
    severity=Severity.INFO,
    needs=("grad_norm",),
    what="The logged grad norm sits at its maximum: it is taken after clipping.",
    why_bad="It can show no spike, so it is no evidence of absence.",
    advice="Log the value that clip_grad_norm_ returns: it is the norm before clipping.",
    thresholds=(
        Threshold(
            "min_share", 0.5, "share of the points at the maximum", "saturation is easy to see"
        ),
    ),
    example="the grad norm is logged after clipping: it can show no spike",
    sources=("handbook, what to log", "labelled fault-injection runs, section 5"),
)
ZERO_GRAD = Rule(
    id="SD702",
    name="grad-norm-zero",
    workflow_step=0,
    severity=Severity.WARNING,
    needs=("grad_norm",),
    what="The grad norm is exactly 0 over most of the run while the loss moves.",
    why_bad="It is logged after zero_grad, or the wrong parameters are summed.",
    advice="Log the norm between backward() and the optimizer step.",
    thresholds=(
        Threshold("min_share", 0.5, "share of the points", "lone zeros are another matter"),
    ),
    example="the grad norm is exactly 0 in 100% of its points while the loss moves",
    sources=("reported incident I09",),
)
# Points of 100 for each metric of the audit, as a share of what a diagnosis rests on: by the gain
# that each brings on the labelled runs (section 3 there), the handbook's five metrics first.
AUDIT_POINTS: Mapping[str, float] = {
    "loss": 20.0,
    "grad_norm": 20.0,
    "param_norm": 15.0,
    "lr": 15.0,
    "grad_param_ratio": 5.0,
    "val_loss": 5.0,
    "layers": 10.0,
    "batch": 10.0,
}
# Beside them where the run is fp16 or overflow is in question; the score stays of 100.
OVERFLOW_POINTS: Mapping[str, float] = {"loss_scale": 10.0, "activation_max": 5.0}
# What is there but less than it should be keeps this share of its points.
AUDIT_SHARES: Mapping[str, float] = {
    "ok": 1.0,
    "sparse": 0.5,
    "averaged": 0.5,
    "partial": 0.5,
    "short": 0.5,
    "post_clip": 0.25,
    "not_finite": 0.0,
    "missing": 0.0,
}
AUDIT_SCORED = (
    "Points of 100: all of a metric's where it is logged as asked, half where it is sparse, "
    "averaged, partial or short, a quarter after clipping. Loss scale and activation maxima count "
    "where the run is fp16 or overflow is in question."
)
MISSING_METRIC = Rule(
    id="SD703",
    name="minimum-monitoring",
    workflow_step=0,
    severity=Severity.INFO,
    needs=(),
    what="A metric of the minimum monitoring is missing, sparse or not finite.",
    why_bad="Each gap makes some causes undecidable.",
    advice="Add the metric; `stabdiag audit` says what each gap costs.",
    thresholds=(
        Threshold("param_every", 200, "steps", "handbook: each 100-200 steps"),
        Threshold(
            "layer_every",
            10,
            "steps",
            "as the recorder logs them: within that it can't be told which layer left first",
        ),
        Threshold(
            "overflow_in_question",
            0.1,
            "probability of overflow",
            "below it a loss scale would hardly change the verdict",
        ),
    ),
    example="not logged: grad_norm, param_norm, lr",
    sources=("handbook, what to log",),
)
DATA_LEFT_OUT = Rule(
    id="SD704",
    name="data-left-out",
    workflow_step=0,
    severity=Severity.INFO,
    needs=(),
    what="Rows or cells could not be read, or were repaired or guessed.",
    why_bad="What was left out can't be judged.",
    advice="See the notes of the report; --strict makes this an error (exit 2).",
    thresholds=(),
    example="column 'loss': '?!7#' is no number and counts as not logged",
)
RUN_ENDED = Rule(
    id="SD705",
    name="how-the-run-ended",
    workflow_step=0,
    severity=Severity.INFO,
    needs=(),
    what="The log's own last lines say how the run ended (a traceback, out of memory, a signal).",
    why_bad="A crash is not an instability, but it may be the reason for the last points.",
    advice="Read the lines named.",
    thresholds=(),
    example="after the last metrics the log says: Python exception: torch.cuda.OutOfMemoryError: "
    "CUDA out of memory. Tried to allocate 2.00 GiB",
)
LR_ENDED = Rule(
    id="SD706",
    name="learning-rate-at-floor",
    workflow_step=0,
    severity=Severity.WARNING,
    needs=("lr",),
    what="The learning rate reached its floor (or 0) long before the end of the run.",
    why_bad="The rest of the run trained almost nothing: the schedule's length is wrong.",
    advice="Check the number of steps given to the scheduler.",
    thresholds=(
        Threshold("min_share", 0.25, "share of the run at the floor", "project choice"),
        Threshold(
            "floor",
            0.001,
            "share of the peak rate",
            "cosine floors are usually 0.1 or 0",
            below=1.0,
        ),
    ),
    example="the learning rate is at its floor from step 80 on, 50% of the run",
    sources=("reported incident I21",),
)
VALIDATION_NAN = Rule(
    id="SD707",
    name="validation-loss-not-finite",
    workflow_step=0,
    severity=Severity.WARNING,
    needs=("loss", "val_loss"),
    what="The validation loss is NaN or Inf while the training loss is finite.",
    why_bad="Evaluation can't be judged; training itself goes on. Often a batch without targets, or "
    "another precision in evaluation.",
    advice="Look at the validation data (fully masked rows) and at evaluation's precision.",
    example="the validation loss is not finite in 3 of 8 evaluations, first at step 119, while "
    "the training loss is",
    sources=("Hugging Face Trainer: eval_loss is not filtered", "reported incident I31"),
)
RULES = (POST_CLIP, ZERO_GRAD, MISSING_METRIC, DATA_LEFT_OUT, RUN_ENDED, LR_ENDED, VALIDATION_NAN)
