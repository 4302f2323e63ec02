"""Kinds of faults that act from the first step on, or arise by themselves."""

from __future__ import annotations

import faults_optimizer as opt
import faults_state as state
from draws import Drawn, Rng, a_matrix, any_model, decoder, mlp, postln

# --- optimizer --------------------------------------------------------------------------


def lr_high_sgd(rng: Rng) -> Drawn:
    config = decoder(
        rng, optimizer="sgd", lr=float(rng.choice([1.0, 1.3, 2.0])), clip=0.0, warmup=0,
        betas=(float(rng.choice([0.0, 0.5])), 0.0), weight_decay=0.0,
    )  # fmt: skip
    return config, opt.lr_too_high(f"SGD {config.lr}, no warm-up")


def lr_high_adam(rng: Rng) -> Drawn:
    config = decoder(rng, lr=float(rng.choice([0.05, 0.1, 0.2])), clip=0.0, warmup=10)
    return config, opt.lr_too_high(f"Adam {config.lr}")


def lr_high_mlp(rng: Rng) -> Drawn:
    config = mlp(rng, optimizer="sgd", lr=float(rng.choice([1.0, 2.0])), clip=0.0, warmup=0)
    return config, opt.lr_too_high(f"SGD {config.lr} with momentum, no warm-up")


def rise_sgd(rng: Rng) -> Drawn:
    config = decoder(
        rng, optimizer="sgd", lr=float(rng.choice([1.5, 2.5, 4.0])), clip=0.0,
        warmup=int(rng.choice([300, 400])), betas=(0.0, 0.0), weight_decay=0.0,
    )  # fmt: skip
    return config, opt.lr_rising("long warm-up to a peak that is too high: unstable on the way")


def rise_adam(rng: Rng) -> Drawn:
    config = decoder(
        rng, lr=float(rng.choice([0.04, 0.06])), clip=0.0, warmup=int(rng.choice([300, 400])),
        mlp_norm=False, init_std=0.02,
    )  # fmt: skip
    return config, opt.lr_rising("long Adam warm-up to a peak that is too high")


def borderline(rng: Rng) -> Drawn:
    config = decoder(
        rng, mlp_norm=False, lr=float(rng.choice([0.014, 0.017, 0.02])), clip=0.0, steps=400,
        warmup=20, schedule="cosine", betas=(0.9, 0.999), init_std=0.02,
    )  # fmt: skip
    return config, opt.lr_borderline()


def adam_no_norms(rng: Rng) -> Drawn:
    config = decoder(
        rng, mlp_norm=False, lr=float(rng.choice([0.02, 0.025])), clip=0.0, steps=500, warmup=20,
        betas=(0.9, 0.999), init_std=0.02,
    )  # fmt: skip
    return config, opt.adam_instability(
        "Adam LR too high for a net without norms before its MLPs: spikes with recovery",
        "architecture", "initialization",
    )  # fmt: skip


def adam_betas(rng: Rng) -> Drawn:
    config = decoder(rng, betas=(0.99, 0.9), clip=0.0, lr=float(rng.choice([2e-3, 4e-3])))
    return config, opt.adam_instability(
        "beta1 .99 > beta2 .9: updates outgrow the gradient", "weight_decay"
    )


def adam_late(rng: Rng) -> Drawn:
    config = mlp(
        rng, epoch_batches=int(rng.choice([5, 10])), lr=float(rng.choice([1e-2, 2e-2])), clip=0.0,
        activation="relu", betas=(0.9, float(rng.choice([0.9, 0.95, 0.99]))), steps=900,
        schedule="constant", image_noise=1.5,
    )  # fmt: skip
    return config, opt.adam_instability(
        "Adam late in training: tiny second moments, spikes with recovery"
    )


def layer_lr(rng: Rng) -> Drawn:
    config = decoder(rng, clip=0.0)
    return config, opt.layer_lr(a_matrix(rng, config), float(rng.choice([80, 150])))


# --- initialization, architecture, weight decay, vanishing ------------------------------


def init_head(rng: Rng) -> Drawn:
    config = decoder(rng, steps=400)
    factor = float(rng.choice([30, 60, 100]))
    return config, state.init_scaled(factor, "head.weight", note="LM head too large at init")


def init_group(rng: Rng) -> Drawn:
    return init_head(rng)


def init_all(rng: Rng) -> Drawn:
    config = any_model(rng) if rng.random() < 0.6 else mlp(rng)
    factor = {"lstm": 12.0, "mlp": 8.0}.get(config.arch, 12.0)
    return config, state.init_scaled(factor, note=f"all weights {factor:g} times too large")


def init_embedding(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, state.init_scaled(160.0, "tok.weight", note="embedding std 8")


def init_matrix(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, state.init_scaled(
        150.0, a_matrix(rng, config), note="one matrix 150 times too large"
    )


def attention_growth(rng: Rng) -> Drawn:
    config = decoder(rng, fused_qkv=False, clip=0.0)
    return config, opt.attention_lr(config.depth, 100.0)


def layer_input(rng: Rng) -> Drawn:
    config = decoder(rng)
    name = f"blocks.{rng.integers(config.depth)}.mlp.up.weight"
    return config, state.layer_scale(
        name, 100.0, fault="layer_unnormalised",
        note="an MLP whose input is 100 times too large: its gradient is far above its peers'",
    )  # fmt: skip


def layer_gain(rng: Rng) -> Drawn:
    config = decoder(rng)
    name = f"blocks.{rng.integers(config.depth)}.attn.out.weight"
    return config, state.layer_scale(
        name, 100.0, fault="layer_scale",
        note="an attention output projection whose input is 100 times too large",
    )  # fmt: skip


def head_gain(rng: Rng) -> Drawn:
    config = decoder(rng)
    return config, state.layer_scale(
        "head.weight", 50.0, fault="layer_scale", note="a head whose input is 50 times too large"
    )


def wd_sign(rng: Rng) -> Drawn:
    config = decoder(rng, lr=2e-3, schedule="constant")
    return config, opt.weight_decay_sign(float(rng.choice([0.8, 1.5, 3.0])))


def wd_sign_later(rng: Rng) -> Drawn:
    config = decoder(rng, lr=2e-3, schedule="constant")
    return config, opt.weight_decay_sign(float(rng.choice([2.0, 4.0])), int(rng.integers(100, 250)))


def wd_small(rng: Rng) -> Drawn:
    config = decoder(
        rng, lr=float(rng.choice([0.01, 0.015])), schedule="constant", weight_decay=1e-7, steps=900,
        clip=1.0, init_std=0.02,
    )  # fmt: skip
    return config, opt.weight_decay_too_small()


def wd_large(rng: Rng) -> Drawn:
    config = decoder(rng, lr=2e-3, schedule="constant")
    onset = int(rng.choice([0, 250]))
    return config, opt.weight_decay_too_large(float(rng.choice([20.0, 50.0])), onset)


def dead_sigmoid(rng: Rng) -> Drawn:
    config = mlp(rng, depth=int(rng.choice([8, 10, 12])), activation="sigmoid", steps=800)
    return config, state.vanishing("deep sigmoid net")


def dead_postln(rng: Rng) -> Drawn:
    config = postln(
        rng, depth=int(rng.choice([8, 10])), width=32, seq_len=32,
        lr=float(rng.choice([1e-2, 2e-2])), warmup=0, steps=500, batch_size=12, clip=0.0,
    )  # fmt: skip
    return config, state.vanishing("deep post-LN net without warm-up, at the unigram plateau")


def tiny_init(rng: Rng) -> Drawn:
    config = mlp(rng, depth=int(rng.choice([8, 10])), activation=str(rng.choice(["tanh", "relu"])))
    return config, state.init_scaled(0.01, note="all weights far too small at init")
