"""Incidents of single records or of one series alone, and slow trouble without a spike."""

from __future__ import annotations

import math

import numpy as np

from tests.incidents.formats import Column, csv, jsonl, trainer_state
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, linear, norms

NAN = math.nan


def running_mean_nan() -> Incident:
    file = "tts_running_mean_nan.csv"
    rng = dice(file)
    n, bad = 700, 231
    loss = falling(n, 38.0, 27.0) + jitter(rng, n, 0.9)
    loss[bad] = NAN
    columns: dict[str, Column] = {
        "global_step": np.arange(n),
        "loss": loss,
        "loss_running_mean": np.where(
            np.arange(n) < bad, np.cumsum(np.nan_to_num(loss)) / np.arange(1, n + 1), NAN
        ),
        "grad_norm": norms(rng, n, 12.0, 0.35),
        "lr": np.full(n, 2e-4),
    }
    return Incident(
        file,
        "coqui-ai/TTS, espnet: the average shows nan for the rest of the epoch",
        csv(columns),
        cause="data",
        acceptable=("logging_artifact", "healthy", "inconclusive"),
        wrong=("overflow", "optimizer", "initialization", "state_corruption", "weight_decay"),
        health="unstable",
        onset=bad,
        tolerance=0,
        reason="One batch gave NaN; a running mean never forgets it, the raw loss did on the next "
        "step.",
        must_not=("call the run diverged", "blame overflow"),
    )


def running_mean_nan_alone() -> Incident:
    file = "speech_epoch_mean_nan_raw_fine.csv"
    rng = dice(file)
    n, bad = 400, 150  # the raw loss is logged every 25 steps and missed the bad one
    columns: dict[str, Column] = {
        "step": np.arange(n) * 25,
        "train_loss": falling(n, 6.2, 1.3) + jitter(rng, n, 0.08),
        "avg_train_loss": np.where(
            np.arange(n) < bad, falling(n, 6.2, 1.9) + jitter(rng, n, 0.003), NAN
        ),
        "grad_norm": norms(rng, n, 2.5, 0.3),
        "lr": cosine(n, 1e-3, warm=20),
    }
    return Incident(
        file,
        "wenet-e2e, NVIDIA NeMo: nan in the averaged loss only",
        csv(columns),
        cause="logging_artifact",
        acceptable=("healthy", "data", "inconclusive"),
        wrong=("overflow", "optimizer", "initialization", "state_corruption", "weight_decay"),
        health="healthy",
        reason="The raw loss and the grad norm are finite and usual to the end; only the mean is "
        "NaN.",
        must_not=("call the run diverged", "blame overflow"),
    )


def lone_nan_empty_batch() -> Incident:
    file = "batch_without_tokens.csv"
    rng = dice(file)
    n, bad = 1200, 812
    loss = falling(n, 9.1, 3.1, speed=9.0) + jitter(rng, n, 0.05)
    grad = norms(rng, n, 0.9)
    loss[bad], grad[bad] = NAN, 0.0
    columns: dict[str, Column] = {
        "step": np.arange(n),
        "loss": loss,
        "grad_norm": grad,
        "lr": cosine(n, 3e-4, warm=60),
    }
    return Incident(
        file,
        "huggingface/transformers, fairseq: mean over no token is 0/0",
        csv(columns),
        cause="data",
        acceptable=("healthy", "inconclusive"),
        wrong=("overflow", "optimizer", "initialization", "state_corruption", "weight_decay"),
        health="unstable",
        onset=bad,
        reason="One NaN loss with grad norm 0 and a normal next step.",
        must_not=("call the run diverged", "blame overflow"),
    )


def scale_at_minimum() -> Incident:
    file = "deepspeed_scale_at_minimum.csv"
    rng = dice(file)
    n, bad = 900, 700
    i = np.arange(n)
    loss = falling(n, 8.4, 3.1, speed=8.0)
    loss[bad:] = loss[bad]
    skipped = (i >= bad).astype(np.int64)
    skipped[[210, 455]] = 1
    grad = norms(rng, n, 0.7)
    grad[skipped == 1] = math.inf
    columns: dict[str, Column] = {
        "step": i, "loss": loss + jitter(rng, n, 0.04), "grad_norm": grad,
        "lr": cosine(n, 2e-4, warm=40),
        "loss_scale": np.where(i < bad, 65536.0, 2.0 ** np.maximum(0.0, 16.0 - (i - bad))),
        "skipped": skipped,
    }  # fmt: skip
    return Incident(
        file,
        "microsoft/DeepSpeed#1599: current loss scale already at minimum",
        csv(columns),
        cause="overflow",
        acceptable=("architecture", "inconclusive"),
        wrong=("none", "data", "initialization", "weight_decay", "vanishing"),
        health="diverged",
        onset=bad,
        tolerance=10,
        reason="From 700 on every step is skipped, the scale halves to 1 and stays; the loss is "
        "finite and flat because no update is made any more.",
        must_not=("call the run healthy", "blame the data"),
    )


def ctc_infinite() -> Incident:
    file = "asr_ctc_infinite_losses.csv"
    rng = dice(file)
    n = 1500
    loss = falling(n, 9.5, 1.1, speed=7.0) + jitter(rng, n, 0.12)
    for at in (97, 303, 640, 641, 1002, 1333):
        loss[at] = math.inf
    columns: dict[str, Column] = {
        "step": np.arange(n), "train_loss": loss, "grad_norm": norms(rng, n, 1.8, 0.3),
        "lr": cosine(n, 1e-3, warm=100),
    }  # fmt: skip
    return Incident(
        file,
        "espnet, NeMo, speechbrain: CTC loss inf where the target is longer than the input",
        csv(columns),
        cause="data",
        acceptable=("healthy", "inconclusive", "overflow"),
        wrong=("optimizer", "initialization", "state_corruption", "weight_decay", "vanishing"),
        health="unstable",
        onset=97,
        tolerance=1,
        reason="Lone infinite losses, each followed by a usual one and with a usual gradient: "
        "samples that cannot be aligned.",
        must_not=("call the run diverged", "blame the learning rate"),
    )


def detector_nan_from_first_epoch() -> Incident:
    file = "yolo_amp_nan_results.csv"
    rng = dice(file)
    n = 30
    i = np.arange(n)
    columns: dict[str, Column] = {
        "epoch": i + 1,
        "train/box_loss": np.full(n, NAN),
        "train/cls_loss": np.full(n, NAN),
        "train/dfl_loss": np.full(n, NAN),
        "metrics/mAP50(B)": np.zeros(n),
        "val/box_loss": np.full(n, NAN),
        "val/cls_loss": np.full(n, NAN),
        "val/dfl_loss": np.full(n, NAN),
        "lr/pg0": linear(n, 0.01, warm=3) * (1 + 0 * rng.random(n)),
    }
    return Incident(
        file,
        "ultralytics: all losses nan with AMP on some cards",
        csv(columns),
        cause="overflow",
        acceptable=("inconclusive", "initialization", "data"),
        wrong=("none", "optimizer", "weight_decay", "vanishing", "state_corruption"),
        health="diverged",
        onset=1,
        tolerance=0,
        reason="NaN from the first epoch to the last.",
        must_not=("call the run healthy",),
    )


def evaluation_nan_only() -> Incident:
    file = "eval_loss_nan_only.json"
    rng = dice(file)
    n = 300
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": falling(n, 2.1, 1.2) + jitter(rng, n, 0.04),
        "grad_norm": norms(rng, n, 1.1, 0.2),
        "learning_rate": linear(n, 1e-4, warm=9),
    }
    return Incident(
        file,
        "huggingface/transformers, unsloth: eval_loss nan, training fine",
        trainer_state(columns, per_epoch=1000, eval_loss={k: NAN for k in range(500, 3001, 500)}),
        cause="logging_artifact",
        acceptable=("healthy", "data", "inconclusive", "overflow"),
        wrong=("optimizer", "initialization", "state_corruption", "weight_decay", "vanishing"),
        health="healthy",
        reason="Training loss and grad norm are fine to the end; only the evaluation is NaN.",
        must_not=("call the run diverged", "report a loss spike"),
    )


def norm_nan_loss_falls() -> Incident:
    file = "grad_norm_nan_loss_falls.json"
    rng = dice(file)
    n = 250
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 4,
        "loss": falling(n, 2.6, 1.3) + jitter(rng, n, 0.04),
        "grad_norm": np.full(n, NAN),
        "learning_rate": cosine(n, 2e-4, warm=9, floor=0.0),
    }
    return Incident(
        file,
        "unsloth, transformers: grad_norm nan in every record, the loss falls",
        trainer_state(columns, per_epoch=500, eval_loss={500: 1.52, 1000: 1.37}),
        cause="logging_artifact",
        acceptable=("healthy", "overflow", "inconclusive"),
        wrong=("optimizer", "data", "initialization", "state_corruption", "weight_decay",
               "vanishing"),
        health="unstable",
        reason="A NaN gradient would have made the weights NaN: the loss falls as usual for 1000 "
        "steps, and so does the evaluation.",
        must_not=("call the run diverged", "report a loss spike"),
    )  # fmt: skip


def breaks_as_warmup_ends() -> Incident:
    file = "diverges_as_warmup_ends.jsonl"
    rng = dice(file)
    n, at = 900, 265
    late = np.maximum(0, np.arange(n) - at)
    loss = falling(n, 10.9, 3.9, speed=9.0) + jitter(rng, n, 0.05)
    loss += np.minimum(3.1, 0.035 * late) * np.exp(-np.maximum(0, late - 150) / 900.0)
    grad = norms(rng, n, 0.5, 0.15) * (
        1 + np.minimum(5.0, 0.09 * np.maximum(0, late + 30) * (late > 0))
    )
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "grad_norm": grad,
        "lr": cosine(n, 6e-3, warm=300),
    }  # fmt: skip
    return Incident(
        file,
        "torchtitan, gpt-neox: loss rises as the warm-up nears its peak",
        jsonl(columns),
        cause="optimizer",
        acceptable=("inconclusive", "architecture"),
        wrong=("none", "data", "overflow", "state_corruption", "weight_decay", "vanishing",
               "initialization"),
        health="diverged",
        onset=at,
        tolerance=20,
        reason="Loss and grad norm climb together over 100 steps while the rate nears its peak of "
        "6e-3, and do not return.",
        must_not=("call the run healthy", "blame the data"),
    )  # fmt: skip


def seen_data_in_the_middle() -> Incident:
    file = "loss_dips_over_repeated_data.csv"
    rng = dice(file)
    n = 1200  # one row in 10 steps
    loss = falling(n, 6.5, 2.2, speed=9.0) + jitter(rng, n, 0.02)
    loss[640:860] -= 0.42 * (1 - np.exp(-np.arange(220) / 10.0))
    columns: dict[str, Column] = {
        "step": np.arange(n) * 10, "loss": loss, "grad_norm": norms(rng, n, 0.6, 0.15),
        "lr": cosine(n, 3e-4, warm=30),
    }  # fmt: skip
    return Incident(
        file,
        "stas00/ml-engineering: the loss dips while the loader repeats a stretch of data",
        csv(columns),
        cause="data",
        acceptable=("healthy", "inconclusive"),
        wrong=("optimizer", "overflow", "initialization", "state_corruption", "weight_decay",
               "vanishing", "architecture"),
        health="unstable",
        onset=6400,
        tolerance=2300,
        reason="A fifth of the loss vanishes for 2200 steps with no change of the rate, and comes "
        "back to the old course.",
        must_not=("call the run diverged", "blame the learning rate"),
    )  # fmt: skip


def policy_breaks() -> Incident:
    file = "grpo_kl_explodes.jsonl"
    rng = dice(file)
    n, at = 420, 300
    late = np.maximum(0, np.arange(n) - at)
    kl = np.abs(0.02 + 0.00015 * np.arange(n) + jitter(rng, n, 0.004))
    kl += np.minimum(40.0, 0.02 * np.expm1(late / 11.0))
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1),
        "loss": 0.04 * kl + jitter(rng, n, 0.02),
        "grad_norm": norms(rng, n, 0.3, 0.3) * (1 + np.minimum(180.0, np.expm1(late / 14.0))),
        "learning_rate": np.full(n, 3e-6),
        "reward": 0.4 + np.arange(n) / 600 - np.minimum(1.0, late / 60.0) + jitter(rng, n, 0.06),
        "kl": kl,
    }
    return Incident(
        file,
        "trl, verl: KL and grad norm explode, the reward falls",
        jsonl(columns),
        cause="optimizer",
        acceptable=("inconclusive", "architecture", "overflow"),
        wrong=("none", "data", "initialization", "state_corruption", "weight_decay", "vanishing"),
        health="diverged",
        onset=at + 15,
        tolerance=45,
        reason="KL, grad norm and loss grow exponentially together from 300 on at a constant rate.",
        must_not=("call the run healthy", "blame the data"),
    )


def masked_plateau_then_fall() -> Incident:
    file = "bert_plateau_then_falls.csv"
    rng = dice(file)
    n = 1000  # one row in 20 steps
    i = np.arange(n)
    fall = 1.0 / (1.0 + np.exp(-(i - 330) / 45.0))
    loss = 6.9 + 3.6 * np.exp(-i / 12.0) - 3.6 * fall - 0.9 * i / n
    level = 0.5 + 1.2 * fall * np.exp(-np.maximum(0, i - 330) / 90)
    columns: dict[str, Column] = {
        "step": i * 20, "mlm_loss": loss + jitter(rng, n, 0.03),
        "grad_norm": norms(rng, n, level, 0.2),
        "lr": cosine(n, 1e-4, warm=100),
    }  # fmt: skip
    return Incident(
        file,
        "bert pretraining, many: the loss rests near 7 for thousands of steps, then falls",
        csv(columns),
        cause="healthy",
        acceptable=(),
        wrong=("optimizer", "data", "overflow", "state_corruption", "weight_decay", "architecture",
               "initialization", "vanishing"),
        health="healthy",
        reason="The unigram plateau is left by itself at step 5000; the run ends at 2.4.",
        must_not=("report a loss spike", "report vanishing gradients"),
    )  # fmt: skip


def bump_of_other_data() -> Incident:
    file = "code_shard_raises_loss.csv"
    rng = dice(file)
    n = 1400
    loss = falling(n, 9.8, 2.5, speed=9.0) + jitter(rng, n, 0.03)
    loss[700:] += 0.55
    loss += bump(n, 700, 0.2, life=60.0)
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "grad_norm": norms(rng, n, 0.5, 0.15),
        "lr": cosine(n, 4e-4, warm=50),
    }  # fmt: skip
    return Incident(
        file,
        "OLMo, many: a new data source begins and the level changes at once",
        csv(columns),
        cause="data",
        acceptable=("inconclusive",),
        wrong=("none", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=700,
        tolerance=2,
        reason="The loss steps up within one step and stays, with usual gradients and rate.",
        must_not=("blame overflow",),
    )


LOGS = (
    running_mean_nan, running_mean_nan_alone, lone_nan_empty_batch,
    scale_at_minimum, ctc_infinite, detector_nan_from_first_epoch, evaluation_nan_only,
    norm_nan_loss_falls, breaks_as_warmup_ends, seen_data_in_the_middle, policy_breaks,
    masked_plateau_then_fall, bump_of_other_data,
)  # fmt: skip
