"""One step as measured: what the host knows, what is still on a device, and the row they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from torch import Tensor

from stabdiag.recorder.fetching import fetched
from stabdiag.recorder.norms import ABSENT, Norms
from stabdiag.recorder.rows import Value, nine_digits

Numbers: TypeAlias = dict[str, list[float]]
MicroLosses: TypeAlias = Literal["mean", "sum"]


@dataclass
class Step:
    """One optimizer step while it is measured.

    `singles` are values by their name in the log, one for each micro-batch; `waiting` those still
    on a device. `grads` and `params` are norms on the device, `grad_norms` and `param_norms` the
    same on the host. `factor` is what the gradients were multiplied by when measured (a loss
    scale); `told_norm` in `singles` is the norm before clipping where the loop gave it.
    """

    step: int
    segment: int
    singles: Numbers = field(default_factory=dict)
    waiting: list[tuple[str, Tensor]] = field(default_factory=list)
    ids: dict[str, list[Any]] = field(default_factory=dict)
    grads: tuple[Norms, ...] = ()
    params: tuple[Norms, ...] = ()
    grad_norms: Numbers = field(default_factory=dict)
    param_norms: Numbers = field(default_factory=dict)
    factor: float = 1.0
    loss_scale: float | None = None
    skipped: bool | None = None
    measured: bool = False
    layers_due: bool = False

    def add(self, name: str, value: Tensor | float) -> None:
        """Take a single value, wherever it is."""
        if isinstance(value, Tensor):
            self.waiting.append((name, value))
        else:
            self.singles.setdefault(name, []).append(float(value))

    def on_device(self) -> Iterator[tuple[Numbers, tuple[str, ...], Tensor]]:
        """Yield what is still on a device, its names, and where its numbers go."""
        for name, tensor in self.waiting:
            yield self.singles, (name,), tensor
        for norms in self.grads:
            yield self.grad_norms, norms.names, norms.values
        for norms in self.params:
            yield self.param_norms, norms.names, norms.values

    def forget_device(self) -> None:
        """Drop what is on a device: it was fetched, or it can't be."""
        self.waiting = []
        self.grads = self.params = ()

    def loss(self, micro_losses: MicroLosses) -> float | None:
        """Return the loss of the step from its micro-batches; None where none was given."""
        losses = self.singles.get("loss")
        if not losses:
            return None
        return sum(losses) / (len(losses) if micro_losses == "mean" else 1)

    def grad_norm(self) -> float | None:
        """Return the gradient norm before clipping and without loss scale; None if not measured."""
        told = self.singles.get("told_norm")
        if told:
            return told[-1]
        total = total_norm(self.grad_norms)
        return None if total is None else total / self.factor

    def layer_grads(self) -> dict[str, float]:
        """Return the gradient norm of each layer, before clipping and without loss scale.

        Clipping scales all layers alike, so the ratio of the told norm to the measured one undoes
        it.
        """
        total, told = total_norm(self.grad_norms), self.singles.get("told_norm")
        scale = 1.0 / self.factor
        if told and total and math.isfinite(told[-1]) and told[-1] > total * scale:
            scale = told[-1] / total
        return {name: value * scale for name, value in last(self.grad_norms).items()}


def fetch(steps: Sequence[Step]) -> None:
    """Bring what the steps have on a device to the host, in one copy for each device."""
    jobs = [job for step in steps for job in step.on_device()]
    numbers = fetched([tensor for _, _, tensor in jobs])
    for (into, names, _), values in zip(jobs, numbers, strict=True):
        for name, value in zip(names, values, strict=True):
            into.setdefault(name, []).append(value)
    for step in steps:
        step.forget_device()


def last(norms: Numbers) -> dict[str, float]:
    """Return the norms of the tensors that there are."""
    return {name: values[-1] for name, values in norms.items() if values[-1] != ABSENT}


def total_norm(norms: Numbers) -> float | None:
    """Return the L2 norm over all tensors: NaN if one is, else infinity if one is; None without."""
    present = last(norms)
    # no hypot: it gives infinity where both are there
    return math.sqrt(sum(value * value for value in present.values())) if present else None


def row_of(
    step: Step, param_norm: float | None, with_layers: bool, micro_losses: MicroLosses
) -> dict[str, Value]:
    """Return the row of a fetched step.

    Args:
        step: the step.
        param_norm: the last measured parameter norm, for the ratio.
        with_layers: whether the gradient norms of the layers are in it.
        micro_losses: whether the losses of micro-batches are averaged or added up.
    """
    row: dict[str, Value] = {"step": step.step, "segment": step.segment}
    loss, grad_norm = step.loss(micro_losses), step.grad_norm()
    if loss is not None:
        row["loss"] = nine_digits(loss)
    if grad_norm is not None:
        row["grad_norm"] = nine_digits(grad_norm)
    measured = total_norm(step.param_norms)
    if measured is not None:
        row["param_norm"] = nine_digits(measured)
    if grad_norm is not None and param_norm:
        row["grad_param_ratio"] = nine_digits(grad_norm / param_norm)
    row |= {name: value[-1] for name, value in step.singles.items() if name.startswith("lr")}
    if step.loss_scale is not None:
        row["loss_scale"] = step.loss_scale
    if step.skipped is not None:
        row["skipped"] = int(step.skipped)
    row |= {name: _ids(parts) for name, parts in step.ids.items()}
    row |= dict(_batch_and_activations(step.singles))
    if with_layers:
        row |= _prefixed("grad_norm", step.layer_grads())
        row |= _prefixed("param_norm", last(step.param_norms))
    return row


def _prefixed(metric: str, norms: Mapping[str, float]) -> dict[str, Value]:
    return {f"{metric}/{name}": nine_digits(value) for name, value in norms.items()}


def _batch_and_activations(singles: Numbers) -> Iterator[tuple[str, Value]]:
    maxima = [v for name, v in singles.items() if name.startswith("activation_max/")]
    if maxima:
        yield "activation_max", nine_digits(_largest(v for values in maxima for v in values))
    for name, values in singles.items():
        if name.startswith("activation_max/") or name.rpartition("/")[2] in ("abs_max", "max_len"):
            yield name, nine_digits(_largest(values))
        elif name == "batch/targets":
            yield name, sum(values)
        elif name.startswith("batch/"):
            yield name, nine_digits(sum(values) / len(values))


def _largest(values: Iterable[float]) -> float:
    """Return the maximum, NaN if one is: `max` would depend on the order."""
    every = list(values)
    return math.nan if any(math.isnan(v) for v in every) else max(every)


def _ids(parts: Sequence[Any]) -> Value:
    """Join the indices of a step's micro-batches; one alone stays a single id."""
    plain = [part.tolist() if isinstance(part, Tensor) else part for part in parts]
    if len(plain) == 1:
        return plain[0]  # type: ignore[no-any-return]
    joined: list[int | str] = []
    for part in plain:
        joined += part if isinstance(part, list) else [part]
    return joined
