"""Incidents of numbers that stop being finite: fp16, NaN in one place first, hidden NaN."""

from __future__ import annotations

import math

import numpy as np

from tests.incidents.formats import Cell, Column, csv, fairseq, jsonl, megatron, trainer_state
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, linear, norms

NAN = math.nan


def filtered_nan() -> Incident:
    file = "sft_loss_zero_after_step_210.json"
    rng = dice(file)
    n, bad = 60, 20  # one record in ten steps
    loss = falling(n, 2.31, 1.18) + jitter(rng, n, 0.03)
    grad = norms(rng, n, 1.4, 0.2)
    loss[bad:], grad[bad:] = 0.0, NAN
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": loss,
        "grad_norm": grad,
        "learning_rate": linear(n, 2e-4, warm=3),
    }
    return Incident(
        file,
        "huggingface/transformers#28539, trl#1053: loss 0.0 with grad_norm nan from some step on",
        trainer_state(columns, per_epoch=300, eval_loss={300: NAN, 600: NAN}),
        cause="overflow",
        acceptable=("inconclusive", "data", "optimizer"),
        wrong=("none", "initialization", "state_corruption", "vanishing", "weight_decay"),
        health="diverged",
        onset=210,
        tolerance=10,
        reason="The trainer writes a NaN loss as 0.0; the grad norm is NaN from 210 to the end.",
        must_not=("read the zeros as an improvement", "call the run healthy"),
    )


def nan_from_first_record() -> Incident:
    file = "finetune_nan_from_first_record.json"
    n = 40
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1),
        "loss": np.zeros(n),
        "grad_norm": np.full(n, NAN),
        "learning_rate": linear(n, 5e-5, warm=4),
    }
    return Incident(
        file,
        "huggingface/transformers#30001, unsloth#427: grad_norm nan in every record",
        trainer_state(columns, per_epoch=40, eval_loss={40: NAN}),
        cause="overflow",
        acceptable=("inconclusive", "initialization", "data"),
        wrong=("none", "optimizer", "vanishing", "weight_decay"),
        health="diverged",
        onset=1,
        reason="Nothing was finite from the first record on; no step was ever made.",
        must_not=("read the zeros as an improvement", "call the run healthy"),
    )


def scale_falls_over_windows() -> Incident:
    file = "megatron_fp16_scale_falls.log"
    rng = dice(file)
    n, turn = 500, 380  # one line in ten iterations
    i = np.arange(n)
    late = np.maximum(0, i - turn)
    power = 17.0 - np.floor(i / 75) - np.floor(late / 10)
    loss = falling(n, 7.2, 2.86, speed=9.0) + jitter(rng, n, 0.02)
    loss += 0.00025 * np.maximum(0, late - 30) ** 2
    grad = norms(rng, n, 0.6 + 0.05 * late, 0.15)
    skipped = (rng.random(n) < 0.05 + 0.006 * late).astype(np.int64) + (late > 60)
    columns: dict[str, Column] = {
        "step": 10 * (i + 1),
        "lm loss": loss,
        "grad norm": grad,
        "lr": cosine(n, 6e-5, warm=50),
        "loss scale": 2.0 ** np.maximum(power, 0.0),
        "skipped": skipped,
    }
    return Incident(
        file,
        "bigscience tr8-104B chronicles; Megatron-LM: loss scale falls over weeks, then the loss",
        megatron(columns, total=300000, batch=2048),
        cause="overflow",
        acceptable=("optimizer", "inconclusive", "architecture"),
        wrong=("none", "data", "initialization", "state_corruption", "vanishing"),
        health="diverged",
        onset=3900,
        tolerance=400,
        reason="The loss scale falls in every window and collapses to 1 with more and more skipped "
        "iterations, while the grad norm grows tenfold; the loss follows 300 iterations later.",
        must_not=("blame the data",),
    )


def minimum_loss_scale() -> Incident:
    file = "fairseq_minimum_loss_scale.log"
    rng = dice(file)
    n = 160  # one line in 50 updates
    i = np.arange(n)
    late = np.maximum(0, i - 120)
    loss = falling(n, 14.35, 5.4, speed=8.0) + jitter(rng, n, 0.05)
    loss += 0.012 * np.maximum(0, late - 10)
    columns: dict[str, Column] = {
        "step": 50 * (i + 1),
        "loss": loss,
        "lr": linear(n, 5e-4, warm=80, total=800),
        "gnorm": norms(rng, n, falling(n, 4.0, 0.9) + 0.12 * late, 0.2),
        "loss_scale": np.maximum(2.0 ** (7 - np.floor(i / 40) - np.floor(late / 2)), 1e-4),
    }
    end = (
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. "
        "Try lowering the learning rate, using gradient clipping or increasing the batch size."
    )
    return Incident(
        file,
        "facebookresearch/fairseq#1529 and many more: minimum loss scale reached",
        fairseq(columns, last_line=end),
        cause="overflow",
        acceptable=("optimizer", "inconclusive"),
        wrong=("none", "data", "initialization", "state_corruption", "vanishing"),
        health="diverged",
        onset=6050,
        tolerance=500,
        reason="The loss scale halves every 100 updates to its floor, and the trainer gives up.",
        must_not=("call the run healthy",),
    )


def fp16_lone_skips() -> Incident:
    file = "gpt2_fp16_lone_skips.csv"
    rng = dice(file)
    n = 1600
    i = np.arange(n)
    grad = norms(rng, n, 0.5 + 1.5 * np.exp(-i / 100))
    scale = np.full(n, 65536.0)
    skipped = np.zeros(n, dtype=np.int64)
    for at in (0, 1, 402, 811, 1219):
        grad[at], skipped[at] = math.inf, 1
    for first, value in ((1, 32768.0), (2, 16384.0), (402, 32768.0), (403, 16384.0)):
        scale[first:] = value
    for at in (811, 1219):
        scale[at] = 32768.0
    lr = cosine(n, 3e-4, warm=100)
    for at in (402, 811, 1219):
        lr[at + 1 :] = np.concatenate(([lr[at]], lr[at + 1 : -1]))
    columns: dict[str, Column] = {
        "step": i,
        "train_loss": falling(n, 10.9, 3.4, speed=9.0) + jitter(rng, n, 0.05),
        "grad_norm": grad,
        "lr": lr,
        "loss_scale": scale,
        "skipped": skipped,
    }
    return Incident(
        file,
        "many: isolated inf grad norms under mixed precision, loss fine",
        csv(columns),
        cause="healthy",
        wrong=("overflow", "optimizer", "data", "initialization", "state_corruption"),
        health="healthy",
        reason="One skipped step in about 400 when the scaler tries a larger scale is its way to "
        "work.",
        must_not=("report an overflow", "report a loss spike"),
    )


def gradient_nan_first() -> Incident:
    file = "bf16_gradient_nan_first.jsonl"
    rng = dice(file)
    n, bad = 520, 412
    loss = falling(n, 4.1, 2.2) + jitter(rng, n, 0.04)
    grad = norms(rng, n, 0.8)
    grad[bad:], loss[bad + 1 :] = NAN, NAN
    columns: dict[str, Column] = {
        "step": np.arange(n),
        "loss": loss,
        "grad_norm": grad,
        "lr": cosine(n, 1e-4, warm=30),
    }
    return Incident(
        file,
        "pytorch/pytorch#103749 and transformers#32390: attention backward gives NaN, forward not",
        jsonl(columns),
        cause="overflow",
        acceptable=("architecture", "inconclusive"),
        wrong=("none", "initialization", "weight_decay", "vanishing", "optimizer"),
        health="diverged",
        onset=bad,
        tolerance=1,
        reason="The gradient is NaN once while the loss is finite and usual; the update then makes "
        "every weight NaN. Nothing had grown before.",
        must_not=("blame the learning rate",),
    )


def one_part_nan() -> Incident:
    file = "mmdet_loss_iou_nan.log.json"
    rng = dice(file)
    n, bad = 120, 64  # one record in 50 iterations
    cls = falling(n, 1.1, 0.42) + jitter(rng, n, 0.02)
    box = falling(n, 0.62, 0.31) + jitter(rng, n, 0.01)
    iou = falling(n, 0.69, 0.55) + jitter(rng, n, 0.01)
    iou[bad:] = NAN
    cls[bad + 1 :], box[bad + 1 :] = NAN, NAN
    grad = norms(rng, n, 6.0, 0.3)
    grad[bad:] = NAN
    columns: dict[str, Column] = {
        "mode": ["train"] * n,
        "epoch": [1] * n,
        "iter": np.arange(1, n + 1) * 50,
        "lr": np.where(np.arange(n) < 10, 0.002 * (np.arange(n) + 1), 0.02),
        "memory": [5012] * n,
        "loss_cls": cls,
        "loss_bbox": box,
        "loss_iou": iou,
        "loss": cls + box + iou,
        "grad_norm": grad,
    }
    return Incident(
        file,
        "open-mmlab/mmdetection: one part of the loss is NaN first",
        jsonl(columns),
        cause="overflow",
        acceptable=("data", "inconclusive", "architecture"),
        wrong=("none", "initialization", "weight_decay", "state_corruption", "vanishing"),
        health="diverged",
        onset=3250,
        tolerance=50,
        reason="loss_iou is NaN one record before the other parts; nothing had grown before it.",
        must_not=("call the run healthy",),
    )


def embedding_nan() -> Incident:
    file = "embedding_row_nan.csv"
    rng = dice(file)
    n, bad = 600, 377
    parts = ["transformer.wte.weight", "transformer.h.0.attn.c_proj.weight",
             "transformer.h.1.attn.c_proj.weight", "transformer.h.2.mlp.c_fc.weight",
             "transformer.h.3.mlp.c_fc.weight", "transformer.ln_f.weight"]  # fmt: skip
    layers = {f"grad_norm/{p}": norms(rng, n, 0.4 if k == 0 else 0.1) for k, p in enumerate(parts)}
    loss = falling(n, 10.8, 4.0, speed=9.0) + jitter(rng, n, 0.05)
    total = norms(rng, n, 0.7)
    layers[f"grad_norm/{parts[0]}"][bad:] = NAN
    total[bad:] = NAN
    for part in parts[1:]:
        layers[f"grad_norm/{part}"][bad + 8 :] = NAN
    loss[bad + 8 :] = NAN
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "grad_norm": total,
        "lr": cosine(n, 6e-4, warm=50), **layers,
    }  # fmt: skip
    return Incident(
        file,
        "pytorch forums, transformers: NaN in one embedding row, seen when the token comes",
        csv(columns),
        cause="overflow",
        acceptable=("data", "state_corruption", "architecture", "inconclusive"),
        wrong=("none", "optimizer", "weight_decay", "vanishing"),
        health="diverged",
        onset=bad,
        tolerance=1,
        layer=parts[0],
        reason="Only the gradient of the embedding is NaN at first; the loss and all other parts "
        "eight steps later, when the token comes again.",
        must_not=("blame the learning rate",),
    )


def loss_grows_to_inf() -> Incident:
    """Explode first, overflow last: the NaN is only the end."""
    file = "detector_linear_scaling_lr.log.json"
    rng = dice(file)
    n, bad = 26, 20  # one record in 10 iterations, still in the warm-up
    i = np.arange(n)
    loss = 2.6 - 0.05 * np.minimum(i, 8) + jitter(rng, n, 0.06)
    loss[9:] *= 1.42 ** np.arange(1, n - 8)
    grad = norms(rng, n, 9.0 * np.where(i < 8, 1.0, 1.7 ** (i - 7.0)), 0.2)
    loss[bad:], grad[bad:] = NAN, NAN
    columns: dict[str, Column] = {
        "mode": ["train"] * n,
        "epoch": [1] * n,
        "iter": (i + 1) * 10,
        "lr": 0.08 * (0.001 + 0.999 * np.minimum(1.0, (i + 1) / 25)),
        "loss": loss,
        "grad_norm": grad,
    }
    return Incident(
        file,
        "open-mmlab/mmdetection#1710: lr 0.12, 0.08, 0.06 end in NaN, 0.04 does not",
        jsonl(columns),
        cause="optimizer",
        acceptable=("inconclusive", "overflow", "initialization"),
        wrong=("none", "data", "state_corruption", "weight_decay", "vanishing"),
        health="diverged",
        onset=100,
        tolerance=30,
        reason="Loss and grad norm grow for 120 iterations as the warm-up raises the rate; NaN "
        "comes last.",
        must_not=("blame the data",),
    )


def value_loss_explodes() -> Incident:
    file = "ppo_value_loss_then_nan.csv"
    rng = dice(file)
    n, bad = 90, 61
    i = np.arange(n)
    value = norms(rng, n, 2100.0, 0.5)
    value[bad - 1] = 3.7e6
    policy = jitter(rng, n, 0.004)
    entropy = -1.4 + 0.004 * i + jitter(rng, n, 0.01)
    total = policy + 0.5 * value + 0.01 * entropy
    for column in (value, policy, entropy, total):
        column[bad:] = NAN
    columns: dict[str, Column] = {
        "time/total_timesteps": (i + 1) * 2048,
        "train/loss": total,
        "train/value_loss": value,
        "train/policy_gradient_loss": policy,
        "train/entropy_loss": entropy,
        "train/explained_variance": np.where(i < 3, NAN, 0.3),
        "train/learning_rate": np.full(n, 3e-4),
    }
    return Incident(
        file,
        "hill-a/stable-baselines#693: value_loss 3.7e6, next record all NaN",
        csv(columns),
        cause="optimizer",
        acceptable=("overflow", "data", "inconclusive"),
        wrong=("none", "state_corruption", "weight_decay", "vanishing", "initialization"),
        health="diverged",
        onset=bad * 2048,
        tolerance=2 * 2048,
        reason="The value loss is 1700 times its level for one record, then everything is NaN.",
        must_not=("call the run healthy",),
    )


def two_ends_of_fp16() -> Incident:
    """OPT: explosions after restarts, with the loss scale at its floor."""
    file = "opt_like_restarts_scale_floor.csv"
    rng = dice(file)
    table: dict[str, list[Cell]] = {k: [] for k in ("step", "loss", "gnorm", "lr", "loss_scale")}
    for first, last, rate in ((4000, 5400, 1.2e-4), (4800, 6000, 1.2e-4), (5400, 7600, 6e-5)):
        steps = np.arange(first, last, 10)
        n = steps.size
        loss = 3.2 - 0.25 * np.log10(steps / 4000) * 4 + jitter(rng, n, 0.015)
        grad = norms(rng, n, 0.25, 0.12)
        scale = np.full(n, 4.0)
        if rate > 1e-4:
            loss += bump(n, n - 14, 2.6, rise=14, life=200)
            grad = grad * (1.0 + bump(n, n - 34, 9.0, rise=34, life=200))
            scale = np.maximum(
                2.0 ** (2 - np.floor(bump(n, n - 40, 12, rise=40, life=200))), 2**-10
            )
        for name, values in (("step", steps), ("loss", loss), ("gnorm", grad),
                             ("lr", np.full(n, rate)), ("loss_scale", scale)):  # fmt: skip
            table[name] += values.tolist()
    return Incident(
        file,
        "facebookresearch/metaseq OPT-175B chronicles: explosions after restarts, rate lowered",
        csv(table),
        cause="optimizer",
        acceptable=("overflow", "inconclusive"),
        wrong=("none", "data", "initialization", "vanishing", "weight_decay"),
        health="unstable",
        onset=5060,
        tolerance=350,
        reason="Twice the grad norm drifts up and the loss scale falls to its floor before the "
        "loss explodes; with half the rate the same steps pass.",
        must_not=("treat the repeated steps as duplicates to average",),
    )


LOGS = (
    filtered_nan, nan_from_first_record, scale_falls_over_windows, minimum_loss_scale,
    fp16_lone_skips, gradient_nan_first, one_part_nan, embedding_nan, loss_grows_to_inf,
    value_loss_explodes, two_ends_of_fp16,
)  # fmt: skip
