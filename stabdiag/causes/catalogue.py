"""One page a cause: what it means, how it is decided, what to do; printed by `explain`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CausePage:
    """What a cause means; `signs` are rows of the weight table that speak for it most."""

    cause: str
    what: str
    how_decided: str
    signs: tuple[str, ...]
    do_this: tuple[str, ...]
    sources: tuple[str, ...]


CAUSE_PAGES: tuple[CausePage, ...] = (
    CausePage(
        "optimizer",
        "The update was too large for the state that it met: learning rate, Adam's betas or "
        "epsilon, missing warm-up, a rate that jumped.",
        "A jump of the learning rate before the onset decides it. Without one: lone grad-norm "
        "blips or a rising grad norm ahead of the onset, spikes that recur, a loss that stays "
        "higher for some steps after the spike, weight norms that moved. A grad norm that rises "
        "some steps before the loss (the handbook's sign) counts, its absence does not: nine in "
        "ten optimizer faults show no lead.",
        ("lr_jump", "lone_blips", "grad_trend", "recurrent", "loss_lingers", "climb_to_nan"),
        (
            "Lower the peak learning rate, lengthen the warm-up, or set beta2 to 0.95.",
            "Restart from before the onset; replaying the same data shows that it is not the data.",
        ),
        ("Wortsman et al. (2023)", "Molybog et al. (2023)", "Wortsman et al. (2024)"),
    ),
    CausePage(
        "data",
        "One batch, or the data from a step on, differs from what the model saw: outliers, broken "
        "labels, empty targets, another domain, data seen before.",
        "A logged batch statistic far off at the onset decides it; so does a loss of exactly 0 "
        "with a grad norm of 0, or a lone NaN that heals at once. Without statistics: grad norm "
        "and loss rise at the same step in all layers, the parameter norm takes its usual step, "
        "and the loss is back on its course at once (one batch) or holds a new level (lasting).",
        ("batch_outlier", "zero_loss", "lone_nan", "clean_return", "new_level", "param_quiet"),
        (
            "Look at the batch of the onset; replay it on the checkpoint before: the same again "
            "means data.",
            "Skip or filter it; check shuffling, masking and the position of the sampler.",
        ),
        ("PaLM (2022) section 5.1", "reported incidents"),
    ),
    CausePage(
        "overflow",
        "A number left its range: Inf or NaN in activations, gradients or the loss, most often in "
        "float16, or an operation that has no finite gradient.",
        "A non-finite value with no climb of loss or grad norm before it, a loss scale that "
        "falls without coming back, maxima near 65504. Lone skipped steps of a loss scaler are "
        "normal and are not counted. A NaN at the end of a climb is the end of another trouble.",
        ("cold_nan", "scale_collapse", "near_fp16_limit", "bad_from_start"),
        (
            "Find the first non-finite tensor (anomaly detection on that batch).",
            "Train in bf16, or keep that layer in float32.",
        ),
        ("Micikevicius et al. (2018)", "transformers issues 5651, 14189"),
    ),
    CausePage(
        "initialization",
        "The run started from weights of the wrong scale; the first steps repair them instead of "
        "learning, or fail to.",
        "The first loss lies above a uniform guess, loss and grad norm fall steeply in the first "
        "50 steps, the parameter norm shrinks from the start, one weight starts far above the "
        "others.",
        ("initial_transient", "initial_loss_high", "initial_imbalance", "param_shrinks"),
        (
            "Re-run the first 1000 steps with another seed: the same again is systematic.",
            "Initialise the named weights smaller.",
        ),
        ("handbook step 5", "Glorot and Bengio (2010)"),
    ),
    CausePage(
        "weight_decay",
        "The weight decay is too small, too large or has the wrong sign: the parameters grow (or "
        "shrink) without end.",
        "The parameter norm keeps growing in the second half of the run, or grows exponentially, "
        "with no jump of the learning rate and no single layer behind it.",
        ("param_exponential", "param_keeps_growing", "param_falls"),
        ("Check the decay's value and sign, and which parameter groups it reaches.",),
        ("handbook, what to log",),
    ),
    CausePage(
        "architecture",
        "One part of the model is out of proportion: an input that is not normalised, attention "
        "logits that grow, a wrong scale, a wrong parameter group.",
        "One layer's gradient is consistently many times that of the same layer in other blocks, "
        "or its norm grows many times more than the others'. Embedding and head lead in healthy "
        "models, so they need far more.",
        ("dominant_layer", "layer_parts"),
        (
            "Reproduce it with the named part alone.",
            "Check its input scale, normalisation and parameter group.",
        ),
        ("handbook, layer-wise analysis", "Wortsman et al. (2024)"),
    ),
    CausePage(
        "state_corruption",
        "Weights, optimizer state, scheduler or generators are not what they should be: a flipped "
        "bit, a partial restore, wrong units.",
        "A weight norm jumps with no jump of the learning rate, the trouble begins at a restart, "
        "or the schedule is not where it was. An optimizer state that is simply lost leaves no "
        "trace in most logs.",
        ("schedule_reset", "rise_at_restart", "tensor_jump_few", "param_jump", "at_restart"),
        (
            "Compare the checkpoint with the state after loading it, tensor by tensor.",
            "Restart from an earlier checkpoint.",
        ),
        ("m4-logs chronicles", "torchtitan issues 1136, 1702"),
    ),
    CausePage(
        "vanishing",
        "The gradients don't reach the early layers: the loss sits on a plateau.",
        "The loss hardly moves over the whole run, and the gradients near the input are a tiny "
        "share of those near the loss.",
        ("plateau", "vanishing_depth"),
        ("Add normalisation or residual connections; check activation and initialization.",),
        ("Glorot and Bengio (2010)", "AutoTrainer (2021)"),
    ),
    CausePage(
        "none",
        "Nothing in the log speaks for a fault.",
        "No loss spike beyond what the run's own noise makes expected, no divergence, no lasting "
        "non-finite value, a parameter norm that grows as usual, a start as expected. The report "
        "lists the checks that were made and those that could not be.",
        (),
        ("Nothing; `stabdiag audit` says what the log could not show.",),
        (),
    ),
    CausePage(
        "inconclusive",
        "The log can't tell the cause.",
        "No cause reaches 40 %, or there are too few points. The report names the one or two "
        "metrics that would have settled it.",
        (),
        ("Log what is named under `settle`, and run again from the last good checkpoint.",),
        (),
    ),
)
