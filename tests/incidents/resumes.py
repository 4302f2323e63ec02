"""Incidents at a resume or in the schedule: lost state, wrong rate, another accounting."""

from __future__ import annotations

import numpy as np

from tests.incidents.formats import Cell, Column, csv, jsonl, megatron, torchtitan, trainer_state
from tests.incidents.record import Incident
from tests.incidents.shapes import F64, bump, cosine, dice, falling, jitter, linear, norms

NO_FAULT_OF_UPDATE = ("optimizer", "overflow", "initialization", "weight_decay", "vanishing")


def rate_rises_after_resume() -> Incident:
    file = "lora_rate_rises_after_resume.csv"
    rng = dice(file)
    n, at = 800, 400  # one row in 10 steps
    i = np.arange(n)
    old = cosine(n, 3e-4, floor=0.0, total=600)
    rate = np.where(i < at, old, old[at] + (2.6e-4 - old[at]) * np.sin(np.pi * (i - at) / 700) ** 2)
    loss = 0.21 - 0.035 * (1 - np.exp(-i / 120)) + jitter(rng, n, 0.008)
    loss += 60.0 * np.where(i < at, 0.0, rate - old[at])
    columns: dict[str, Column] = {
        "step": i * 10, "loss": loss, "lr": rate, "grad_norm": norms(rng, n, 0.12, 0.2),
        "resumed_from": np.where(i < at, 0, at * 10),
    }  # fmt: skip
    return Incident(
        file,
        "Nerogar/OneTrainer#1604: the rate falls, then rises after the resume",
        csv(columns),
        cause="state_corruption",
        acceptable=("optimizer",),
        wrong=("none", "data", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=at * 10,
        tolerance=250,
        reason="The schedule was rebuilt with another length: at step 4000 the rate turns and "
        "climbs, and the loss with it.",
        must_not=("blame the data", "report a loss spike"),
    )


def warm_restart_of_scheduler() -> Incident:
    file = "resume_starts_cosine_anew.json"
    rng = dice(file)
    n, at = 300, 180  # one record in 10 steps
    loss = falling(n, 1.9, 1.05) + jitter(rng, n, 0.02)
    loss[at:] += 0.24 * np.exp(-np.arange(n - at) / 45.0)
    rate = np.concatenate((cosine(at, 2e-4, warm=6, floor=0.0, total=200), cosine(n - at, 2e-4)))
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": loss,
        "grad_norm": norms(rng, n, 0.5 + 0.25 * (np.arange(n) >= at), 0.2),
        "learning_rate": rate,
    }
    return Incident(
        file,
        "axolotl, transformers: the scheduler starts anew at a resume",
        trainer_state(columns, per_epoch=1000, eval_loss={1000: 1.31, 2000: 1.33, 3000: 1.29}),
        cause="state_corruption",
        acceptable=("optimizer",),
        wrong=("none", "data", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=1810,
        tolerance=20,
        reason="At 1810 the rate leaps from 5e-6 to its full 2e-4; the loss steps up at once.",
        must_not=("blame the data", "call the run diverged"),
    )


def rate_ends_early() -> Incident:
    file = "rate_reaches_zero_early.json"
    rng = dice(file)
    n, end = 400, 130
    loss = 2.2 - 0.9 * (1 - np.exp(-np.minimum(np.arange(n), end) / 60.0)) + jitter(rng, n, 0.03)
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "loss": loss,
        "grad_norm": norms(rng, n, 0.9, 0.2),
        "learning_rate": linear(n, 2e-5, warm=5, total=end),
    }
    return Incident(
        file,
        "huggingface/accelerate, trl: the schedule counts processes twice and ends early",
        trainer_state(columns, per_epoch=2000, eval_loss={2000: 1.37, 4000: 1.37}),
        cause="optimizer",
        acceptable=("healthy", "inconclusive", "logging_artifact"),
        wrong=("data", "overflow", "initialization", "weight_decay", "vanishing"),
        health="healthy",
        reason="The rate is 0 for the last two thirds, the loss flat with usual gradients: nothing "
        "is unstable, two thirds of the run did nothing.",
        must_not=("report vanishing gradients", "call the run diverged", "report a loss spike"),
    )


def rate_stays_zero() -> Incident:
    file = "rate_zero_throughout.json"
    rng = dice(file)
    n = 250
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1),
        "loss": 2.31 + jitter(rng, n, 0.08),
        "grad_norm": norms(rng, n, 1.9, 0.15),
        "learning_rate": np.zeros(n),
    }
    return Incident(
        file,
        "deepspeed, transformers: learning_rate 0 in every record",
        trainer_state(columns, per_epoch=250, eval_loss={250: 2.31}),
        cause="optimizer",
        acceptable=("inconclusive", "logging_artifact"),
        wrong=("data", "overflow", "initialization", "vanishing", "weight_decay"),
        health="unstable",
        reason="The rate is 0 throughout, so the loss cannot move; the gradients are usual.",
        must_not=("report vanishing gradients", "report a loss spike"),
    )


def optimizer_state_lost() -> Incident:
    file = "megatron_resume_level_returns.log"
    rng = dice(file)
    n, at = 900, 500  # one line in 10 iterations
    loss = falling(n, 8.0, 2.05, speed=9.0) + jitter(rng, n, 0.012)
    loss[at:] += 0.3 * np.exp(-np.arange(n - at) / 40.0)
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 10,
        "lm loss": loss,
        "grad norm": norms(rng, n, 0.25, 0.12) * (1.0 + bump(n, at, 1.6, life=40.0)),
        "lr": cosine(n, 1.5e-4, warm=40, total=3000),
        "loss scale": np.ones(n),
    }
    text = megatron(columns, total=30000, batch=1024)
    lines = text.splitlines(keepends=True)
    lines.insert(at + 1, " > could not load optimizer state, continuing without it\n")
    lines.insert(at + 1, "loading checkpoint from /ckpt at iteration 5000\n")
    return Incident(
        file,
        "Megatron-LM, many: loss higher after a resume without the optimizer state, then returns",
        "".join(lines),
        cause="state_corruption",
        acceptable=("data", "inconclusive"),
        wrong=("none", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=5010,
        tolerance=20,
        reason="At the resume loss and grad norm step up and need 1000 iterations to return.",
        must_not=("call the run diverged", "blame overflow"),
    )


def two_segments(first: dict[str, F64], second: dict[str, F64]) -> dict[str, list[Cell]]:
    """Write one segment after the other, as a file that was appended to."""
    return {name: [*first[name].tolist(), *second[name].tolist()] for name in first}


def shards_mixed_up() -> Incident:
    file = "resume_level_stays_up.csv"
    rng = dice(file)
    n = 1500
    loss = falling(n, 10.9, 2.9, speed=9.0) + jitter(rng, n, 0.03)
    lr = cosine(n, 4e-4, warm=80)
    grad = norms(rng, n, 0.5, 0.12)
    one = {
        "step": np.arange(0.0, 900.0),
        "loss": loss[:900],
        "grad_norm": grad[:900],
        "lr": lr[:900],
    }
    later = loss[850:] + 0.62 + 0.25 * np.exp(-np.arange(650) / 30.0)
    two = {"step": np.arange(850.0, 1500.0), "loss": later, "grad_norm": grad[850:] * 1.5,
           "lr": lr[850:]}  # fmt: skip
    return Incident(
        file,
        "pytorch/torchtitan#1136, #1702: worse loss after a resume, uneven shards",
        csv(two_segments(one, two)),
        cause="state_corruption",
        acceptable=("data",),
        wrong=("none", "overflow", "optimizer", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=850,
        tolerance=5,
        reason="Repeated steps 850-899 have a loss 0.8 higher than before the resume, and the gap "
        "stays.",
        must_not=("treat the repeated steps as duplicates to average", "blame the learning rate"),
    )


def bump_at_each_resume() -> Incident:
    file = "m4_bump_at_each_resume.jsonl"
    rng = dice(file)
    table: dict[str, list[Cell]] = {k: [] for k in ("step", "per_token_loss", "lr", "grad_norm")}
    steps = np.arange(0, 20000, 10)
    base = falling(steps.size, 6.8, 1.72, speed=12.0)
    for first, last in ((400, 700), (680, 950), (920, 1200), (1180, 1500), (1460, 1800)):
        n = last - first
        loss = base[first:last] + jitter(rng, n, 0.012)
        if first > 400:
            loss += 0.13 * np.exp(-np.arange(n) / 9.0)
        table["step"] += steps[first:last].tolist()
        table["per_token_loss"] += loss.tolist()
        table["lr"] += (1e-4 * (1 - steps[first:last] / 40000)).tolist()
        table["grad_norm"] += norms(rng, n, 0.4, 0.15).tolist()
    return Incident(
        file,
        "huggingface/m4-logs, bigscience tr8b: a small spike of one shape at each resume",
        jsonl(table),
        cause="state_corruption",
        acceptable=("data",),
        wrong=("none", "overflow", "optimizer", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=6800,
        tolerance=30,
        reason="Each of four resumes starts 0.13 too high and is back after 300 steps, the rate "
        "and the grad norm going on as before.",
        must_not=("treat the repeated steps as duplicates to average", "blame overflow"),
    )


def restart_goes_on() -> Incident:
    file = "restart_goes_on.csv"
    rng = dice(file)
    n = 1400
    loss = falling(n, 10.8, 3.1, speed=9.0)
    lr = cosine(n, 6e-4, warm=70)
    parts = []
    for first, last in ((0, 612), (600, 1003), (1000, 1400)):
        m = last - first
        parts.append({"step": np.arange(first, last, dtype=np.float64),
                      "loss": loss[first:last] + jitter(rng, m, 0.04),
                      "grad_norm": norms(rng, m, 0.6, 0.15), "lr": lr[first:last]})  # fmt: skip
    table = two_segments(parts[0], parts[1])
    for name, values in parts[2].items():
        table[name] += values.tolist()
    return Incident(
        file,
        "the usual case: killed twice, resumed from the last checkpoint",
        csv(table),
        cause="healthy",
        wrong=("state_corruption", "data", *NO_FAULT_OF_UPDATE),
        health="healthy",
        reason="After both restarts loss, rate and grad norm go on as before.",
        must_not=("treat the repeated steps as duplicates to average", "report a loss spike"),
    )


def resumed_in_noise() -> Incident:
    file = "torchtitan_flux_resumed.log"
    rng = dice(file)
    n = 80
    loss = falling(n, 2.46, 2.25) + jitter(rng, n, 0.13)
    loss[5], loss[40] = 2.4664, 2.1726
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1),
        "loss": loss,
        "grad_norm": norms(rng, n, 1.3, 0.25),
    }
    lines = torchtitan(columns).splitlines(keepends=True)
    lines.insert(40, "[rank0]:[titan] 2025-05-30 14:40:02,112 - root - INFO - Loading the "
                 "checkpoint from outputs/checkpoint/step-40.\n")  # fmt: skip
    return Incident(
        file,
        "pytorch/torchtitan#1213: 2.4664 uninterrupted, 2.1726 resumed; noise not seeded",
        "".join(lines),
        cause="healthy",
        acceptable=("inconclusive",),
        wrong=("state_corruption", "data", *NO_FAULT_OF_UPDATE),
        health="healthy",
        reason="The difference at the resume is within the noise from step to step.",
        must_not=("report a loss spike", "call the run diverged"),
    )


def loss_times_accumulation() -> Incident:
    file = "resume_loss_times_eight.json"
    rng = dice(file)
    n, at = 240, 120
    loss = falling(n, 2.1, 1.35) + jitter(rng, n, 0.02)
    grad = norms(rng, n, 0.9, 0.15)
    loss[at:], grad[at:] = 8.0 * loss[at:], 8.0 * grad[at:]
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1) * 5, "loss": loss, "grad_norm": grad,
        "learning_rate": linear(n, 1e-4, warm=6),
    }  # fmt: skip
    return Incident(
        file,
        "huggingface/transformers#34242: loss times gradient_accumulation_steps after an upgrade",
        trainer_state(columns, per_epoch=600, eval_loss={600: 1.52, 1200: 1.49}),
        cause="logging_artifact",
        acceptable=("state_corruption", "inconclusive", "healthy"),
        wrong=("optimizer", "overflow", "initialization", "weight_decay", "vanishing"),
        health="unstable",
        onset=605,
        tolerance=10,
        reason="From one record to the next loss and grad norm are both exactly eight times as "
        "large, the evaluation loss goes on: another normalisation, not another model.",
        must_not=("blame the learning rate", "blame overflow"),
    )


def norm_times_root_of_n() -> Incident:
    file = "grad_norm_doubles_at_resume.csv"
    rng = dice(file)
    n, at = 1000, 600
    lr = cosine(n, 5e-4, warm=50)
    loss = falling(n, 9.5, 3.2, speed=9.0) + jitter(rng, n, 0.03)
    grad = norms(rng, n, 0.42, 0.08)
    grad[at:] *= 2.0
    one = {"step": np.arange(0.0, at), "loss": loss[:at], "grad_norm": grad[:at], "lr": lr[:at]}
    two = {"step": np.arange(at - 20.0, n - 20), "loss": loss[at - 20 : n - 20],
           "grad_norm": grad[at:], "lr": lr[at - 20 : n - 20]}  # fmt: skip
    return Incident(
        file,
        "NVIDIA/Megatron-LM, deepspeed: grad norm times sqrt(N) with another parallel layout",
        csv(two_segments(one, two)),
        cause="logging_artifact",
        acceptable=("healthy", "state_corruption", "inconclusive"),
        wrong=("data", *NO_FAULT_OF_UPDATE),
        health="healthy",
        reason="Only the grad norm changes, by exactly 2, at the resume; the loss goes on.",
        must_not=("report a loss spike", "call the run diverged"),
    )


def first_loss_times_accumulation() -> Incident:
    file = "sft_loss_times_eight_throughout.json"
    rng = dice(file)
    n = 200
    columns: dict[str, Column] = {
        "step": np.arange(1, n + 1),
        "loss": 8.0 * (falling(n, 2.17, 1.3) + jitter(rng, n, 0.03)),
        "grad_norm": 8.0 * norms(rng, n, 1.6, 0.2),
        "learning_rate": linear(n, 2e-5, warm=6),
    }
    return Incident(
        file,
        "huggingface/transformers#35649: first loss of a fine-tune 17.4 = 8 x 2.17",
        trainer_state(columns, per_epoch=200, eval_loss={100: 1.49, 200: 1.36}),
        cause="logging_artifact",
        acceptable=("initialization", "inconclusive", "healthy"),
        wrong=("data", "overflow", "weight_decay", "vanishing", "state_corruption"),
        health="healthy",
        reason="The loss is eight times the evaluation loss throughout: a sum over the "
        "accumulation, not a mean.",
        must_not=("blame the data", "blame overflow", "call the run diverged"),
    )


LOGS = (
    rate_rises_after_resume, warm_restart_of_scheduler, rate_ends_early, rate_stays_zero,
    optimizer_state_lost, shards_mixed_up, bump_at_each_resume, restart_goes_on, resumed_in_noise,
    loss_times_accumulation, norm_times_root_of_n, first_loss_times_accumulation,
)  # fmt: skip
