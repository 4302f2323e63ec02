"""Incidents of the data, and of how a gradient norm is logged."""

from __future__ import annotations

import math

import numpy as np

from tests.incidents.formats import Column, csv, jsonl, trainer_state, wandb_charts
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, linear, norms

NAN = math.nan
ANY_FAULT = ("optimizer", "data", "overflow", "initialization", "state_corruption", "weight_decay",
             "architecture", "vanishing")  # fmt: skip


def no_labels_at_all() -> Incident:
    file = "sft_all_labels_masked.json"
    n = 120
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 5,
        "loss": np.zeros(n),
        "grad_norm": np.zeros(n),
        "learning_rate": linear(n, 2e-4, warm=5),
    }
    return Incident(
        file,
        "trl#1053, unsloth: loss 0.0 and grad_norm 0.0 throughout: every label is -100",
        trainer_state(columns, per_epoch=300, eval_loss={300: NAN, 600: NAN}),
        cause="data",
        acceptable=("logging_artifact", "inconclusive"),
        wrong=("none", "optimizer", "overflow", "weight_decay", "state_corruption"),
        health="unstable",
        onset=5,
        tolerance=5,
        reason="Loss and gradient are exactly 0 from the first record with a rate that is not: no "
        "target is left in any batch.",
        must_not=("read the zeros as an improvement", "call the run healthy"),
    )


def bad_shard_each_epoch() -> Incident:
    file = "bad_shard_once_an_epoch.csv"
    rng = dice(file)
    n, period = 2000, 480
    loss = falling(n, 5.2, 2.4, speed=8.0) + jitter(rng, n, 0.04)
    grad = norms(rng, n, 0.8, 0.15)
    for at in range(207, n, period):
        loss[at : at + 3] += (2.1, 2.4, 2.0)
        grad[at : at + 3] *= 4.5
    columns: dict[str, Column] = {
        "step": np.arange(n), "epoch": np.arange(n) / period, "loss": loss,
        "grad_norm": grad, "lr": cosine(n, 2e-4, warm=50),
    }  # fmt: skip
    return Incident(
        file,
        "levanter#391 and others: the same broken shard comes once an epoch",
        csv(columns),
        cause="data",
        acceptable=("inconclusive",),
        wrong=(
            "none",
            "overflow",
            "initialization",
            "state_corruption",
            "weight_decay",
            "vanishing",
        ),
        health="unstable",
        onset=207,
        tolerance=1,
        reason="Every 480 steps, one epoch, three steps of one height; the loss is back at once.",
        must_not=("call the run diverged", "blame overflow"),
    )


def correlated_order() -> Incident:
    file = "cooldown_shuffle_phase_shift.jsonl"
    rng = dice(file)
    n, at = 1000, 760  # one row in 250 steps
    loss = falling(n, 4.0, 2.1, speed=10.0) + jitter(rng, n, 0.008)
    loss[at:] += 0.11 + 0.03 * np.sin(np.arange(n - at) / 9.0)
    held_out = falling(n, 4.02, 2.12, speed=10.0) + jitter(rng, n, 0.002)
    val = [float(v) if k % 20 == 19 else None for k, v in enumerate(held_out)]
    columns: dict[str, Column] = {
        "step": np.arange(n) * 250, "train/loss": loss, "eval/loss": val,
        "grad_norm": norms(rng, n, 0.2, 0.1), "lr": cosine(n, 7e-4, warm=20),
    }  # fmt: skip
    return Incident(
        file,
        "marin 32B: training loss shifts phase near 190k, validation flat: shuffle",
        jsonl(columns),
        cause="data",
        acceptable=("healthy", "inconclusive"),
        wrong=("optimizer", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=at * 250,
        tolerance=2500,
        reason="The training loss steps up while the validation loss keeps falling: other data, "
        "not another model.",
        must_not=("call the run diverged", "blame the learning rate"),
    )


def sequence_length_curriculum() -> Incident:
    file = "sequence_length_curriculum.csv"
    rng = dice(file)
    n = 1500
    i = np.arange(n)
    length = 256 * 2 ** np.digitize(i, (400, 800, 1150))
    loss = falling(n, 9.0, 2.7, speed=9.0) + jitter(rng, n, 0.03)
    grad = norms(rng, n, 0.7, 0.12)
    for at in (400, 800, 1150):
        loss += bump(n, at, 0.45, life=35.0)
        grad *= 1.0 + bump(n, at, 0.8, life=30.0)
    columns: dict[str, Column] = {
        "step": i, "loss": loss, "grad_norm": grad, "seq_len": length,
        "lr": cosine(n, 4e-4, warm=60),
    }  # fmt: skip
    return Incident(
        file,
        "Li et al. (2022) and bigscience: the loss steps up when the sequences get longer",
        csv(columns),
        cause="data",
        acceptable=("healthy", "inconclusive"),
        wrong=("overflow", "initialization", "weight_decay", "vanishing", "state_corruption"),
        health="unstable",
        onset=400,
        tolerance=5,
        reason="Each step up of the loss comes exactly when the logged sequence length doubles.",
        must_not=("call the run diverged", "blame overflow"),
    )


def norm_zero_loss_moves() -> Incident:
    file = "deepspeed_grad_norm_zero.json"
    rng = dice(file)
    n = 300
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": falling(n, 2.4, 1.1) + jitter(rng, n, 0.03),
        "grad_norm": np.zeros(n),
        "learning_rate": cosine(n, 1e-5, warm=9, floor=0.0),
    }
    return Incident(
        file,
        "huggingface/transformers, deepspeed: grad_norm 0.0 in every record, loss falls",
        trainer_state(columns, per_epoch=1000, eval_loss={1000: 1.31, 2000: 1.22, 3000: 1.2}),
        cause="logging_artifact",
        acceptable=("healthy",),
        wrong=ANY_FAULT,
        health="healthy",
        reason="The loss moves, so the gradient is not 0: the norm is not read from the engine.",
        must_not=("report vanishing gradients", "call the run diverged"),
    )


def norm_at_the_clip_value() -> Incident:
    file = "grad_norm_logged_after_clipping.csv"
    rng = dice(file)
    n = 1000
    columns: dict[str, Column] = {
        "Step": np.arange(n) * 10,
        "train/loss": falling(n, 10.2, 3.0, speed=9.0) + jitter(rng, n, 0.04),
        "train/grad_norm": np.minimum(1.0, norms(rng, n, 1.6, 0.25)),
        "train/lr": cosine(n, 6e-4, warm=40),
    }
    return Incident(
        file,
        "verl#2282 and others: grad_norm is constant at the clip value",
        wandb_charts(columns, "gpt2-124M"),
        cause="logging_artifact",
        acceptable=("healthy",),
        wrong=ANY_FAULT,
        health="healthy",
        reason="The norm is logged after clipping; the loss is fine.",
        must_not=("call the run diverged", "report a loss spike"),
    )


def norm_far_above_clip() -> Incident:
    file = "grad_norm_far_above_clip.jsonl"
    rng = dice(file)
    n = 900
    columns: dict[str, Column] = {
        "iteration": np.arange(1, n + 1) * 10,
        "lm loss": falling(n, 3.1, 1.9) + jitter(rng, n, 0.03),
        "grad norm": np.clip(norms(rng, n, 480.0, 0.6), 100.0, 2500.0),
        "clip_grad": np.ones(n),
        "learning rate": cosine(n, 1e-5, warm=20),
    }
    return Incident(
        file,
        "alibaba/Pai-Megatron-Patch#579: grad norm 100-2500 for ever, loss fine, clip 1.0",
        jsonl(columns),
        cause="healthy",
        acceptable=("logging_artifact", "inconclusive", "optimizer"),
        wrong=(
            "data",
            "overflow",
            "initialization",
            "state_corruption",
            "weight_decay",
            "vanishing",
        ),
        health="healthy",
        reason="Each step is clipped by a factor of hundreds: the loss is fine, the norm is a sum "
        "over tokens.",
        must_not=("call the run diverged", "report a loss spike", "report vanishing gradients"),
    )


def few_points() -> Incident:
    file = "five_records.json"
    columns: dict[str, Column] = {
        "step": np.arange(1, 6) * 10,
        "loss": np.array([1.7312, 1.6920, 1.7045, 1.6533, 1.6681]),
        "grad_norm": np.array([0.71, 0.66, 0.83, 0.59, 0.64]),
        "learning_rate": linear(5, 2e-4),
    }
    return Incident(
        file,
        "many issues with five records pasted",
        trainer_state(columns, per_epoch=50, eval_loss={}),
        cause="inconclusive",
        acceptable=("healthy",),
        wrong=ANY_FAULT,
        health="inconclusive",
        reason="Five points are no baseline.",
        must_not=("call the run diverged", "report a loss spike"),
    )


def few_points_then_rise() -> Incident:
    file = "eight_records_rising.json"
    columns: dict[str, Column] = {
        "step": np.arange(1, 9) * 25,
        "loss": np.array([2.2145, 1.9874, 2.4531, 4.0122, 6.8843, 7.5210, 7.4431, 7.6120]),
        "grad_norm": np.array([3.1, 2.8, 9.7, 31.2, 18.4, 6.2, 4.4, 4.1]),
        "learning_rate": linear(8, 2e-3, warm=4),
    }
    return Incident(
        file,
        "many: a fine-tune with a rate of 2e-3 breaks in its first records",
        trainer_state(columns, per_epoch=400, eval_loss={200: 7.58}),
        cause="inconclusive",
        acceptable=("optimizer", "initialization", "architecture"),
        wrong=("none", "overflow", "state_corruption", "weight_decay", "vanishing"),
        health="diverged",
        onset=75,
        tolerance=25,
        reason="The loss leaves 2 for 7.5 while the rate warms up; eight points are too few to "
        "tell more.",
        must_not=("call the run healthy", "blame overflow"),
    )


LOGS = (
    no_labels_at_all, bad_shard_each_epoch, correlated_order, sequence_length_curriculum,
    norm_zero_loss_moves, norm_at_the_clip_value, norm_far_above_clip, few_points,
    few_points_then_rise,
)  # fmt: skip
