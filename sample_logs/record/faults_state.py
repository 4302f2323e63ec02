"""Faults of the numbers themselves: lost or flipped weights, NaN, fp16, initialization, scales."""

from __future__ import annotations

import torch
from corpus import PAD
from loop import Fault, TrainState
from torch import Tensor, nn
from torch.nn import functional as F


def bit_flip(onset: int, name: str, power: int) -> Fault:
    """Flip an exponent bit of the largest weight of a tensor: it is 2 ** power times as large."""

    def spoil(state: TrainState) -> None:
        weights = state.parameter(name).data.view(-1)
        weights[weights.abs().argmax()] *= 2.0**power

    note = f"one weight times 2^{power}, as a flipped exponent bit does"
    return _weights_at(onset, spoil, "bit_flip", (name,), note, ("overflow",))


def lost_tensors(onset: int, *names: str, how: str = "zero") -> Fault:
    """Set tensors to zero, or draw them anew, as a broken checkpoint does."""

    def spoil(state: TrainState) -> None:
        for name in names:
            tensor = state.parameter(name).data
            if how == "zero":
                tensor.zero_()
            else:
                generator = torch.Generator().manual_seed(onset)
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * tensor.std())

    note = "lost at a resume: " + ("zeros" if how == "zero" else "random values")
    return _weights_at(onset, spoil, "tensors_lost", names, note)


def weights_reverted(onset: int, earlier: int, prefix: str = "") -> Fault:
    """Bring weights back as they were at an earlier step."""

    def before_step(state: TrainState, step: int) -> None:
        if step == onset:
            weights = state.model.state_dict()
            for key, value in state.saved[earlier].items():
                if key.startswith(prefix):
                    weights[key].copy_(value)

    what = prefix.rstrip(".") or "all weights"
    return Fault(
        "weights_reverted", "state_corruption", onset, True, ("data",) if not prefix else (),
        note=f"{what} as they were at step {earlier}", before_step=before_step,
        keep_weights_of=earlier,
    )  # fmt: skip


def _weights_at(
    onset: int, spoil, fault: str, layers: tuple[str, ...], note: str, acceptable=()
) -> Fault:
    def before_step(state: TrainState, step: int) -> None:
        if step == onset:
            with torch.no_grad():
                spoil(state)

    return Fault(
        fault, "state_corruption", onset, True, acceptable, layers, note, before_step=before_step
    )


def nan_under_where(onset: int, name: str) -> Fault:
    """Let a gradient be NaN in one layer and below: sqrt under where, at one step."""

    def before_step(state: TrainState, step: int) -> None:
        state.module(name).nan_backward = step == onset

    note = f"gradient of sqrt under where: NaN in this layer and below at {onset}, then the loss"
    return Fault("nan_born", "overflow", onset, True, (), (name,), note, before_step=before_step)


def nan_embedding_row(onset: int, byte: str) -> Fault:
    """Make the embedding of one rare byte NaN: it shows when that byte next comes."""

    def spoil(state: TrainState) -> None:
        state.parameter("tok.weight").data[ord(byte)] = torch.nan

    note = f"one embedding row (byte {byte!r}) is NaN: shows when that byte next comes"
    fault = _weights_at(onset, spoil, "nan_born", ("tok.weight",), note, ("state_corruption",))
    return _as_overflow(fault)


def nan_gradient(onset: int, name: str) -> Fault:
    """Let the gradient of one tensor alone be NaN (0 / 0 in a fused kernel)."""

    def after_backward(state: TrainState, step: int) -> None:
        if step == onset:
            state.parameter(name).grad[...] *= torch.nan

    note = "the gradient of one tensor alone is NaN, the loss one step later"
    return Fault(
        "nan_born", "overflow", onset, True, (), (name,), note, after_backward=after_backward
    )


def _as_overflow(fault: Fault) -> Fault:
    return Fault(**{**fault.__dict__, "cause": "overflow"})


def fp16_growth(onset: int, block: int, growth: float, back: float) -> Fault:
    """Let one layer's output grow (the next layer takes it back) till it leaves the fp16 range.

    The gradient of that layer grows with the power `back` of the gain.
    """
    name = f"blocks.{block}.mlp.up.weight"

    def before_step(state: TrainState, step: int) -> None:
        gain = growth ** max(step - onset + 1, 0)
        mlp = state.model.blocks[block].mlp
        mlp.up.output_gain, mlp.up.output_gain_back = gain, gain ** (1 + back)
        mlp.down.input_gain = 1 / gain

    note = "an output that grows till it leaves the fp16 range: loss-scale collapse"
    return Fault(
        "fp16_overflow", "overflow", onset, True, ("architecture",), (name,), note,
        before_step=before_step,
    )  # fmt: skip


def fp16_gradient_growth(onset: int, name: str, growth: float) -> Fault:
    """Let one layer's gradient grow step by step: the scale must fall to make room for it."""

    def before_step(state: TrainState, step: int) -> None:
        layer = state.module(name)
        layer.output_gain_back = growth ** max(step - onset + 1, 0)

    note = "a gradient that grows without end: the loss scale falls and falls"
    return Fault(
        "fp16_overflow", "overflow", onset, True, ("architecture",), (name,), note,
        before_step=before_step,
    )  # fmt: skip


def fp16_dead(onset: int, factor: float) -> Fault:
    """Let every gradient overflow from `onset` on: `factor` times too large, or NaN at once."""

    def loss(logits: Tensor, targets: Tensor, step: int) -> Tensor:
        mean = F.cross_entropy(logits, targets, ignore_index=PAD)
        if step < onset:
            return mean
        return mean.detach() + factor * (mean - mean.detach())  # same value, other gradient

    note = "the gradient leaves the fp16 range at once: every step skipped, loss-scale collapse"
    return Fault("fp16_overflow", "overflow", onset, True, note=note, loss=loss)


def probability_loss(onset: int, sharpness: float) -> Fault:
    """Take -log of an fp16 probability: infinite where the probability underflows."""

    def loss(logits: Tensor, targets: Tensor, step: int) -> Tensor:
        if step < onset:
            return F.cross_entropy(logits, targets, ignore_index=PAD)
        real = targets != PAD
        chosen = torch.softmax(sharpness * logits, -1)[real, targets[real]]
        return -torch.log(chosen.half().float()).mean()

    note = "loss = -log(fp16 probability): infinite where the probability underflows"
    return Fault("inf_loss", "overflow", onset, onset > 0, note=note, loss=loss)


def init_scaled(factor: float, *names: str, note: str) -> Fault:
    """Start with some tensors (default: all matrices) `factor` times too large."""

    def at_build(state: TrainState) -> None:
        for name, parameter in state.model.named_parameters():
            if name in names or (not names and parameter.ndim >= 2):
                parameter.mul_(factor)

    kind = "init_too_large" if factor > 1 else "vanishing_gradients"
    cause = "initialization" if factor > 1 else "vanishing"
    others = ("architecture",) if factor > 1 else ("initialization", "architecture")
    return Fault(kind, cause, acceptable=others, layers=names, note=note, at_build=at_build)


def vanishing(note: str) -> Fault:
    """Name a run whose depth or plateau kills the gradients by configuration."""
    return Fault(
        "vanishing_gradients", "vanishing", acceptable=("initialization", "architecture"), note=note
    )


def layer_scale(name: str, factor: float, *, fault: str, note: str) -> Fault:
    """Feed one layer an input `factor` times too large; its weights start as much smaller."""

    def at_build(state: TrainState) -> None:
        layer = state.module(name)
        layer.input_gain = factor
        layer.weight.div_(factor)

    return Fault(
        fault, "architecture", acceptable=("initialization",), layers=(name,), note=note,
        at_build=at_build,
    )  # fmt: skip


def gradient_summed(name: str, workers: int) -> Fault:
    """Sum one tensor's gradient over the workers where the others' are averaged."""

    def after_backward(state: TrainState, step: int) -> None:
        state.parameter(name).grad.mul_(workers)

    note = f"the gradient of one layer is the sum over {workers} workers, the others' the mean"
    return Fault(
        "layer_scale", "architecture", layers=(name,), note=note, after_backward=after_backward
    )


def gradient_blips(steps: tuple[int, ...], factors: tuple[float, ...]) -> Fault:
    """Blow the gradient up at a few steps; clipping takes it away: healthy."""
    factor_at = dict(zip(steps, factors, strict=True))

    def after_backward(state: TrainState, step: int) -> None:
        if step in factor_at:
            torch._foreach_mul_(_gradients(state.model), factor_at[step])

    note = f"{len(steps)} harmless grad-norm blips, clipped away; loss untouched"
    return Fault("healthy", "none", note=note, after_backward=after_backward)


def _gradients(model: nn.Module) -> list[Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
