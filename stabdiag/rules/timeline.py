"""Rules of step 1: when did it begin, and what did the learning rate do then."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

LOSS_SPIKE = Rule(
    id="SD101",
    name="loss-spike",
    workflow_step=1,
    severity=Severity.ERROR,
    needs=("loss",),
    what="The loss left its recent level upwards, by score and by size, as one interval with an "
    "onset, a peak and an end.",
    why_bad="A spike costs the steps until the loss is back, and may be the first of several: what "
    "it was preceded by decides whether to change the optimizer, the data or the precision.",
    advice="Look at the batch and the layers of the onset step; if the loss did not come back, "
    "restart from the checkpoint before it.",
    thresholds=(
        Threshold(
            "min_score",
            6.0,
            "robust standard deviations",
            "On labelled healthy runs 4 % raise a false alarm at 6, 50 % at 3. Raised further for "
            "long or heavy-tailed runs; --spike-threshold replaces it.",
        ),
        Threshold(
            "false_alarms",
            0.05,
            "expected lone points a run",
            "The score needed grows with the run's length and with its own tail (Hill estimate).",
        ),
        Threshold(
            "min_excess",
            0.05,
            "share of the loss range",
            "A score alone flags rounding noise of a quiet loss: a memorising MLP going from "
            "0.0003 to 0.036 scores 50.",
        ),
        Threshold(
            "joint_score",
            4.5,
            "robust standard deviations",
            "A loss excursion at the same point as a grad-norm spike needs less height of its own.",
        ),
        Threshold(
            "fast_points", 10, "logged points", "Back within so many points: recovery is fast."
        ),
    ),
    example="loss 3.1, 3.1, 9.8, 4.0, 3.1: onset at the third point, recovered two points later.",
    sources=("PaLM (2022) section 5.1", "ml-engineering, training loss patterns"),
)
GRAD_SPIKE = Rule(
    id="SD102",
    name="grad-norm-spike",
    workflow_step=1,
    severity=Severity.INFO,
    needs=("grad_norm",),
    what="The gradient norm left its recent level upwards, on a log scale.",
    why_bad="Alone it is usually harmless: clipping absorbs isolated spikes of 12 to 100 times. "
    "Several lone ones, or one that the loss follows, are a precursor.",
    advice="Check that gradient clipping is on; watch whether they come more often.",
    thresholds=(
        Threshold(
            "min_score",
            8.0,
            "robust standard deviations of the log",
            "62 % of healthy labelled runs pass 6, 28 % pass 8: never called sick for this alone.",
        ),
        Threshold("min_ratio", 4.0, "times the recent level", "as min_score"),
    ),
    example="the grad norm rose to 27.2 times its level at step 100 (score 21.5)",
    sources=("labelled fault-injection runs, section 4 of the measurements",),
)
DIVERGENCE = Rule(
    id="SD103",
    name="divergence",
    workflow_step=1,
    severity=Severity.ERROR,
    needs=("loss",),
    what="The loss ends well above the best level it had reached and did not come back.",
    why_bad="The steps since then made the model worse.",
    advice="Go back to the checkpoint of the best level; change what the verdict names before "
    "going on.",
    thresholds=(
        Threshold(
            "min_rise",
            0.15,
            "share of the loss range",
            "Noise and mild overfitting of a training loss stay under it in all healthy runs seen.",
        ),
        Threshold("min_noise", 6.0, "robust standard deviations", "as SD101.min_score"),
        Threshold("window", 20, "logged points", "Levels are medians over so many points."),
    ),
    example="the loss ends at 3.51, 38% of its range above its best level 2.219",
    sources=("ml-engineering, training loss patterns (non-recovering, slow divergence)",),
)
LEVEL_SHIFT = Rule(
    id="SD104",
    name="loss-level-shift",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The loss stepped to a higher level and stayed there, without one outstanding point.",
    why_bad="A lasting step is what a change of the data, or of the state at a resume, looks like.",
    advice="Compare the data sources and the configuration before and after this step.",
    thresholds=(
        Threshold(
            "min_score",
            6.0,
            "robust standard errors of a median of 5",
            "Healthy labelled runs stay under 4.8.",
        ),
        Threshold("min_excess", 0.05, "share of the loss range", "as SD101.min_excess"),
    ),
    example="the loss rose from step 220 on, from 2.109 to 2.693 at step 234 (score 7.59, 17% of "
    "the loss range), recovered by step 247",
    sources=(
        "labelled fault-injection runs: half-life above 5 steps in 70 % of lasting data faults",
    ),
)
RESUME_CHANGE = Rule(
    id="SD105",
    name="level-change-at-restart",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The loss changes its level exactly at a restart: steps repeated after it differ from "
    "those before, or the first points after it lie off the course.",
    why_bad="A restart should continue where the checkpoint stood; a drop suggests data that was "
    "seen before, a rise a state that was not restored.",
    advice="Check the sampler's position, the optimizer and scheduler state and the random "
    "generators in the checkpoint code.",
    thresholds=(
        Threshold("min_score", 6.0, "robust standard errors", "as SD104.min_score"),
        Threshold("min_change", 0.05, "share of the loss range", "as SD101.min_excess"),
    ),
    example="at the restart at step 90 the loss falls by 12% of its range (69 standard errors)",
    sources=("NeMo Megatron-Bridge issue 4565", "m4-logs tr-190-80b chronicles"),
)
LR_JUMP = Rule(
    id="SD106",
    name="learning-rate-jump",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("lr",),
    what="The learning rate rose by a factor between two logged points, outside a warm-up.",
    why_bad="In the labelled runs every learning-rate jump was followed by a spike one step later.",
    advice="Check the scheduler (warm restart, wrong unit, edited configuration).",
    thresholds=(
        Threshold(
            "min_ratio", 1.65, "times", "12 of 12 labelled jumps pass, none of the other causes."
        ),
        Threshold("max_points", 4, "logged points before the onset", "the loss follows 1-4 later"),
    ),
    example="the learning rate rose 3 times to 0.0009 at step 100",
    sources=("labelled fault-injection runs, section 3 of the measurements",),
)
SCHEDULE_RESET = Rule(
    id="SD107",
    name="schedule-reset-at-restart",
    workflow_step=1,
    severity=Severity.ERROR,
    needs=("lr",),
    what="At a restart the learning rate leaves its schedule: it falls back to a warm-up, or rises "
    "where it had been falling.",
    why_bad="The scheduler state was not restored; the trouble may show only when the rate passes "
    "its old value, a thousand steps later.",
    advice="Save and load the scheduler with the checkpoint, then resume from before this restart.",
    thresholds=(
        Threshold(
            "min_change", 0.2, "share of the rate before", "schedules move by far less a point"
        ),
    ),
    example="at step 90 the learning rate falls back and climbs again (0.000457 to 2.5e-05): its "
    "schedule was not restored",
    sources=("m4-logs tr-190-80b (exp9, exp10)", "OneTrainer issue 1604"),
)
PLATEAU = Rule(
    id="SD108",
    name="loss-plateau",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The loss hardly moved over the whole run, or sits at ln(vocabulary).",
    why_bad="Nothing is being learned: labels, gradients or the learning rate don't reach the model.",
    advice="Overfit one batch; check the labels, requires_grad, the learning rate and the gradient "
    "norms of the first layers.",
    thresholds=(
        Threshold(
            "max_gain", 0.1, "share of the first level", "healthy runs of any length pass 0.3"
        ),
        Threshold("min_points", 100, "logged points", "shorter runs may still be in warm-up"),
        Threshold("uniform_tolerance", 0.01, "share of ln(V)", "INCIDENTS: within 1 %"),
    ),
    example="the loss gained only 0.0% over 160 points (5.544 to 5.543); it sits at ln(256), a "
    "uniform guess",
    sources=("Glorot and Bengio (2010)", "reported incidents I12, I13"),
)
RECURRENT = Rule(
    id="SD109",
    name="recurrent-spikes",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The loss spiked again and again over the run.",
    why_bad="A single bad batch does not recur; an optimizer at the edge of stability does.",
    advice="Lower the peak learning rate or Adam's beta2, lengthen the warm-up.",
    thresholds=(Threshold("min_spikes", 3, "spikes", "project choice"),),
    example="the loss spiked 3 times, first at step 60, last at 130",
    sources=("Wortsman et al. (2023), stable and low-precision training",),
)
SILENT = Rule(
    id="SD110",
    name="series-falls-silent",
    workflow_step=1,
    severity=Severity.ERROR,
    needs=("loss",),
    what="A series stopped being logged while others went on.",
    why_bad="Several loggers drop a NaN: silence of the loss is how NaN looks there.",
    advice="Look at the raw log around this step; log non-finite values as they are.",
    thresholds=(),
    example="loss is no longer logged from step 100 while others go on",
    sources=("Megatron-LM console format", "AlgoPerf measurements format"),
)
GRAD_GROWTH = Rule(
    id="SD111",
    name="grad-norm-growth",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("grad_norm",),
    what="The gradient norm rose many times above its lowest level and stayed there to the end.",
    why_bad="Unlike a lone spike this does not pass: the loss may follow, or the loss scale.",
    advice="Find the layer that grows (`stabdiag layers`); lower the rate or restart before it.",
    thresholds=(
        Threshold("min_ratio", 30.0, "times", "healthy runs end within 10 times of their lowest"),
    ),
    example="the grad norm grew 1.15e+04 times from step 72 on and stayed there",
    sources=("AlgoPerf deepspeech logs: 1.5 to 1e17", "labelled fault-injection runs"),
)
EXACT_RATIO = Rule(
    id="SD112",
    name="exact-multiple",
    workflow_step=1,
    severity=Severity.WARNING,
    needs=("loss",),
    what="From one point on the loss is an exact multiple of what it was, with the same relative "
    "noise.",
    why_bad="The logged value is normalised otherwise (accumulated batches, devices): the course "
    "did not change, but levels before and after can't be compared.",
    advice="Compare the number of accumulated batches and devices before and after; divide.",
    example="from step 220 on the loss is 8.0 times what it was, the grad norm 8.12: another "
    "normalisation (accumulation, number of devices), not another course",
    sources=("reported incidents I22, I23",),
)
LOGIT_GROWTH = Rule(
    id="SD113",
    name="logit-growth",
    workflow_step=4,
    severity=Severity.WARNING,
    needs=("attn_logit_max",),
    what="The largest attention logit grew many times over.",
    why_bad="Softmax saturates, gradients of queries and keys die or explode: attention entropy "
    "collapse.",
    advice="Normalise queries and keys (QK-norm), or lower their learning rate.",
    thresholds=(
        Threshold(
            "min_logit", 200.0, "largest logit", "healthy runs stay under 70, faults pass 2000"
        ),
    ),
    example="attn_logit_max grew from 23 to 343",
    sources=("Wortsman et al. (2024)", "Dehghani et al. (2023)"),
)

RULES = (
    LOSS_SPIKE,
    GRAD_SPIKE,
    DIVERGENCE,
    LEVEL_SHIFT,
    RESUME_CHANGE,
    LR_JUMP,
    SCHEDULE_RESET,
    PLATEAU,
    RECURRENT,
    SILENT,
    GRAD_GROWTH,
    EXACT_RATIO,
    LOGIT_GROWTH,
)
