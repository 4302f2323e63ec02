"""Runs that users asked about and that are healthy."""

from __future__ import annotations

import math

import numpy as np

from tests.incidents.formats import Column, csv, jsonl, megatron, trainer_state
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, linear, norms, to_bfloat16

NAN = math.nan
FAULTS = ("optimizer", "data", "overflow", "initialization", "state_corruption", "weight_decay",
          "architecture", "vanishing")  # fmt: skip


def healthy(
    file: str, source: str, text: str, reason: str, *, also: tuple[str, ...] = ()
) -> Incident:
    """Return the incident that is none: any fault named is refuted, a spike must not be told."""
    return Incident(
        file,
        source,
        text,
        cause="healthy",
        acceptable=also,
        wrong=tuple(f for f in FAULTS if f not in also),
        health="healthy",
        reason=reason,
        must_not=("report a loss spike", "call the run diverged"),
    )


def memorisation_steps() -> Incident:
    file = "sft_three_epochs_steps.json"
    rng = dice(file)
    n = 360  # 120 records an epoch
    i = np.arange(n)
    loss = np.choose(i // 120, (1.22, 0.84, 0.47)) - 0.05 * (i % 120) / 120
    loss = loss + 0.5 * np.exp(-i / 8.0) + jitter(rng, n, 0.035)
    columns: dict[str, Column] = {
        "step": (i + 1) * 5, "loss": loss,
        "grad_norm": norms(rng, n, 0.8 + 0.4 * (i // 120), 0.2),
        "learning_rate": linear(n, 2e-5, warm=10),
    }  # fmt: skip
    return healthy(
        file,
        "fast.ai 'Can LLMs learn from a single example?' and many issues: steps at each epoch",
        trainer_state(columns, per_epoch=600, eval_loss={600: 1.16, 1200: 1.21, 1800: 1.47}),
        "The loss drops at each epoch boundary because the samples were seen: memorisation.",
    )


def validation_overfits() -> Incident:
    file = "many_epochs_validation_rises.csv"
    rng = dice(file)
    n = 60
    i = np.arange(n)
    columns: dict[str, Column] = {
        "epoch": i,
        "loss": 2.1 * np.exp(-i / 14.0) + 0.05 + jitter(rng, n, 0.01),
        "val_loss": 1.9 * np.exp(-i / 6.0) + 0.62 + 0.011 * i + jitter(rng, n, 0.02),
        "accuracy": 1.0 - 0.8 * np.exp(-i / 14.0),
        "lr": np.full(n, 1e-3),
    }
    return healthy(
        file,
        "keras: validation loss rises, training loss falls",
        csv(columns),
        "The training is stable; the model overfits.",
        also=("inconclusive",),
    )


def warmup_transient() -> Incident:
    file = "warmup_transient.log"
    rng = dice(file)
    n = 500
    loss = falling(n, 10.9, 3.3, speed=4.0) + jitter(rng, n, 0.04) + bump(n, 9, 0.9, rise=3, life=6)
    i = np.arange(n)
    grad = norms(rng, n, 0.5 + 14.0 * np.exp(-i / 7.0), 0.2) * (1 + bump(n, 9, 2.0, rise=2, life=4))
    columns: dict[str, Column] = {
        "step": i + 1, "lm loss": loss, "grad norm": grad,
        "lr": cosine(n, 1e-3, warm=100), "loss scale": np.ones(n),
    }  # fmt: skip
    return healthy(
        file,
        "Megatron-LM: hump of the loss in the first ten iterations",
        megatron(columns, total=5000, batch=512),
        "A transient in the first steps of the warm-up passes by itself.",
    )


def heavy_tailed_finetune() -> Incident:
    file = "qlora_batch_one.json"
    rng = dice(file)
    n = 900
    loss = np.exp(rng.normal(-0.45, 0.55, n)) * (0.75 + 0.25 * np.exp(-np.arange(n) / 60.0))
    grad = norms(rng, n, 0.55, 0.55) * np.where(rng.random(n) < 0.01, 6.0, 1.0)
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1), "loss": np.clip(loss, 0.08, 3.2), "grad_norm": grad,
        "learning_rate": cosine(n, 2e-4, warm=27, floor=0.0),
    }  # fmt: skip
    return healthy(
        file,
        "unsloth, axolotl: loss of batch size 1 jumps between 0.1 and 2",
        trainer_state(columns, per_epoch=900, eval_loss={900: 0.71}),
        "Each record is one sample; samples differ.",
    )


def lora_blips() -> Incident:
    file = "lora_grad_blips.jsonl"
    rng = dice(file)
    n = 700
    grad = norms(rng, n, 0.3, 0.2)
    for at, times in ((63, 14.0), (198, 40.0), (377, 9.0), (611, 90.0)):
        grad[at] *= times
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": falling(n, 1.9, 1.1) + jitter(rng, n, 0.06, tail=0.3),
        "grad_norm": grad, "lr": cosine(n, 1e-4, warm=20),
    }  # fmt: skip
    return healthy(
        file,
        "peft, unsloth: grad norm 27 once, loss as usual",
        jsonl(columns),
        "Four lone grad-norm blips are clipped and leave the loss where it was.",
    )


def dpo() -> Incident:
    file = "dpo_loss_near_zero.json"
    rng = dice(file)
    n = 400
    i = np.arange(n)
    level = 0.693 * np.exp(-i / 45.0) + 0.03
    margin = 9.0 * (1 - np.exp(-i / 80.0)) + jitter(rng, n, 0.8)
    columns: dict[str, Column] = {
        "step": i + 1,
        "loss": level * np.exp(jitter(rng, n, 0.7) * np.minimum(1.0, i / 40.0)),
        "grad_norm": norms(rng, n, 20.0 * level / 0.7 + 1.0, 0.7),
        "learning_rate": linear(n, 5e-7, warm=40),
        "rewards/chosen": margin * 0.2,
        "rewards/rejected": -margin * 0.8,
        "rewards/margins": margin,
        "rewards/accuracies": np.minimum(1.0, 0.5 + i / 150.0),
    }
    return healthy(
        file,
        "trl DPO: loss from ln 2 to near 0 with scattered records",
        trainer_state(columns, per_epoch=200, eval_loss={}),
        "0.693 is the start of DPO; records near 0 scatter by a factor.",
    )


def grpo() -> Incident:
    file = "grpo_loss_around_zero.jsonl"
    rng = dice(file)
    n = 500
    i = np.arange(n)
    columns: dict[str, Column] = {
        "step": i + 1,
        "loss": 0.04 * (i / n) * 0.3 + jitter(rng, n, 0.02, tail=0.4),
        "grad_norm": norms(rng, n, 0.25, 0.35),
        "learning_rate": linear(n, 1e-6, warm=25),
        "reward": 0.3 + 0.9 * (1 - np.exp(-i / 150.0)) + jitter(rng, n, 0.1),
        "kl": np.abs(0.0004 * i * np.exp(jitter(rng, n, 0.3))),
    }
    return healthy(
        file,
        "trl GRPO: loss starts at 0.0, is signed and rises with the KL term",
        jsonl(columns),
        "The loss of GRPO is 0 by construction at the start; reward is what improves.",
        also=("inconclusive",),
    )


def gan() -> Incident:
    file = "gan_two_losses.csv"
    rng = dice(file)
    n = 800
    walk = np.cumsum(jitter(rng, n, 0.02))
    columns: dict[str, Column] = {
        "iter": np.arange(n) * 50,
        "loss_G": 2.3 + 0.4 * np.sin(walk) + jitter(rng, n, 0.35, tail=0.3),
        "loss_D": 0.6 - 0.15 * np.sin(walk) + np.abs(jitter(rng, n, 0.12)),
        "lr": np.full(n, 2e-4),
    }
    return healthy(
        file,
        "pytorch-CycleGAN-and-pix2pix: generator and discriminator losses that do not fall",
        csv(columns),
        "The two losses balance each other; neither need fall.",
        also=("inconclusive",),
    )


def ppo() -> Incident:
    file = "sb3_ppo_progress.csv"
    rng = dice(file)
    n = 250
    i = np.arange(n)
    value = norms(rng, n, 40.0 * np.exp(-i / 60.0) + 6.0, 0.5)
    policy = jitter(rng, n, 0.006)
    columns: dict[str, Column] = {
        "time/total_timesteps": (i + 1) * 2048,
        "rollout/ep_rew_mean": 20.0 + 180.0 * (1 - np.exp(-i / 60.0)) + jitter(rng, n, 8.0),
        "train/approx_kl": np.abs(jitter(rng, n, 0.008)),
        "train/explained_variance": np.where(i < 2, NAN, np.minimum(0.95, i / 120.0)),
        "train/learning_rate": np.full(n, 3e-4),
        "train/loss": policy + 0.5 * value,
        "train/policy_gradient_loss": policy,
        "train/value_loss": value,
    }
    return healthy(
        file,
        "stable-baselines3: progress.csv of a run that learns",
        csv(columns),
        "Value losses scatter; explained_variance is nan at first by definition.",
        also=("inconclusive",),
    )


def quantised_loss() -> Incident:
    file = "bf16_rounded_loss.jsonl"
    rng = dice(file)
    n = 1000
    loss = to_bfloat16(falling(n, 7.5, 1.69, speed=12.0) + jitter(rng, n, 0.006))
    columns: dict[str, Column] = {
        "step": np.arange(n) * 25, "loss": loss, "grad_norm": norms(rng, n, 0.3, 0.15),
        "lr": cosine(n, 1e-4, warm=40),
    }  # fmt: skip
    return healthy(
        file,
        "huggingface/m4-logs: the loss is logged in bfloat16, steps of 1/128",
        jsonl(columns),
        "Most points are equal; the few that differ differ by one step of the rounding.",
    )


def scale_warms_down() -> Incident:
    file = "megatron_scale_search_at_start.log"
    rng = dice(file)
    n = 300
    i = np.arange(n)
    scale = np.where(
        i < 2, 2.0**24, np.where(i < 100, 2.0**17, np.where(i < 200, 2.0**18, 2.0**19))
    )
    skipped = np.where(i == 0, 9, np.where(i == 1, 6, np.where((i == 150) | (i == 250), 1, 0)))
    loss = falling(n, 9.6, 4.1, speed=8.0) + jitter(rng, n, 0.03)
    columns: dict[str, Column] = {
        "step": (i + 1) * 10, "lm loss": loss,
        "grad norm": norms(rng, n, 0.7 + 4.0 * np.exp(-i / 10.0), 0.15),
        "lr": cosine(n, 1.5e-4, warm=60, total=2000), "loss scale": scale,
        "skipped": skipped,
    }  # fmt: skip
    return healthy(
        file,
        "Megatron-LM: the scaler starts at 2^32 and skips its first iterations",
        megatron(columns, total=20000, batch=512),
        "The search for a loss scale at the start is normal.",
    )


LOGS = (
    memorisation_steps, validation_overfits, warmup_transient, heavy_tailed_finetune, lora_blips,
    dpo, grpo, gan, ppo, quantised_loss, scale_warms_down,
)  # fmt: skip
