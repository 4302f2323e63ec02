"""Kinds of faults that strike at a step: data, LR jumps, lost state, overflow."""

from __future__ import annotations

from dataclasses import replace

import faults_data as data
import faults_optimizer as opt
import faults_state as state
from configuration import RunConfig
from draws import Drawn, Rng, a_matrix, any_model, conv, decoder, mlp, onset_in
from schedules import planned_lr

# --- data -------------------------------------------------------------------------------


def corrupt_labels(rng: Rng) -> Drawn:
    config = any_model(rng)
    return config, data.corrupted_labels(
        onset_in(rng, config), float(rng.choice([0.4, 0.7, 1.0])), int(rng.choice([0, 0, 30, 80]))
    )


def shift_domain(rng: Rng) -> Drawn:
    config = any_model(rng)
    kind = str(rng.choice(["tables", "capitals", "cipher"]))
    share = 1.0 if kind == "capitals" else float(rng.choice([0.5, 1.0]))
    return config, data.shifted_domain(onset_in(rng, config), kind, share)


def bad_random(rng: Rng) -> Drawn:
    config = any_model(rng)
    share = float(rng.choice([0.25, 0.5, 1.0]))
    count = int(rng.choice([1, 1, 1, 3]))
    return config, data.bad_batch("random", onset_in(rng, config), count, share=share)


def bad_repeat(rng: Rng) -> Drawn:
    config = any_model(rng)
    return config, data.bad_batch("repeat", onset_in(rng, config), period=int(rng.integers(1, 7)))


def bad_long(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, data.bad_batch("long", onset_in(rng, config), times=int(rng.choice([4, 6])))


def bad_labels(rng: Rng) -> Drawn:
    config = any_model(rng) if rng.random() < 0.8 else mlp(rng)
    return config, data.bad_batch("labels", onset_in(rng, config), int(rng.choice([1, 1, 4])))


def bad_empty(rng: Rng) -> Drawn:
    # the NaN gradient of the empty batch must be skipped, as careful loops do
    config = decoder(rng, precision="fp16", loss_scale=2.0**14, growth_interval=150)
    return config, data.bad_batch("empty", onset_in(rng, config))


def bad_pixels(rng: Rng) -> Drawn:
    config = mlp(rng) if rng.random() < 0.6 else conv(rng)
    return config, data.bad_batch(
        "pixels", onset_in(rng, config), factor=float(rng.choice([8, 30]))
    )


# --- optimizer --------------------------------------------------------------------------


def lr_jump30(rng: Rng) -> Drawn:
    config = any_model(rng)
    return config, opt.lr_jump(
        onset_in(rng, config), float(rng.choice([20, 30])), int(rng.choice([1, 3, 10]))
    )


def lr_jump100(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, opt.lr_jump(onset_in(rng, config), 100.0, int(rng.choice([1, 2, 3])))


def lr_jump_lasting(rng: Rng) -> Drawn:
    config = decoder(rng, schedule="constant", lr=2e-3)
    return config, opt.lr_jump(onset_in(rng, config), float(rng.choice([15, 40])), 10_000)


def lr_warm_restart(rng: Rng) -> Drawn:
    config = decoder(rng, schedule=str(rng.choice(["cosine", "linear"])), clip=0.0)
    onset = int(rng.integers(int(0.5 * config.steps), int(0.8 * config.steps)))
    factor = float(rng.choice([0.03, 0.06])) / planned_lr(config, onset)
    return config, opt.lr_warm_restart(onset, round(factor, 1), int(rng.choice([30, 60])))


# --- state corruption -------------------------------------------------------------------


def bit_flip(rng: Rng) -> Drawn:
    config = decoder(rng)
    onset, name = onset_in(rng, config), a_matrix(rng, config)
    return config, state.bit_flip(onset, name, int(rng.choice([10, 12, 16])))


def tensor_lost(rng: Rng) -> Drawn:
    config = decoder(rng)
    outer = ["head.weight", "tok.weight", "norm_f.weight"]
    name = str(rng.choice([a_matrix(rng, config), *outer]))
    how = str(rng.choice(["zero", "random"])) if name in outer[:2] else "zero"
    return config, state.lost_tensors(_trained(rng, config), name, how=how)


def tensors_lost(rng: Rng) -> Drawn:
    config = any_model(rng)
    if config.arch == "lstm":
        names: tuple[str, ...] = ("tok.weight", "rnn.weight_ih_l0", "rnn.weight_hh_l0")
    else:  # one shard of the checkpoint: the embeddings and the first block
        qkv = ["attn.qkv"] if config.fused_qkv else ["attn.q", "attn.k", "attn.v"]
        roles = ("mlp.up", "mlp.down", "attn.out", *qkv)
        names = ("tok.weight", "pos.weight", *(f"blocks.0.{role}.weight" for role in roles))
    return config, state.lost_tensors(_trained(rng, config), *names, how="random")


def reverted(rng: Rng) -> Drawn:
    config = decoder(rng)
    onset = int(rng.integers(300, config.steps - 60))
    prefix = str(rng.choice(["", "blocks."]))
    return config, state.weights_reverted(onset, int(rng.integers(20, 80)), prefix)


def _trained(rng: Rng, config: RunConfig) -> int:
    """Draw an onset at which the lost weights have learned something."""
    return max(onset_in(rng, config), 150)


def opt_units(rng: Rng) -> Drawn:
    config = decoder(rng, clip=0.0)
    onset = int(rng.integers(200, config.steps - 80))
    if rng.random() < 0.5:
        config = replace(config, resume=(onset + int(rng.integers(20, 70)), onset))
    return config, opt.wrong_units(onset, float(rng.choice([1e-6, 1e-5])))


def opt_lost(rng: Rng) -> Drawn:
    config = decoder(rng)
    onset = int(rng.integers(200, config.steps - 120))
    config = replace(config, resume=(onset + int(rng.integers(20, 70)), onset))
    return config, opt.optimizer_state_lost(onset)


# --- overflow ---------------------------------------------------------------------------


def nan_where(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, state.nan_under_where(onset_in(rng, config), a_matrix(rng, config))


def nan_row(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, state.nan_embedding_row(onset_in(rng, config), str(rng.choice(list("@Q%&"))))


def nan_tensor(rng: Rng) -> Drawn:
    config = decoder(rng, clip=0.0)
    name = str(rng.choice([a_matrix(rng, config), "head.weight", "tok.weight"]))
    return config, state.nan_gradient(onset_in(rng, config), name)


def fp16_gain(rng: Rng) -> Drawn:
    config = decoder(rng, precision="fp16", lr=2e-3)
    onset = int(rng.integers(100, config.steps - 200))
    return config, state.fp16_growth(
        onset, int(rng.integers(config.depth)), float(rng.choice([1.05, 1.08])),
        float(rng.choice([0.1, 0.25])),
    )  # fmt: skip


def fp16_gradient(rng: Rng) -> Drawn:
    config = decoder(rng, precision="fp16", lr=2e-3, clip=1.0)
    onset = int(rng.integers(100, config.steps - 250))
    return config, state.fp16_gradient_growth(
        onset, a_matrix(rng, config), float(rng.choice([1.03, 1.06]))
    )


def fp16_dead(rng: Rng) -> Drawn:
    factor, floor = [(1e8, 1.0), (float("nan"), 2.0**-24), (float("nan"), 1.0)][rng.integers(3)]
    config = decoder(rng, precision="fp16", loss_scale_floor=floor)
    return config, state.fp16_dead(onset_in(rng, config), factor)


def fp16_prob(rng: Rng) -> Drawn:
    floor = float(rng.choice([1.0, 2.0**-24]))
    config = decoder(rng, precision="fp16", lr=2e-3, loss_scale_floor=floor, growth_interval=200)
    onset = int(rng.choice([0, 150, 300]))
    return config, state.probability_loss(onset, float(rng.choice([1.0, 2.0, 3.0])))
