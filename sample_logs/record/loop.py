"""One training run, recorded at every step: norms before clipping, per tensor and in all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from configuration import RunConfig
from corpus import (
    PAD,
    Batch,
    batch_statistics,
    image_batch,
    text_batch,
    token_count,
)
from models import Transformer, build_model
from precision import LossScaler, rounded
from schedules import planned_lr
from torch import Tensor, nn
from torch.nn import functional as F

VALIDATE_EVERY = 100
STOP_AFTER_NAN = 40  # losses in a row

# Weights, optimizer state, loss scaler, tokens seen.
Checkpoint = tuple[dict[str, Any], dict[str, Any], LossScaler, int]


@dataclass
class TrainState:
    """What a fault may lay hands on: the model, the optimizer, the scaler, old weights."""

    config: RunConfig
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: LossScaler
    saved: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def parameter(self, name: str) -> nn.Parameter:
        """Return the parameter of that name."""
        return dict(self.model.named_parameters())[name]

    def module(self, name: str) -> nn.Module:
        """Return the module that holds the parameter `name`."""
        return self.model.get_submodule(name.rpartition(".")[0])


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a run, and what an expert may call it.

    `onset` is the first step it acts on; `timed` says that the run is the same as the run
    without it up to there. The hooks are all optional.
    """

    name: str
    cause: str
    onset: int = 0
    timed: bool = False
    acceptable: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    note: str = ""
    at_build: Callable[[TrainState], None] | None = None
    batch: Callable[[Batch, int, np.random.Generator], Batch] | None = None
    lr_factor: Callable[[int], float] | None = None
    layer_lr_factor: float = 1.0
    before_step: Callable[[TrainState, int], None] | None = None
    after_backward: Callable[[TrainState, int], None] | None = None
    loss: Callable[[Tensor, Tensor, int], Tensor] | None = None
    keep_weights_of: int | None = None


HEALTHY = Fault("healthy", "none")


@dataclass
class Record:
    """Every step of a run in the order it was run (a restart repeats step numbers).

    One entry a row; `layer_grad` and `layer_param` are [rows, parameters]. NaN and Inf are kept
    as they came. `val_loss` holds the rows at which it was measured.
    """

    layers: list[str]
    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    param_norm: list[float] = field(default_factory=list)
    loss_scale: list[float] = field(default_factory=list)
    logit_max: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    batch_id: list[int] = field(default_factory=list)
    statistics: list[tuple[float, float, float]] = field(default_factory=list)
    samples: list[list[int]] = field(default_factory=list)
    layer_grad: list[list[float]] = field(default_factory=list)
    layer_param: list[list[float]] = field(default_factory=list)
    val_loss: dict[int, float] = field(default_factory=dict)  # row -> value


def train(config: RunConfig, fault: Fault = HEALTHY) -> Record:
    """Run the configuration with the fault and return its record."""
    state = start(config, fault)
    names = [name for name, _ in state.model.named_parameters()]
    record = Record(names)
    checkpoint: Checkpoint | None = None
    tokens = nan_run = 0
    for position, step in enumerate(_step_numbers(config)):
        if config.resume and step == config.resume[1]:
            if position == step:
                checkpoint = _snapshot(state, tokens)
            elif checkpoint is not None:
                tokens = _restore(state, checkpoint)
        if step == fault.keep_weights_of:
            state.saved[step] = copy.deepcopy(state.model.state_dict())
        if fault.before_step:
            fault.before_step(state, step)
        batch = draw_batch(config, fault, position, step)
        tokens += token_count(batch)
        _one_step(state, fault, record, batch, step)
        record.batch_id.append(
            position % config.epoch_batches if config.epoch_batches else position
        )
        record.tokens.append(tokens)
        if (step + 1) % VALIDATE_EVERY == 0:
            record.val_loss[len(record.step) - 1] = _validate(state)
        nan_run = 0 if np.isfinite(record.loss[-1]) else nan_run + 1
        if nan_run == STOP_AFTER_NAN:
            break
    return record


def start(config: RunConfig, fault: Fault = HEALTHY) -> TrainState:
    """Build model, optimizer and scaler, with what the fault does to them at the start."""
    model = build_model(config)
    optimizer = _optimizer(config, model, fault)
    scaler = LossScaler(
        config.loss_scale if config.precision == "fp16" else 1.0,
        config.growth_interval,
        config.loss_scale_floor,
    )
    state = TrainState(config, model, optimizer, scaler)
    if fault.at_build:
        with torch.no_grad():
            fault.at_build(state)
    return state


def _step_numbers(config: RunConfig) -> Iterator[int]:
    if config.resume is None:
        yield from range(config.steps)
        return
    crash, again = config.resume
    yield from range(crash)
    yield from range(again, config.steps)


def _optimizer(config: RunConfig, model: nn.Module, fault: Fault) -> torch.optim.Optimizer:
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        decay = config.weight_decay if parameter.ndim >= 2 else 0.0
        factor = fault.layer_lr_factor if name in fault.layers else 1.0
        groups.setdefault((decay, factor), []).append(parameter)
    parameters = [{"params": members} for members in groups.values()]
    if config.optimizer == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(
            parameters, lr=config.lr, momentum=config.betas[0]
        )
    else:
        optimizer = torch.optim.AdamW(parameters, lr=config.lr, betas=config.betas, eps=config.eps)
    # set afterwards: the constructors refuse the negative decay that one fault needs
    for group, (decay, factor) in zip(optimizer.param_groups, groups, strict=True):
        group["weight_decay"] = decay
        group["lr_multiplier"] = factor
    return optimizer


def draw_batch(config: RunConfig, fault: Fault, position: int, step: int) -> Batch:
    """Return the batch of a step, `position` counted without the steps that a resume repeats."""
    number = position % config.epoch_batches if config.epoch_batches else position
    rng = np.random.default_rng((config.seed, 1, number))
    if config.is_text:
        batch = text_batch(rng, config.batch_size, config.seq_len, domain=config.domain)
    else:
        batch = image_batch(rng, config.batch_size, noise=config.image_noise)
    if fault.batch and step >= fault.onset:
        return fault.batch(batch, step, rng)
    return batch


def _one_step(state: TrainState, fault: Fault, record: Record, batch: Batch, step: int) -> None:
    config, model = state.config, state.model
    lr = planned_lr(config, step) * (fault.lr_factor(step) if fault.lr_factor else 1.0)
    for group in state.optimizer.param_groups:
        group["lr"] = lr * group["lr_multiplier"]
    parameters = [parameter for _, parameter in model.named_parameters()]
    values = torch.stack(torch._foreach_norm([p.detach() for p in parameters]))
    loss = batch_loss(model, batch, config.precision, fault, step)
    state.optimizer.zero_grad(set_to_none=True)
    (loss * state.scaler.scale).backward()
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    if state.scaler.scale != 1.0:
        torch._foreach_mul_(gradients, 1.0 / state.scaler.scale)
    if fault.after_backward:
        fault.after_backward(state, step)
    norms = torch.stack(torch._foreach_norm(gradients))
    total = norms.norm()
    record.step.append(step)
    record.loss.append(loss.item())
    record.grad_norm.append(float(total))
    record.lr.append(lr)
    record.param_norm.append(float(values.norm()))
    record.loss_scale.append(state.scaler.scale)
    record.logit_max.append(model.logit_max() if isinstance(model, Transformer) else 0.0)
    record.statistics.append(batch_statistics(batch))
    record.samples.append(batch.indices.tolist())
    record.layer_grad.append(norms.tolist())
    record.layer_param.append(values.tolist())
    _update(state, gradients, total)


def batch_loss(
    model: nn.Module, batch: Batch, precision: str, fault: Fault = HEALTHY, step: int = 0
) -> Tensor:
    """Return the mean cross-entropy in nats; an empty batch gives 0 / 0, so NaN."""
    logits = rounded(model(torch.from_numpy(batch.inputs)), precision)
    targets = torch.from_numpy(batch.targets).reshape(-1)
    logits = logits.reshape(-1, logits.shape[-1])
    if fault.loss:
        return fault.loss(logits, targets, step)
    return F.cross_entropy(logits, targets, ignore_index=PAD)


def _update(state: TrainState, gradients: list[Tensor], total: Tensor) -> None:
    """Clip, skip on overflow (fp16 only), step."""
    fp16 = state.config.precision == "fp16"
    overflow = not bool(torch.isfinite(total))
    if state.config.clip > 0:
        factor = torch.clamp(state.config.clip / (total + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, factor)
    if not (fp16 and overflow):
        state.optimizer.step()
    if fp16:
        state.scaler.update(overflow)


def _validate(state: TrainState) -> float:
    config = state.config
    total = 0.0
    state.model.eval()
    with torch.no_grad():
        for number in range(3):
            rng = np.random.default_rng((config.seed, 2, number))
            if config.is_text:
                batch = text_batch(rng, 32, config.seq_len, domain=config.domain, part="validation")
            else:
                batch = image_batch(rng, 64, noise=config.image_noise)
            total += float(batch_loss(state.model, batch, config.precision))
    state.model.train()
    return total / 3


def _snapshot(state: TrainState, tokens: int) -> Checkpoint:
    return copy.deepcopy(
        (state.model.state_dict(), state.optimizer.state_dict(), state.scaler, tokens)
    )


def _restore(state: TrainState, checkpoint: Checkpoint) -> int:
    weights, moments, scaler, tokens = copy.deepcopy(checkpoint)
    state.model.load_state_dict(weights)
    state.optimizer.load_state_dict(moments)
    state.scaler = scaler
    return tokens
