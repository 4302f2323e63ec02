"""Rules of step 4: which layer, and how the parameters grow."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

DOMINANT_LAYER = Rule(
    id="SD401",
    name="layer-gradient-dominates",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=(),
    what="One layer's gradient is consistently many times that of the same layer in other blocks.",
    why_bad="It takes the whole clipping budget: every other layer trains at a fraction of its rate.",
    advice="Check this layer's input scale, normalisation and initialization.",
    thresholds=(
        Threshold(
            "min_peer_ratio",
            20.0,
            "times the median of the same role in other blocks",
            "first block: healthy matrices p99 10, maximum 20",
        ),
        Threshold(
            "min_inner_ratio",
            10.0,
            "times the median of the same role in other blocks",
            "blocks after the first: healthy matrices stay under 3",
        ),
        Threshold(
            "min_end_ratio",
            70.0,
            "times the median layer, for embedding and head",
            "healthy embeddings and heads lead by 19 (p90 27, maximum 46)",
        ),
        Threshold(
            "handbook_ratio",
            10.0,
            "times its peers, for the share of time in the ranking",
            "handbook: 10 to 100 times; small tensors reach it in health, so no verdict by it",
        ),
        Threshold(
            "consistent", 0.5, "share of the points", "one pass is not consistent (handbook)"
        ),
    ),
    example="the gradient of h.1.mlp.c_fc.weight is 59.7 times its peers' in 100% of the points",
    sources=("handbook, layer-wise analysis", "labelled fault-injection runs, section 6"),
)
FIRST_TO_LEAVE = Rule(
    id="SD402",
    name="first-layer-to-leave",
    workflow_step=4,
    severity=Severity.INFO,
    needs=(),
    what="Some layers' gradient left its baseline before the others around the onset.",
    why_bad="At a loss spike every layer rises; only one that rises earlier says something.",
    advice="Start the bisection there.",
    thresholds=(
        Threshold("min_score", 6.0, "robust standard deviations of the log", "as SD102"),
        Threshold(
            "min_of_first",
            0.9,
            "times the first layer's score, to share its block",
            "labelled runs: layers rightly beside the first reach .95, others stay under .89",
        ),
        Threshold(
            "max_block",
            0.5,
            "share of the model's parts",
            "a part to reproduce with that is larger narrows nothing down",
        ),
    ),
    example="h.1.attn.c_proj.weight left its baseline at step 94, before the onset at 100",
    sources=("labelled fault-injection runs, section 6",),
)
PARAM_PARTS = Rule(
    id="SD403",
    name="layer-norm-parts-from-the-rest",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=(),
    what="One weight matrix's norm grew many times more than the others'.",
    why_bad="Its effective learning rate, or the scale of its input, differs from its peers'.",
    advice="Check this layer's parameter group, learning rate, weight decay and input scale.",
    thresholds=(
        Threshold(
            "min_growth_ratio", 6.0, "times the median growth", "healthy matrices stay under 3"
        ),
        Threshold("min_growth", 8.0, "times its own start", "as min_growth_ratio"),
        Threshold("min_head_growth", 60.0, "times, for a head", "healthy heads reach 31"),
    ),
    example="the norm of h.3.mlp.c_fc.weight grew 25.7 times, 18.5 times its peers'",
    sources=("labelled fault-injection runs, section 6", "reported incidents I20, I33"),
)
TENSOR_JUMP = Rule(
    id="SD404",
    name="tensor-norm-jump",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=(),
    what="A tensor's norm changed by more than an optimizer step can explain.",
    why_bad="With no change of the learning rate, a tensor that jumps was overwritten: a flipped "
    "bit, a partial load, a wrong shard.",
    advice="Compare this tensor with the last checkpoint; check the restore code and the memory.",
    thresholds=(
        Threshold("min_log_change", 0.22, "log of the norm", "91 % of labelled state corruptions"),
        Threshold("min_usual", 6.0, "times its usual change", "separates warm-up from a jump"),
    ),
    example="1 of 10 weight norms jumped around step 100, h.2.attn.c_proj.weight by a factor of "
    "2.51",
    sources=("labelled fault-injection runs, section 3",),
)
VANISHING = Rule(
    id="SD405",
    name="gradient-vanishes-with-depth",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=(),
    what="The gradients of the layers near the input are a tiny share of those near the loss.",
    why_bad="The early layers don't learn; the loss sits on a plateau.",
    advice="Use normalisation, residual connections or another activation; check the initialization.",
    thresholds=(
        Threshold("max_ratio", 0.001, "first to last layer", "AutoTrainer (2021) uses 1e-3"),
    ),
    example="the first block's gradients are 0.00013 of the last block's: they vanish on the way "
    "down",
    sources=("AutoTrainer (2021)", "Glorot and Bengio (2010)"),
)
PARAM_GROWTH = Rule(
    id="SD406",
    name="parameter-norm-growth",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=("param_norm",),
    what="The parameter norm grew rapidly and kept on growing.",
    why_bad="The weight decay is too small (or has the wrong sign): effective step sizes and logits "
    "drift until something overflows.",
    advice="Check the weight decay, its parameter groups and its sign.",
    thresholds=(
        Threshold("min_ratio", 5.0, "end over start", "healthy: median 1.7, p90 2.6, maximum 4.3"),
        Threshold(
            "min_rate",
            1.3,
            "times in 50 steps, for 200 steps",
            "healthy maximum 1.6, in warm-up only",
        ),
    ),
    example="the parameter norm grew 11.3 times over the run, 3.44 times in its second half",
    sources=("handbook, what to log", "labelled fault-injection runs, section 7"),
)
PARAM_JUMP = Rule(
    id="SD407",
    name="parameter-norm-jump",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=("param_norm",),
    what="The global parameter norm changed within one logged interval by far more than usual.",
    why_bad="The update, not the batch, was abnormal: learning rate, optimizer state or weights.",
    advice="Compare the checkpoint before and after; check the learning rate and the restore code.",
    thresholds=(
        Threshold("min_usual", 4.0, "times the usual change", "healthy runs stay under 2.5"),
        Threshold("min_log_change", 0.05, "log of the norm", "smaller changes are no jump"),
    ),
    example="the parameter norm changed by 25% within the logged interval to step 100, 88 times "
    "its usual change",
    sources=("labelled fault-injection runs, section 3",),
)
GRAD_PARAM_RATIO = Rule(
    id="SD408",
    name="gradient-to-parameter-ratio",
    workflow_step=4,
    severity=Severity.INFO,
    needs=("grad_norm", "param_norm"),
    what="The ratio of gradient norm to parameter norm stayed above 0.1.",
    why_bad="Such steps are often unstable (weak sign: healthy runs spend 2 % of their steps there).",
    advice="Lower the learning rate or lengthen the warm-up if the loss is unstable too.",
    thresholds=(
        Threshold("max_ratio", 0.1, "dimensionless", "handbook"),
        Threshold("min_share", 0.1, "share of the points", "too high rates: 17 %, healthy 2 %"),
    ),
    example="the gradient-to-parameter ratio is above 0.1 in 100% of the steps after the first "
    "tenth",
    sources=("handbook, what to log",),
)
NORM_PARTS = Rule(
    id="SD410",
    name="norm-scale-parts-from-the-rest",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=(),
    what="The scale of one normalisation layer grew or shrank many times more than the others'.",
    why_bad="It amplifies or silences its block; the loss may follow slowly, without a spike.",
    advice="Check this layer's weight decay and learning rate; compare it with an earlier checkpoint.",
    thresholds=(
        Threshold("min_ratio", 4.0, "times the other norms' growth", "healthy: under 2.5"),
    ),
    example="the scale of h.2.ln_1.weight went to 10.4 times its start, the other norms' to 1.39 "
    "times",
    sources=("reported incidents I20, I33",),
)
SAME_LAYERS = Rule(
    id="SD409",
    name="spikes-through-the-same-layers",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=("grad_norm",),
    what="The run's lone grad-norm spikes come through the same few layers every time.",
    why_bad="Chance and odd batches move all layers; a part that is near saturation by design, or "
    "badly scaled, spikes alone. Clipping hides it from the loss and costs the step.",
    advice="Log the attention-logit maximum or the activations of these layers; run the same "
    "batches on another seed.",
    thresholds=(
        Threshold("min_ratio", 8.0, "times the run's median grad norm", "healthy blips: 3-5 times"),
        Threshold("min_spikes", 3, "spikes", "fewer are no pattern"),
        Threshold("min_excess", 20.0, "times the median layer's rise", "reported: 27-1500 times"),
        Threshold("min_share", 0.6, "share of the spikes", "every time, less some noise"),
    ),
    example="4 lone grad-norm spikes (first at step 50) come through h.1.attn.c_proj.weight, "
    "which rise 43.4 times more than the others",
    sources=("unsloth issue 5207", "transformers issue 45676"),
)
RULES = (
    NORM_PARTS,
    SAME_LAYERS,
    DOMINANT_LAYER,
    FIRST_TO_LEAVE,
    PARAM_PARTS,
    TENSOR_JUMP,
    VANISHING,
    PARAM_GROWTH,
    PARAM_JUMP,
    GRAD_PARAM_RATIO,
)
