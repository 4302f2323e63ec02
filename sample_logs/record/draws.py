"""Draw what a run of the bench is made of: a healthy model, an onset, a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from configuration import RunConfig
from loop import Fault

Rng = np.random.Generator
Drawn = tuple[RunConfig, Fault]
Kind = Callable[[Rng], Drawn]

_SEPARATE_QKV = ("llama", "bert")


def decoder(rng: Rng, **changes: object) -> RunConfig:
    """Draw a healthy byte-level decoder; `changes` are set on top."""
    width, depth, seq_len = [(32, 4, 48), (64, 2, 48), (64, 3, 32), (48, 3, 40), (32, 3, 32)][
        rng.integers(5)
    ]
    naming = str(rng.choice(["gpt2", "gpt2", "llama", "bert", "blocks", "megatron", "torch"]))
    rms = naming == "llama"
    config = RunConfig(
        width=width, depth=depth, seq_len=seq_len, naming=naming,
        norm="rms" if rms else "ln", bias=not rms,
        fused_qkv=naming not in _SEPARATE_QKV,
        batch_size=int(rng.choice([8, 12, 16, 16])),
        lr=float(rng.choice([1.5e-3, 2e-3, 3e-3])), init_std=float(rng.choice([0.02, 0.05])),
        schedule=str(rng.choice(["cosine", "cosine", "constant", "linear", "wsd"])),
        warmup=int(rng.choice([20, 50, 50, 100])),
        clip=float(rng.choice([0.0, 1.0, 1.0])),
        betas=(0.9, float(rng.choice([0.95, 0.99, 0.999]))),
        steps=int(rng.choice([500, 600, 700, 800])),
    )  # fmt: skip
    return replace(config, **changes)


def mlp(rng: Rng, **changes: object) -> RunConfig:
    """Draw a healthy image classifier of fully connected layers."""
    config = RunConfig(
        arch="mlp", naming="plain", width=int(rng.choice([48, 64, 96])),
        depth=int(rng.choice([3, 4, 5])), activation=str(rng.choice(["relu", "gelu", "tanh"])),
        batch_size=int(rng.choice([32, 64])), lr=float(rng.choice([1e-3, 2e-3])),
        clip=float(rng.choice([0.0, 1.0])), steps=int(rng.choice([700, 900, 1200])),
        image_noise=float(rng.choice([1.5, 2.5, 3.5])),
    )  # fmt: skip
    return replace(config, **changes)


def lstm(rng: Rng, **changes: object) -> RunConfig:
    """Draw a healthy byte-level LSTM."""
    config = RunConfig(
        arch="lstm", naming="plain", width=int(rng.choice([48, 64, 96])),
        depth=int(rng.choice([1, 2])), lr=float(rng.choice([2e-3, 4e-3])),
        steps=int(rng.choice([700, 1000])), schedule=str(rng.choice(["cosine", "constant"])),
    )  # fmt: skip
    return replace(config, **changes)


def conv(rng: Rng, **changes: object) -> RunConfig:
    """Draw a healthy conv net."""
    config = RunConfig(
        arch="conv", naming="plain", width=16, depth=int(rng.choice([2, 3])), batch_size=32,
        lr=float(rng.choice([1e-3, 3e-3])), clip=float(rng.choice([0.0, 1.0])),
        steps=int(rng.choice([600, 800])), image_noise=1.0,
    )  # fmt: skip
    return replace(config, **changes)


def postln(rng: Rng, **changes: object) -> RunConfig:
    """Draw a healthy post-LN transformer."""
    config = decoder(
        rng, arch="postln", norm="ln", bias=True, naming=str(rng.choice(["torch", "bert"]))
    )
    config = replace(config, fused_qkv=config.naming == "torch", lr=1e-3, warmup=100, clip=1.0)
    return replace(config, **changes)


def any_model(rng: Rng, **changes: object) -> RunConfig:
    draw = [decoder, decoder, decoder, decoder, lstm, postln][rng.integers(6)]
    return draw(rng, **changes)


def onset_in(rng: Rng, config: RunConfig) -> int:
    """Draw an onset: mostly in the middle, some within the warm-up, some near the end."""
    kind = rng.random()
    if kind < 0.12:
        return int(rng.integers(25, 80))
    if kind < 0.30:
        return int(rng.integers(int(0.85 * config.steps), int(0.96 * config.steps)))
    return int(rng.integers(150, int(0.8 * config.steps)))


def a_matrix(rng: Rng, config: RunConfig) -> str:
    """Draw one weight matrix of a transformer's blocks."""
    role = str(rng.choice(["mlp.up", "mlp.down", "attn.out"]))
    return f"blocks.{rng.integers(config.depth)}.{role}.weight"
