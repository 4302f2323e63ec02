"""Kinds of healthy runs, plain ones and those that look odd to a naive rule."""

from __future__ import annotations

from dataclasses import replace

import faults_data as data
import faults_state as state
import numpy as np
from draws import Drawn, Rng, conv, decoder, lstm, mlp, postln
from loop import HEALTHY


def ok_plain(rng: Rng) -> Drawn:
    return decoder(rng), HEALTHY


def ok_schedule(rng: Rng) -> Drawn:
    schedule = str(rng.choice(["step", "wsd", "cosine", "linear"]))
    config = decoder(rng, schedule=schedule)
    return config, replace(HEALTHY, note=f"{schedule} schedule")


def ok_bf16(rng: Rng) -> Drawn:
    return decoder(rng, precision="bf16"), HEALTHY


def ok_fp16(rng: Rng) -> Drawn:
    config = decoder(
        rng, precision="fp16", loss_scale=float(rng.choice([2.0**16, 2.0**25])),
        growth_interval=int(rng.choice([60, 100, 200])),
    )  # fmt: skip
    return config, replace(HEALTHY, note="fp16, a skipped step now and then: normal")


def ok_noisy(rng: Rng) -> Drawn:
    config = decoder(rng, batch_size=int(rng.choice([2, 3, 4])), steps=1000)
    return config, replace(HEALTHY, note="small noisy batches")


def ok_heavy(rng: Rng) -> Drawn:
    config = decoder(rng, batch_size=6, clip=0.0, steps=900)
    return config, replace(HEALTHY, note="no clipping, heavy-tailed grad norm")


def ok_epochs(rng: Rng) -> Drawn:
    config = decoder(rng, epoch_batches=int(rng.choice([10, 20])), steps=600)
    return config, replace(HEALTHY, note="few batches an epoch, memorises: val loss rises")


def ok_blips(rng: Rng) -> Drawn:
    config = decoder(rng, clip=float(rng.choice([0.5, 1.0])))
    steps = sorted(int(s) for s in rng.choice(np.arange(120, config.steps - 20), 4, replace=False))
    factors = tuple(float(f) for f in rng.choice([8, 12, 20, 40], 4))
    return config, state.gradient_blips(tuple(steps), factors)


def ok_restart(rng: Rng) -> Drawn:
    again = int(rng.integers(150, 400))
    config = decoder(rng, resume=(again + int(rng.integers(30, 90)), again))
    return config, replace(HEALTHY, note=f"crash, resumed properly from {again}: steps twice")


def ok_postln(rng: Rng) -> Drawn:
    config = postln(rng, steps=900)
    return config, replace(HEALTHY, note="post-LN: plateau, then a fall of the loss")


def ok_curriculum(rng: Rng) -> Drawn:
    config = decoder(rng, seq_len=24)
    return config, data.longer_sequences(int(rng.integers(200, 400)))


def ok_lstm(rng: Rng) -> Drawn:
    return lstm(rng), HEALTHY


def ok_mlp(rng: Rng) -> Drawn:
    return mlp(rng), HEALTHY


def ok_conv(rng: Rng) -> Drawn:
    return conv(rng), HEALTHY


def ok_zero(rng: Rng) -> Drawn:
    config = mlp(rng, epoch_batches=8, activation="gelu", lr=1e-3, clip=1.0)
    return config, replace(HEALTHY, note="memorises: loss near 0")


def ok_sgd(rng: Rng) -> Drawn:
    config = decoder(rng, optimizer="sgd", lr=0.2, betas=(0.5, 0.0), weight_decay=1e-4, clip=1.0)
    return config, HEALTHY


def ok_clipped(rng: Rng) -> Drawn:
    return decoder(rng, clip=0.5), replace(HEALTHY, note="clipped at 0.5")


def ok_deep(rng: Rng) -> Drawn:
    return decoder(rng, depth=5, steps=500), HEALTHY


def ok_growing(rng: Rng) -> Drawn:
    config = decoder(rng, weight_decay=0.0, schedule="constant", steps=800)
    return config, replace(HEALTHY, note="no weight decay: the weights grow slowly, normal")
