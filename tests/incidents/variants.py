"""The same kinds of incident told by other tools, with other numbers and fewer columns."""

from __future__ import annotations

import math

import numpy as np

from tests.incidents.formats import Column, csv, fairseq, jsonl, megatron, trainer_state
from tests.incidents.record import Incident
from tests.incidents.shapes import bump, cosine, dice, falling, jitter, linear, norms

NAN = math.nan


def plateau_loss_alone() -> Incident:
    file = "loss_alone_plateau_after_jump.csv"
    rng = dice(file)
    n, at = 700, 410  # one row in 20 steps
    loss = falling(n, 9.6, 3.0, speed=10.0) + jitter(rng, n, 0.03)
    loss[at:] = 6.1 + 0.9 * np.exp(-np.arange(n - at) / 6.0) + jitter(rng, n - at, 0.03)
    return Incident(
        file,
        "pythia, nanoGPT forks: 3.2 to 6.1 and no return; the loss alone is logged",
        csv({"step": np.arange(n) * 20, "train_loss": loss}),
        cause="optimizer",
        acceptable=("inconclusive", "overflow", "architecture", "data"),
        wrong=("none", "initialization", "weight_decay", "vanishing"),
        health="diverged",
        onset=at * 20,
        tolerance=20,
        reason="A jump to half of the range for good; nothing else is logged.",
        must_not=("call the run healthy",),
    )


def total_norm_grows() -> Incident:
    file = "parameter_norm_grows_in_decay.jsonl"
    rng = dice(file)
    n, turn = 1000, 560  # one row in 50 steps
    i = np.arange(n)
    late = np.maximum(0, i - turn) / (n - turn)
    columns: dict[str, Column] = {
        "step": i * 50,
        "loss": falling(n, 8.2, 2.6, speed=10.0) + 0.22 * late + jitter(rng, n, 0.012),
        "grad_norm": norms(rng, n, 0.4, 0.12),
        "params_norm": 310.0 * (1 + 0.12 * i / n) * np.exp(1.5 * late),
        "learning_rate": cosine(n, 3e-4, warm=20),
    }
    return Incident(
        file,
        "reported with Megatron: loss creeps up late while the parameter norm runs away",
        jsonl(columns),
        cause="weight_decay",
        acceptable=("optimizer", "architecture", "inconclusive"),
        wrong=("none", "overflow", "data", "initialization", "vanishing"),
        health="unstable",
        onset=turn * 50,
        tolerance=28000,
        reason="The parameter norm grows 4.5 fold in the second half at a falling rate, the loss "
        "with it.",
        must_not=("report a loss spike", "blame the data"),
    )


def classes_at_chance() -> Incident:
    file = "keras_loss_at_ln_ten.csv"
    rng = dice(file)
    n = 40
    columns: dict[str, Column] = {
        "epoch": np.arange(n),
        "accuracy": 0.1 + jitter(rng, n, 0.002),
        "loss": math.log(10) + np.abs(jitter(rng, n, 0.0008)),
        "lr": np.full(n, 0.01),
        "val_accuracy": np.full(n, 0.1),
        "val_loss": math.log(10) + np.abs(jitter(rng, n, 0.001)),
    }
    return Incident(
        file,
        "keras, stack overflow: loss 2.303 for ever on ten classes",
        csv(columns),
        cause="initialization",
        acceptable=("vanishing", "optimizer", "architecture", "data", "inconclusive"),
        wrong=("none", "overflow", "state_corruption", "weight_decay"),
        health="unstable",
        onset=0,
        tolerance=5,
        reason="2.303 is ln(10): chance level in all 40 epochs.",
        must_not=("call the run healthy", "report a loss spike"),
    )


def loss_divided_by_four() -> Incident:
    file = "resume_loss_quarter.csv"
    rng = dice(file)
    n, at = 900, 500
    loss = falling(n, 3.9, 2.1) + jitter(rng, n, 0.015)
    grad = norms(rng, n, 1.2, 0.1)
    loss[at:], grad[at:] = loss[at:] / 4.0, grad[at:] / 4.0
    columns: dict[str, Column] = {
        "step": np.arange(n), "loss": loss, "grad_norm": grad, "lr": cosine(n, 1e-4, warm=20),
    }  # fmt: skip
    return Incident(
        file,
        "accelerate, lightning: loss divided by accumulation steps after a restart",
        csv(columns),
        cause="logging_artifact",
        acceptable=("healthy", "state_corruption", "inconclusive"),
        wrong=("optimizer", "overflow", "initialization", "weight_decay", "vanishing"),
        health="healthy",
        reason="Loss and grad norm are both exactly a quarter from one step to the next.",
        must_not=("report a loss spike", "call the run diverged"),
    )


def auxiliary_nan() -> Incident:
    file = "router_z_loss_nan_total_fine.jsonl"
    rng = dice(file)
    n, bad = 800, 350
    z = 0.01 + np.abs(jitter(rng, n, 0.002))
    z[bad:] = NAN
    columns: dict[str, Column] = {
        "step": np.arange(n),
        "loss": falling(n, 10.4, 3.2, speed=9.0) + jitter(rng, n, 0.04),
        "loss/lm": falling(n, 10.3, 3.1, speed=9.0) + jitter(rng, n, 0.04),
        "loss/router_z": z,
        "grad_norm": norms(rng, n, 0.6, 0.15),
        "lr": cosine(n, 3e-4, warm=40),
    }
    return Incident(
        file,
        "reported for mixtures of experts: one logged part is nan, the total is not",
        jsonl(columns),
        cause="logging_artifact",
        acceptable=("healthy", "inconclusive", "overflow", "architecture"),
        wrong=("optimizer", "data", "initialization", "state_corruption", "weight_decay",
               "vanishing"),
        health="healthy",
        reason="Total loss and gradient never saw the NaN: the part is logged, not trained.",
        must_not=("call the run diverged", "report a loss spike"),
    )  # fmt: skip


def three_rows_then_nan() -> Incident:
    file = "three_rows_then_nan.csv"
    columns: dict[str, Column] = {
        "step": np.arange(8),
        "loss": np.array([4.2145, 3.9874, 4.4531, NAN, NAN, NAN, NAN, NAN]),
        "grad_norm": np.array([6.1, 5.8, 9.7, NAN, NAN, NAN, NAN, NAN]),
        "lr": np.full(8, 1e-4),
    }
    return Incident(
        file,
        "many: nan after three steps",
        csv(columns),
        cause="inconclusive",
        acceptable=("overflow", "optimizer", "initialization", "data"),
        wrong=("none", "vanishing", "weight_decay", "state_corruption"),
        health="diverged",
        onset=3,
        reason="NaN from the fourth record on; three points tell no more.",
        must_not=("call the run healthy",),
    )


def scale_creeps_down() -> Incident:
    file = "megatron_scale_creeps_down_loss_fine.log"
    rng = dice(file)
    n = 600  # one line in 20 iterations
    i = np.arange(n)
    power = np.maximum(19 - np.floor(i / 45), 6.0)
    skipped = (np.diff(np.append(19, power)) < 0).astype(np.int64)
    columns: dict[str, Column] = {
        "step": (i + 1) * 20,
        "lm loss": falling(n, 8.8, 2.7, speed=9.0) + jitter(rng, n, 0.02),
        "grad norm": norms(rng, n, 0.35 * np.exp(i / 260.0), 0.12),
        "lr": cosine(n, 1e-4, warm=40),
        "loss scale": 2.0**power,
        "skipped": skipped,
    }
    return Incident(
        file,
        "bigscience tr8: the loss scale only ever falls",
        megatron(columns, total=100000, batch=1024),
        cause="overflow",
        acceptable=("optimizer", "architecture", "inconclusive"),
        wrong=("data", "initialization", "state_corruption", "vanishing"),
        health="unstable",
        onset=900,
        tolerance=9000,
        reason="The scale halves every 900 iterations from 2^19 to 2^6 and never rises, the grad "
        "norm grows tenfold; the loss does not show it yet.",
        must_not=("report a loss spike", "call the run diverged"),
    )


def scale_floor_then_nan() -> Incident:
    file = "fairseq_nan_at_scale_floor.log"
    rng = dice(file)
    n, bad = 120, 96  # one line in 100 updates
    i = np.arange(n)
    loss = falling(n, 13.8, 6.0, speed=8.0) + jitter(rng, n, 0.06)
    grad = norms(rng, n, 1.1, 0.2) * (1 + bump(n, bad - 8, 30.0, rise=8, life=100.0))
    loss[bad:], grad[bad:] = NAN, NAN
    columns: dict[str, Column] = {
        "step": (i + 1) * 100,
        "loss": loss,
        "lr": linear(n, 7e-4, warm=40, total=400),
        "gnorm": grad,
        "loss_scale": np.where(i < bad - 6, 64.0, 64.0 * 0.25 ** np.minimum(9, i - bad + 7)),
    }
    return Incident(
        file,
        "facebookresearch/fairseq: NaN loss at the smallest loss scale",
        fairseq(columns),
        cause="overflow",
        acceptable=("optimizer", "inconclusive"),
        wrong=("none", "data", "initialization", "state_corruption", "vanishing"),
        health="diverged",
        onset=9000,
        tolerance=700,
        reason="The scale collapses within 700 updates as the grad norm grows; then NaN.",
        must_not=("call the run healthy", "blame the data"),
    )


def rate_turns_loss_flat() -> Incident:
    file = "rate_climbs_again_loss_flat.json"
    rng = dice(file)
    n, at = 320, 200
    rate = np.concatenate((linear(at, 1e-4, warm=10, total=260), np.zeros(n - at)))
    rate[at:] = rate[at - 1] + (8e-5 - rate[at - 1]) * np.arange(1, n - at + 1) / (n - at)
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": falling(n, 1.7, 1.15) + jitter(rng, n, 0.03),
        "grad_norm": norms(rng, n, 0.7, 0.2),
        "learning_rate": rate,
    }
    return Incident(
        file,
        "Nerogar/OneTrainer#1604 as a Trainer would log it: no effect on the loss yet",
        trainer_state(columns, per_epoch=1600, eval_loss={1600: 1.25, 3200: 1.19}),
        cause="state_corruption",
        acceptable=("optimizer",),
        wrong=("data", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=2010,
        tolerance=30,
        reason="A rate that has been falling to 2.4e-5 climbs again to 8e-5.",
        must_not=("report a loss spike", "blame the data"),
    )


def one_step_spike_dense() -> Incident:
    file = "single_bad_batch.jsonl"
    rng = dice(file)
    n, at = 1800, 1207
    loss = falling(n, 9.2, 2.8, speed=9.0) + jitter(rng, n, 0.04)
    grad = norms(rng, n, 0.6, 0.15)
    loss[at] += 3.1
    grad[at] *= 7.0
    columns: dict[str, Column] = {
        "step": np.arange(n), "train/loss": loss, "train/grad_norm": grad,
        "train/lr": cosine(n, 3e-4, warm=50),
    }  # fmt: skip
    return Incident(
        file,
        "marin, levanter: one step of loss 6 at one batch, gone on the next",
        jsonl(columns),
        cause="data",
        acceptable=("inconclusive",),
        wrong=("none", "overflow", "initialization", "state_corruption", "weight_decay",
               "vanishing"),
        health="unstable",
        onset=at,
        reason="One step, same in loss and gradient, no trace after it.",
        must_not=("call the run diverged",),
    )  # fmt: skip


def tall_spikes_in_a_long_run() -> Incident:
    file = "glm_like_spikes.csv"
    rng = dice(file)
    n = 3000  # one row in 10 steps
    loss = falling(n, 9.0, 2.2, speed=11.0) + jitter(rng, n, 0.02)
    grad = norms(rng, n, 0.3, 0.15)
    for at in np.sort(rng.choice(np.arange(300, n - 100), 14, replace=False)).tolist():
        loss += bump(n, at, float(rng.uniform(0.5, 3.0)), rise=3, life=float(rng.uniform(5, 25)))
        grad *= 1.0 + bump(n, at - 1, float(rng.uniform(8, 40)), rise=2, life=4.0)
    columns: dict[str, Column] = {
        "iteration": np.arange(n) * 10, "lm loss": loss, "grad norm": grad,
        "learning rate": cosine(n, 8e-5, warm=60),
    }  # fmt: skip
    return Incident(
        file,
        "GLM-130B and others: spikes more and more often, the embedding gradient first",
        csv(columns),
        cause="optimizer",
        acceptable=("inconclusive", "architecture"),
        wrong=("none", "overflow", "initialization", "state_corruption", "weight_decay",
               "vanishing"),
        health="unstable",
        onset=9000,
        tolerance=9000,
        reason="Fourteen spikes that need 50 to 250 steps to come back, the norm one record ahead.",
        must_not=("call the run diverged", "blame overflow"),
    )  # fmt: skip


LOGS = (
    plateau_loss_alone, total_norm_grows, classes_at_chance, loss_divided_by_four, auxiliary_nan,
    three_rows_then_nan, scale_creeps_down, scale_floor_then_nan, rate_turns_loss_flat,
    one_step_spike_dense, tall_spikes_in_a_long_run,
)  # fmt: skip
