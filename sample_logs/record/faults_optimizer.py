"""Faults of the optimizer: learning rate, betas, weight decay, one layer's rate."""

from __future__ import annotations

import math

import torch
from loop import Fault, TrainState


def lr_jump(onset: int, factor: float, count: int) -> Fault:
    """Multiply the learning rate for `count` steps."""
    return Fault(
        "lr_jump", "optimizer", onset, True,
        note=f"LR x{factor:g} for {count} steps",
        lr_factor=lambda step: factor if onset <= step < onset + count else 1.0,
    )  # fmt: skip


def lr_warm_restart(onset: int, factor: float, half_life: int) -> Fault:
    """Restart the schedule much too high, falling back within some half-lives."""

    def lr_factor(step: int) -> float:
        return 1.0 + (factor - 1) * math.exp2(-(step - onset) / half_life) if step >= onset else 1.0

    return Fault(
        "lr_warm_restart", "optimizer", onset, True,
        note=f"warm restart at {factor:g} times the planned LR", lr_factor=lr_factor,
    )  # fmt: skip


def lr_too_high(note: str) -> Fault:
    """Name a run whose configuration has a learning rate past its limit from the start."""
    return Fault("lr_too_high", "optimizer", acceptable=("initialization",), note=note)


def lr_rising(note: str) -> Fault:
    """Name a run whose long warm-up leads past the limit: unstable on the way."""
    return Fault("lr_too_high", "optimizer", onset=-1, note=note)


def lr_borderline() -> Fault:
    """Name a run at the edge: some seeds spike, some do not."""
    return Fault(
        "lr_borderline", "optimizer", acceptable=("initialization", "architecture"),
        note="borderline Adam learning rate in a net without norms before its MLPs",
    )  # fmt: skip


def adam_instability(note: str, *acceptable: str) -> Fault:
    """Name a run whose Adam goes unstable by itself; the onset is measured."""
    return Fault("adam_instability", "optimizer", onset=-1, acceptable=acceptable, note=note)


def layer_lr(name: str, factor: float) -> Fault:
    """Give one tensor a learning rate `factor` times the others'."""
    return Fault(
        "layer_lr_too_high", "optimizer", acceptable=("architecture", "weight_decay"),
        layers=(name,), note=f"learning rate of one layer x{factor:g} (param group bug)",
        layer_lr_factor=factor,
    )  # fmt: skip


def attention_lr(depth: int, factor: float) -> Fault:
    """Let the attention logits grow: Q and K learn `factor` times as fast, without qk-norm."""
    names = tuple(f"blocks.{n}.attn.{part}.weight" for n in range(depth) for part in "qk")
    return Fault(
        "attention_logit_growth", "architecture", acceptable=("optimizer",), layers=names,
        note=f"Q/K learning rate x{factor:g}, no qk-norm", layer_lr_factor=factor,
    )  # fmt: skip


def weight_decay_sign(strength: float, onset: int = 0) -> Fault:
    """Turn the sign of the weight decay: the weights grow exponentially."""

    def before_step(state: TrainState, step: int) -> None:
        if step == onset:
            for group in state.optimizer.param_groups:
                group["weight_decay"] = -strength

    return Fault(
        "weight_decay_sign", "weight_decay", onset, onset > 0, ("optimizer",),
        note="weight decay with the wrong sign: exponential growth", before_step=before_step,
    )  # fmt: skip


def weight_decay_too_small() -> Fault:
    """Name a run whose decay cannot hold the weights: they grow without end."""
    return Fault(
        "weight_decay_too_small", "weight_decay", acceptable=("optimizer",),
        note="weight decay far too small for this learning rate: the weights only grow",
    )  # fmt: skip


def weight_decay_too_large(strength: float, onset: int = 0) -> Fault:
    """Decay the weights so fast that the model fades."""

    def before_step(state: TrainState, step: int) -> None:
        if step == onset:
            for group in state.optimizer.param_groups:
                if group["weight_decay"] > 0:
                    group["weight_decay"] = strength

    return Fault(
        "weight_decay_too_large", "weight_decay", onset, onset > 0, ("optimizer", "vanishing"),
        note=f"weight decay {strength:g}: the weights fade", before_step=before_step,
    )  # fmt: skip


def optimizer_state_lost(onset: int) -> Fault:
    """Forget the optimizer's moments at a resume."""
    return _at_resume(
        onset, lambda state: state.optimizer.state.clear(), "none",
        "optimizer state lost at a resume: no visible trace, so it counts as healthy",
    )  # fmt: skip


def wrong_units(onset: int, factor: float) -> Fault:
    """Bring the second moments back in the wrong unit."""

    def spoil(state: TrainState) -> None:
        for moments in state.optimizer.state.values():
            moments["exp_avg_sq"].mul_(factor)

    return _at_resume(
        onset, spoil, "state_corruption",
        f"at a resume the second moments come back in the wrong units (x {factor:g})",
    )  # fmt: skip


def _at_resume(onset: int, spoil, cause: str, note: str) -> Fault:
    seen: list[int] = []

    def before_step(state: TrainState, step: int) -> None:
        resumed = state.config.resume is not None and state.config.resume[1] == onset
        if step != onset:
            return
        seen.append(step)
        if resumed and len(seen) < 2:  # the first time it is the checkpoint, not the resume
            return
        with torch.no_grad():
            spoil(state)

    return Fault(
        "optimizer_state_lost", cause, onset, True, ("optimizer",), note=note,
        before_step=before_step,
    )  # fmt: skip
