"""Healthy runs whose curves have steps, jumps or scatter for a good reason."""

from __future__ import annotations

import numpy as np

from tests.incidents.formats import Column, csv, jsonl, megatron, trainer_state
from tests.incidents.quiet import healthy
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, norms


def cyclic_rate() -> Incident:
    file = "sgdr_three_cycles.csv"
    rng = dice(file)
    period, n = 300, 900
    cycle = np.tile(cosine(period, 0.1, floor=0.001), 3)
    loss = falling(n, 4.6, 1.2) + 0.25 * cycle / 0.1 + jitter(rng, n, 0.05)
    columns: dict[str, Column] = {"step": np.arange(n) * 10, "loss": loss, "lr": cycle,
                                  "grad_norm": norms(rng, n, 1.1, 0.2)}  # fmt: skip
    return healthy(
        file,
        "timm, fastai: cosine with warm restarts",
        csv(columns),
        "The rate restarts twice by design, and the loss steps up a little each time.",
        also=("optimizer", "inconclusive"),
    )


def stable_then_decay() -> Incident:
    file = "wsd_cooldown.jsonl"
    rng = dice(file)
    n, turn = 1200, 1000
    late = np.maximum(0, np.arange(n) - turn) / (n - turn)
    loss = falling(n, 8.0, 2.5, speed=8.0) - 0.28 * np.sqrt(late) + jitter(rng, n, 0.015)
    columns: dict[str, Column] = {
        "step": np.arange(n) * 25,
        "train/loss": loss,
        "optim/total_grad_norm": norms(rng, n, 0.3 * (1 - 0.5 * late), 0.12),
        "optim/learning_rate_group0": np.where(
            np.arange(n) < 30, 4e-4 * (np.arange(n) + 1) / 30, 4e-4 * (1 - late)
        ),
    }
    return healthy(
        file,
        "MiniCPM, OLMo: warm-up, stable, decay",
        jsonl(columns),
        "The loss falls fast in the cooldown.",
    )


def batch_ramp() -> Incident:
    file = "megatron_batch_size_ramp.log"
    rng = dice(file)
    n = 500
    i = np.arange(n)
    size = 2.0 ** np.minimum(4, np.floor(i / 60))
    columns: dict[str, Column] = {
        "step": (i + 1) * 10,
        "lm loss": falling(n, 10.6, 3.0, speed=7.0) + jitter(rng, n, 0.09) / np.sqrt(size),
        "grad norm": norms(rng, n, 2.2 / np.sqrt(size), 0.15),
        "lr": cosine(n, 2e-4, warm=80, total=1500),
        "loss scale": np.ones(n),
    }
    return healthy(
        file,
        "Megatron-LM: --rampup-batch-size",
        megatron(columns, total=20000, batch=256),
        "The grad norm falls by the root of two whenever the batch doubles.",
    )


def two_sources() -> Incident:
    file = "two_sources_in_turn.jsonl"
    rng = dice(file)
    n = 900
    source = (rng.random(n) < 0.12).astype(np.float64)
    columns: dict[str, Column] = {
        "step": np.arange(n),
        "loss": falling(n, 2.2, 1.3) + 0.9 * source + jitter(rng, n, 0.06),
        "grad_norm": norms(rng, n, 0.7, 0.2) * (1 + 1.2 * source),
        "lr": cosine(n, 2e-5, warm=20),
    }
    return healthy(
        file,
        "many: code and chat batches in one run",
        jsonl(columns),
        "One step in eight comes from a harder source: a mixture, no event.",
    )


def diffusion() -> Incident:
    file = "diffusion_lora_scatter.csv"
    rng = dice(file)
    n = 1500
    loss = np.exp(rng.normal(-2.6, 0.75, n))
    columns: dict[str, Column] = {"step": np.arange(n), "train_loss": loss,
                                  "lr": np.full(n, 1e-4)}  # fmt: skip
    return healthy(
        file,
        "diffusers, kohya: the step loss scatters between 0.01 and 0.5 and does not fall",
        csv(columns),
        "The loss of one random timestep says little; nothing stands out of the scatter.",
        also=("inconclusive",),
    )


def validation_jump() -> Incident:
    file = "one_bad_validation.csv"
    rng = dice(file)
    n = 80
    val = falling(n, 1.9, 0.72) + jitter(rng, n, 0.02)
    val[41] += 3.4
    columns: dict[str, Column] = {"epoch": np.arange(n), "train_loss": falling(n, 1.8, 0.4) +
                                  jitter(rng, n, 0.01), "val_loss": val}  # fmt: skip
    return healthy(
        file,
        "keras, lightning: batch-norm statistics give one bad validation",
        csv(columns),
        "Only one evaluation is off; the training loss does not know of it.",
        also=("inconclusive",),
    )


def sparse_lightning() -> Incident:
    file = "lightning_metrics.csv"
    rng = dice(file)
    n, epochs = 400, 8
    rows: list[tuple[int, int, float | None, float | None]] = []
    train = falling(n, 2.3, 0.6) + jitter(rng, n, 0.08)
    for k in range(n):
        rows.append((k * epochs // n, k * 50 + 49, float(train[k]), None))
        if k % (n // epochs) == n // epochs - 1:
            held_out = float(train[k - 9 : k + 1].mean()) + 0.1
            rows.append((k * epochs // n, k * 50 + 49, None, held_out))
    columns: dict[str, Column] = {
        "epoch": [r[0] for r in rows],
        "step": [r[1] for r in rows],
        "train_loss_step": [r[2] for r in rows],
        "val_loss": [r[3] for r in rows],
    }
    return healthy(
        file,
        "lightning: sparse metrics.csv",
        csv(columns),
        "Validation rows leave the training cells empty; nothing is NaN.",
        also=("inconclusive",),
    )


def large_model_start() -> Incident:
    file = "large_model_first_norm_thirty.jsonl"
    rng = dice(file)
    n = 1000
    i = np.arange(n)
    columns: dict[str, Column] = {
        "step": i,
        "loss": 3.4 + 7.5 * np.exp(-i / 95.0) + 0.5 * np.exp(-i / 400.0) + jitter(rng, n, 0.04),
        "grad_norm": norms(rng, n, 0.4 + 6.0 * np.exp(-i / 60.0) + 24.0 * np.exp(-i / 9.0), 0.15),
        "lr": cosine(n, 6e-4, warm=200),
    }
    return healthy(
        file,
        "Megatron-LM, llm.c: grad norm 30 on the first step, 0.4 later",
        jsonl(columns),
        "A large first norm that decays in the warm-up is what large models show.",
    )


def fine_tune_two_records_high() -> Incident:
    file = "sft_first_records_high.json"
    rng = dice(file)
    n = 150
    loss = falling(n, 1.5, 0.95) + jitter(rng, n, 0.03) + bump(n, 0, 2.2, life=1.5)
    columns: dict[str, Column] = {
        "step": (np.arange(n) + 1) * 10,
        "loss": loss,
        "grad_norm": norms(rng, n, 0.9 + 11.0 * np.exp(-np.arange(n) / 2.0), 0.2),
        "learning_rate": cosine(n, 2e-4, warm=5, floor=0.0),
    }
    return healthy(
        file,
        "unsloth, llama-factory: new chat template, first records at 3.7",
        trainer_state(columns, per_epoch=500, eval_loss={500: 1.1, 1000: 1.0, 1500: 0.98}),
        "A new template is learnt within twenty steps.",
    )


LOGS = (
    cyclic_rate, stable_then_decay, batch_ramp, two_sources, diffusion, validation_jump,
    sparse_lightning, large_model_start, fine_tune_two_records_high,
)  # fmt: skip
