"""Incidents of the update and of the architecture: spikes, growth, plateaus, divergence."""

from __future__ import annotations

import numpy as np

from tests.incidents.formats import Column, build_nanogpt, csv, jsonl, wandb_charts
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, norms

NOT_NUMERICAL = ("overflow", "state_corruption", "initialization", "vanishing", "weight_decay")


def irregular_spikes() -> Incident:
    file = "palm_like_irregular_spikes.csv"
    rng = dice(file)
    n = 2000  # one row in 50 steps
    loss = falling(n, 7.5, 1.9, speed=11.0) + jitter(rng, n, 0.012)
    grad = norms(rng, n, 0.35, 0.12)
    places = np.sort(rng.choice(np.arange(150, n - 50), 20, replace=False))
    for at in places.tolist():
        height = float(rng.uniform(0.25, 1.6))
        loss += bump(n, at, height, rise=2, life=float(rng.uniform(2, 9)))
        grad *= 1.0 + bump(n, at, 6.0 * height, rise=1, life=2.0)
    columns: dict[str, Column] = {
        "step": np.arange(n) * 50, "loss": loss, "grad_norm": grad,
        "lr": 1e-2 / np.sqrt(np.maximum(1.0, np.arange(n) / 200)),
    }  # fmt: skip
    return Incident(
        file,
        "PaLM (2022) section 5.1: about 20 spikes at irregular steps despite clipping",
        csv(columns),
        cause="optimizer",
        acceptable=("data", "inconclusive"),
        wrong=("none", *NOT_NUMERICAL),
        health="unstable",
        onset=int(places[0]) * 50,
        tolerance=10000,
        reason="Spikes come again and again, irregular in place and height; every one comes back.",
        must_not=("call the run diverged", "blame overflow"),
    )


def update_norm_outgrowth() -> Incident:
    file = "patch_embedding_update_norm.csv"
    rng = dice(file)
    n = 1500
    loss = falling(n, 7.6, 2.4, speed=8.0) + jitter(rng, n, 0.03)
    grad = norms(rng, n, 0.8, 0.15)
    update = norms(rng, n, 0.020, 0.06)
    for at, lead in ((420, 4), (777, 2), (1004, 7), (1290, 3)):
        update *= 1.0 + bump(n, at - lead, 2.6, rise=1, life=6.0)
        loss += bump(n, at, 0.9, rise=2, life=14.0)
        grad *= 1.0 + bump(n, at, 3.0, rise=1, life=6.0)
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "grad_norm": grad, "update_norm": update,
        "lr": cosine(n, 2e-3, warm=150),
    }  # fmt: skip
    return Incident(
        file,
        "Wortsman et al. 2304.13013: spikes 1-8 steps after the second moment is outgrown",
        csv(columns),
        cause="optimizer",
        acceptable=("inconclusive", "architecture"),
        wrong=("none", "data", *NOT_NUMERICAL),
        health="unstable",
        onset=420,
        tolerance=5,
        reason="The update norm triples 2 to 7 steps before each loss spike while the gradient is "
        "still usual.",
        must_not=("blame the data", "call the run diverged"),
    )


def beta2_spikes() -> Incident:
    file = "beta2_0999_spikes.jsonl"
    rng = dice(file)
    n = 1600  # one row in 5 steps
    loss = falling(n, 10.4, 2.5, speed=11.0) + jitter(rng, n, 0.02)
    grad = norms(rng, n, 0.4, 0.15)
    for at in (310, 402, 590, 655, 840, 1010, 1190, 1450):
        loss += bump(n, at, float(rng.uniform(0.5, 2.0)), rise=3, life=16.0)
        grad *= 1.0 + bump(n, at, 8.0, rise=1, life=8.0)
    columns: dict[str, Column] = {
        "step": np.arange(n) * 5, "train/loss": loss, "train/grad_norm": grad,
        "train/learning_rate": cosine(n, 3e-4, warm=100),
    }  # fmt: skip
    return Incident(
        file,
        "AI-Hypercomputer/maxtext#17: spikes with beta2 0.999, none with 0.95",
        jsonl(columns),
        cause="optimizer",
        acceptable=("inconclusive",),
        wrong=("none", *NOT_NUMERICAL),
        health="unstable",
        onset=1550,
        tolerance=20,
        reason="Eight spikes that each need 50-100 steps to come back: a bad batch does not recur, "
        "nor does it linger.",
        must_not=("call the run diverged", "blame overflow"),
    )


def plateau_after_spike() -> Incident:
    file = "nanogpt_plateau_after_spike.txt"
    rng = dice(file)
    n, at = 1100, 640
    loss = falling(n, 10.95, 3.3, speed=11.0) + jitter(rng, n, 0.05)
    loss[at:] = 7.45 - 0.3 * np.exp(-np.arange(n - at) / 9.0) * 3 + jitter(rng, n - at, 0.05)
    loss[at : at + 4] = (3.9, 5.2, 6.7, 8.1)
    grad = norms(rng, n, 0.45, 0.15)
    grad[at - 1 : at + 5] = (1.9, 6.1, 14.8, 21.0, 9.0, 4.0)
    grad[at + 5 :] = norms(rng, n - at - 5, 0.13, 0.3)
    columns: dict[str, Column] = {
        "step": np.arange(n),
        "loss": loss,
        "lr": cosine(n, 1.8e-3, warm=60),
        "norm": grad,
    }
    return Incident(
        file,
        "karpathy/nanoGPT, build-nanogpt: loss stays near 7.5 after a spike (rate too high)",
        build_nanogpt(columns),
        cause="optimizer",
        acceptable=("inconclusive", "architecture"),
        wrong=("none", "overflow", "initialization", "weight_decay"),
        health="diverged",
        onset=at,
        tolerance=2,
        reason="After the spike the loss stays at the unigram level with small gradients: the "
        "model fell back to a dead state and does not return.",
        must_not=("call the run healthy",),
    )


def slow_rise_in_decay() -> Incident:
    file = "slow_rise_in_lr_decay.csv"
    rng = dice(file)
    n, turn = 900, 540  # one row in 100 steps
    i = np.arange(n)
    late = np.maximum(0, i - turn) / (n - turn)
    parts = [f"model.layers.{k}.mlp.down_proj.weight" for k in (0, 7, 15, 23)]
    parts += ["model.embed_tokens.weight", "model.norm.weight"]
    layers = {
        f"param_norm/{p}": size * (1 + 0.25 * i / n) + jitter(rng, n, 0.002 * size)
        for p, size in zip(parts, (41.0, 44.0, 46.0, 49.0, 88.0, 31.0), strict=True)
    }
    layers[f"param_norm/{parts[-1]}"] *= np.exp(2.2 * late)
    columns: dict[str, Column] = {
        "step": i * 100,
        "loss": falling(n, 7.0, 2.35, speed=10.0) + 0.16 * late**1.3 + jitter(rng, n, 0.012),
        "grad_norm": norms(rng, n, 0.3 * (1 + 0.5 * late), 0.12),
        "lr": cosine(n, 3e-4, warm=20),
        **layers,
    }
    return Incident(
        file,
        "reported twice: loss rises slowly during the decay, one norm weight grows on",
        csv(columns),
        cause="weight_decay",
        acceptable=("optimizer", "architecture", "inconclusive"),
        wrong=("none", "overflow", "initialization", "data", "vanishing"),
        health="unstable",
        onset=turn * 100,
        tolerance=12000,
        layer=parts[-1],
        reason="From step 54000 on the final norm's weight grows ninefold while all others keep "
        "their course, and the loss creeps up although the rate falls.",
        must_not=("report a loss spike", "blame the data"),
    )


def norm_decays_away() -> Incident:
    file = "one_norm_decays_to_zero.jsonl"
    rng = dice(file)
    n = 800  # one row in 20 steps
    i = np.arange(n)
    parts = [f"h.{k}.ln_2.weight" for k in range(6)]
    layers = {f"param_norm/{p}": 27.0 * (1 - 0.1 * i / n) + jitter(rng, n, 0.03) for p in parts}
    layers["param_norm/h.3.ln_2.weight"] = 27.0 * np.exp(-i / 160.0) + 0.01
    late = np.maximum(0.0, i - 250) / (n - 250)
    columns: dict[str, Column] = {
        "step": i * 20,
        "loss": falling(n, 9.8, 3.0, speed=9.0) + 0.35 * late + jitter(rng, n, 0.02),
        "grad_norm": norms(rng, n, 0.5, 0.15),
        "lr": np.full(n, 3e-4),
        **layers,
    }
    return Incident(
        file,
        "bigscience tr11 and others: a layer-norm weight decays away",
        jsonl(columns),
        cause="weight_decay",
        acceptable=("architecture", "optimizer", "initialization", "inconclusive", "vanishing"),
        wrong=("none", "overflow", "data"),
        health="unstable",
        onset=0,
        tolerance=8000,
        layer="h.3.ln_2.weight",
        reason="One of six norm weights shrinks exponentially to a hundredth, and the loss rises.",
        must_not=("report a loss spike",),
    )


def feedback_in_code() -> Incident:
    file = "grokfast_geometric_growth.csv"
    rng = dice(file)
    n = 60
    i = np.arange(n)
    grad = np.minimum(2.1 * 1.5 ** np.maximum(0, i - 2), 1e300) * np.exp(
        0.002 * jitter(rng, n, 1.0)
    )
    loss = 11.7 - 0.6 * (1 - np.exp(-i / 30)) + jitter(rng, n, 0.03)
    columns: dict[str, Column] = {
        "step": i,
        "loss": loss,
        "grad_norm": grad,
        "lr": np.full(n, 1e-4),
    }
    return Incident(
        file,
        "ironjr/grokfast#9: grad norm times 1.5 each record, loss 11.7 to 11.1",
        csv(columns),
        cause="optimizer",
        acceptable=("architecture", "inconclusive", "overflow", "logging_artifact"),
        wrong=("none", "data", "weight_decay", "vanishing"),
        health="unstable",
        onset=2,
        tolerance=20,
        reason="Exactly geometric growth over 57 records is a feedback in the code: a filter that "
        "adds its own output.",
        must_not=("blame the data", "call the run healthy"),
    )


def attention_logits() -> Incident:
    file = "vit_attention_logit_growth.csv"
    rng = dice(file)
    n, turn = 1200, 900
    i = np.arange(n)
    logit = 12.0 * np.exp(i / 145.0) * np.exp(jitter(rng, n, 0.03))
    late = np.maximum(0, i - turn)
    loss = falling(n, 6.9, 2.6, speed=7.0) + jitter(rng, n, 0.03)
    loss += np.minimum(3.6, 0.0009 * late**1.6)
    columns: dict[str, Column] = {
        "step": i,
        "loss": loss,
        "grad_norm": norms(rng, n, 0.9 * (1 + 0.02 * late), 0.2),
        "max_attn_logit": np.minimum(logit, 5.1e4),
        "lr": cosine(n, 1e-3, warm=100),
    }
    return Incident(
        file,
        "Wortsman et al. 2309.14322: attention logits grow, then divergence",
        csv(columns),
        cause="architecture",
        acceptable=("optimizer", "inconclusive", "overflow"),
        wrong=("none", "data", "state_corruption", "initialization", "weight_decay", "vanishing"),
        health="diverged",
        onset=930,
        tolerance=60,
        reason="The largest attention logit grows exponentially from 12 past 5000 before the loss "
        "leaves: softmax saturates; QK-norm is the remedy.",
        must_not=("blame the data", "call the run healthy"),
    )


def kernel_bug() -> Incident:
    file = "tts_loss_two_to_seven.csv"
    rng = dice(file)
    n, at = 1000, 520  # one row in 100 updates
    loss = falling(n, 6.8, 1.95, speed=9.0) + jitter(rng, n, 0.05)
    climb = np.minimum(1.0, np.maximum(0, np.arange(n) - at + 1) / 4)
    loss += climb * (7.0 - loss) + climb * jitter(rng, n, 0.05)
    columns: dict[str, Column] = {
        "step": np.arange(n) * 100,
        "loss": loss,
        "lr": cosine(n, 7.5e-5, warm=60),
    }
    return Incident(
        file,
        "SWivid/F5-TTS#1217: loss 2 to 7 halfway; stable without the fused kernel",
        csv(columns),
        cause="inconclusive",
        acceptable=("optimizer", "architecture", "overflow", "state_corruption", "data"),
        wrong=("none", "initialization", "weight_decay", "vanishing"),
        health="diverged",
        onset=at * 100,
        tolerance=200,
        reason="The loss alone is logged: it jumps to its first level and stays. Only a resume "
        "with one change could tell.",
        must_not=("call the run healthy",),
    )


def stuck_at_uniform() -> Incident:
    file = "gpt_stuck_at_ln_vocabulary.txt"
    rng = dice(file)
    n = 600
    loss = np.log(50257) + 0.05 * np.exp(-np.arange(n) / 20) + jitter(rng, n, 0.004)
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "lr": cosine(n, 6e-4, warm=60),
        "norm": norms(rng, n, 0.02, 0.1),
    }  # fmt: skip
    return Incident(
        file,
        "karpathy/nanoGPT, minGPT: loss 10.82 for ever",
        build_nanogpt(columns),
        cause="initialization",
        acceptable=("vanishing", "architecture", "optimizer", "inconclusive", "logging_artifact",
                    "data"),
        wrong=("none", "overflow", "state_corruption", "weight_decay"),
        health="unstable",
        onset=0,
        tolerance=20,
        reason="The loss sits at ln(50257) = 10.825 for 600 steps at a usual rate: nothing is "
        "learnt.",
        must_not=("call the run healthy", "report a loss spike"),
    )  # fmt: skip


def wrong_head() -> Incident:
    file = "finetune_first_loss_above_uniform.csv"
    rng = dice(file)
    n = 500
    loss = falling(n, 13.9, 6.3, speed=14.0) + jitter(rng, n, 0.12)
    columns: dict[str, Column] = {
        "Step": np.arange(1, n + 1),
        "train/loss": loss,
        "train/grad_norm": norms(rng, n, 8.0 + 90.0 * np.exp(-np.arange(n) / 9), 0.2),
        "train/learning_rate": cosine(n, 2e-5, warm=15, floor=0.0),
    }
    return Incident(
        file,
        "axolotl, transformers: first loss of a fine-tune above ln(V): head not loaded",
        wandb_charts(columns, "llama-sft-lr2e-5.v3"),
        cause="initialization",
        acceptable=("state_corruption", "data", "architecture", "inconclusive"),
        wrong=("none", "overflow", "optimizer", "weight_decay", "vanishing"),
        health="unstable",
        onset=1,
        tolerance=5,
        reason="A pretrained model starts at 13.9, worse than any uniform guess (ln 256k = 12.4), "
        "with gradients that fall from 100 to 8.",
        must_not=("report a loss spike", "blame the learning rate"),
    )


def damaged_embedding() -> Incident:
    file = "embedding_rows_damaged.csv"
    rng = dice(file)
    n = 400
    parts = ["model.embed_tokens.weight", "lm_head.weight"]
    parts += [f"model.layers.{k}.{p}.weight" for k in range(0, 32, 6)
              for p in ("self_attn.o_proj", "mlp.down_proj")]  # fmt: skip
    layers = {}
    for part in parts:
        level = 22.1 if part == parts[0] else 0.9 if part == parts[1] else 0.25
        layers[f"grad_norm/{part}"] = norms(rng, n, level, 0.12)
    total = np.sqrt(np.sum([v**2 for v in layers.values()], axis=0))
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": 1.62 - 0.05 * np.arange(n) / n + jitter(rng, n, 0.03),
        "grad_norm": total, "lr": cosine(n, 1e-5, warm=10), **layers,
    }  # fmt: skip
    return Incident(
        file,
        "NVIDIA-NeMo/Automodel#3136: 79 embedding rows of norm 0, grad norm 22.3 (2.9 repaired)",
        csv(columns),
        cause="initialization",
        acceptable=("architecture", "state_corruption", "inconclusive"),
        wrong=("overflow", "data", "weight_decay", "vanishing"),
        health="unstable",
        layer=parts[0],
        reason="The embedding's gradient is 90 times that of every block from the first step to "
        "the last: clipping at 1.0 leaves a twentieth of the rate for the rest.",
        must_not=("call the run diverged", "report a loss spike"),
    )


LOGS = (
    irregular_spikes, update_norm_outgrowth, beta2_spikes, plateau_after_spike, slow_rise_in_decay,
    norm_decays_away, feedback_in_code, attention_logits, kernel_bug, stuck_at_uniform, wrong_head,
    damaged_embedding,
)  # fmt: skip
