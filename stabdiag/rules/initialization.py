"""Rules of step 5: is the start to blame."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

INITIAL_LOSS = Rule(
    id="SD501",
    name="initial-loss-too-high",
    workflow_step=5,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The first loss lies above what a uniform guess gives, or above the level of the first "
    "steps by a factor, and falls at once.",
    why_bad="The output layer starts far too confident: the initialization is too large.",
    advice="Initialise the head (and embeddings) smaller; re-run the first 1000 steps with another "
    "seed: the same again is systematic.",
    thresholds=(
        Threshold("min_uniform_ratio", 1.2, "times ln(vocabulary)", "healthy: 0.96-1.02"),
        Threshold(
            "min_fall", 2.0, "first loss over the loss 50 steps on", "healthy: 1.8; init: 2.7-6"
        ),
    ),
    example="the first loss is 27.5, 9.8 times the loss 50 steps on, above what a uniform guess "
    "gives for any vocabulary in use",
    sources=("handbook step 5", "labelled fault-injection runs, section 7"),
)
INITIAL_GRADIENT = Rule(
    id="SD502",
    name="initial-gradient-transient",
    workflow_step=5,
    severity=Severity.WARNING,
    needs=("grad_norm",),
    what="The first gradient norm is many times that of step 50.",
    why_bad="The first steps repair the initialization instead of learning.",
    advice="Check the initial scale of each layer; lengthen the warm-up.",
    thresholds=(
        Threshold("min_ratio", 9.0, "times the norm at step 50", "healthy: median 3, maximum 7"),
    ),
    example="the first grad norm is 51.9 times that of 50 steps on",
    sources=("labelled fault-injection runs, section 7",),
)
INITIAL_IMBALANCE = Rule(
    id="SD503",
    name="initial-norm-imbalance",
    workflow_step=5,
    severity=Severity.WARNING,
    needs=(),
    what="At the first logged step one weight's norm stands far above the rest, and shrinks after.",
    why_bad="With a norm behind it gradient and loss stay calm; it shows in the norm alone.",
    advice="Check the initialization of this tensor.",
    thresholds=(
        Threshold(
            "min_ratio", 8.0, "times the largest other", "init faults: 5-50 times the others"
        ),
    ),
    example="h.1.mlp.c_fc.weight starts 16.5 times above every other weight norm and shrinks",
    sources=("labelled fault-injection runs, section 6",),
)
SHRINKING_NORM = Rule(
    id="SD504",
    name="parameter-norm-shrinks-from-the-start",
    workflow_step=5,
    severity=Severity.INFO,
    needs=("param_norm",),
    what="The parameter norm falls from the first steps on.",
    why_bad="A model trained from scratch grows from its initialization; one that shrinks started "
    "too large (or fine-tunes with a strong decay).",
    advice="Compare the initial norms with the usual ones of this architecture.",
    thresholds=(
        Threshold("max_ratio", 0.99, "norm after 50 steps over the first", "healthy runs grow"),
    ),
    example="the parameter norm shrinks from the first steps on (-3.1% in 50 steps)",
    sources=("labelled fault-injection runs",),
)
RULES = (INITIAL_LOSS, INITIAL_GRADIENT, INITIAL_IMBALANCE, SHRINKING_NORM)
