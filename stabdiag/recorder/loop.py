"""The recorder of a plain training loop: measures around each optimizer step and writes its row."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from stabdiag.errors import UsageError
from stabdiag.recorder.activations import ActivationMaxima
from stabdiag.recorder.batches import Batch, batch_statistics, index_fields
from stabdiag.recorder.cadence import cadence_from
from stabdiag.recorder.measured import MicroLosses, Step, fetch, last, row_of, total_norm
from stabdiag.recorder.norms import Named, Norms, clip, norms_of
from stabdiag.recorder.rows import Row, Value
from stabdiag.recorder.scaling import Scaling
from stabdiag.recorder.sharding import is_writer, mean_over_ranks, parameters_of, plain
from stabdiag.recorder.sinks import Nowhere, Sink, open_sink
from stabdiag.recorder.stepping import StepHook, learning_rates
from stabdiag.recorder.watching import Watch, not_finite

# Steps whose numbers may wait on an accelerator; fetching them makes the host wait once for all.
LATE_STEPS = 10


class Recorder:
    """Record loss, norms, learning rate, loss scale and data of each step of a training loop.

    Two calls a step: `after_backward(loss)` when the gradients are complete and not yet clipped,
    and `after_step()` when optimizer and scaler are done. Build it when the model is on its device
    and wrapped (DDP, FSDP); with several processes every process makes the same calls, and rank 0
    writes.

    Args:
        model: the model; its trainable parameters are measured under their own names.
        optimizer: gives the learning rate of each parameter group.
        path: `*.jsonl`, or `*.parquet` for Parquet parts beside each other. A log that exists is
            continued as a new segment.
        scaler: the GradScaler of mixed precision, if there is one.
        clip: clip gradients to this norm in `after_backward`, with the norm just measured. Leave
            the loop's own clip_grad_norm_ out then; it would do the same work again.
        every: steps between two records of a metric, by the names of `Cadence`; 0 is never.
        activations: True, module names or a regular expression; see `ActivationMaxima`.
        start_step: the step that comes first; None goes on where the log stopped, or from 0.
        micro_losses: "sum" where the loop divides the loss of each micro-batch by their number
            before backward, "mean" where it does not.
        reduce_loss: average the loss over all processes rather than record that of rank 0.
        late_steps: steps that may wait on an accelerator before they are written; a killed process
            loses them, an exception or exit does not. None is 10 there, 0 on a CPU.
        part_rows: rows of a Parquet part.

    Raises:
        UsageError: the path can't be written or is no such log, or an option has no such value.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        path: str | os.PathLike[str],
        *,
        scaler: Any | None = None,
        clip: float | None = None,
        every: Mapping[str, int] | None = None,
        activations: bool | str | Iterable[str] = False,
        start_step: int | None = None,
        micro_losses: MicroLosses = "mean",
        reduce_loss: bool = False,
        late_steps: int | None = None,
        part_rows: int = 1000,
    ) -> None:
        self._path = Path(path)
        if micro_losses not in ("mean", "sum"):
            raise UsageError(f"micro_losses is {micro_losses!r}", 'it is "mean" or "sum"')
        self._every = cadence_from(every)
        self._parameters = parameters_of(model)
        self._optimizer = optimizer
        self._scaling = Scaling(scaler, optimizer)
        self._clip = clip
        self.micro_losses: MicroLosses = micro_losses
        self._reduce_loss = reduce_loss
        self._on_host = all(p.tensor.device.type == "cpu" for p in self._parameters)
        self._late_steps = (
            (0 if self._on_host else LATE_STEPS) if late_steps is None else late_steps
        )
        self._sharded = any(p.groups for p in self._parameters)
        self._writer = is_writer()
        # Others only take part in what all processes must do together.
        self._active = self._writer or self._sharded
        self._step_hook = StepHook(optimizer)
        self._activations = ActivationMaxima(model, activations) if activations else None
        self._sink: Sink = open_sink(self._path, part_rows) if self._writer else Nowhere()
        before = self._sink.before
        # A log of its own that goes on with a run begins with another number than the run did, so
        # that the restart shows where logs are put behind one another.
        self._segment = before.segment + 1 if before else max(0, start_step or 0)
        self._next = start_step if start_step is not None else (before.step + 1 if before else 0)
        self._first = True
        self._current: Step | None = None
        self._pending: list[Step] = []
        self._param_norm: float | None = None
        self._look_at_parameters = False
        self._watch = Watch()
        self._process = os.getpid()
        self.gradients_seen = False
        self._open = True
        self._failed = False
        self._wake_hooks()
        atexit.register(self.close)

    # The two calls of a loop.

    def after_backward(
        self,
        loss: Tensor | float | None = None,
        *,
        batch: Batch | None = None,
        indices: Any = None,
        grad_norm: Tensor | float | None = None,
        last: bool = True,
        step: int | None = None,
    ) -> None:
        """Measure the step whose gradients are complete.

        Call it before clipping; where the loop must clip first, hand over what `clip_grad_norm_`
        returned as `grad_norm`. With gradient accumulation call it after each backward, with
        `last=False` for all but the last micro-batch.

        Args:
            loss: the loss, a single number, not scaled by the GradScaler.
            batch: what the batch statistics are taken from; see `batch_statistics`.
            indices: a batch id, or the ids of its samples.
            grad_norm: the norm before clipping, where the gradients have been clipped.
            last: whether this was the last micro-batch before the optimizer step.
            step: the number of this step, where the loop counts itself.

        Raises:
            UsageError: the loss is not a single number.
        """
        if self._current is not None and self._current.measured:
            # No call of after_step, or no step either: the loop dropped these gradients.
            self.after_step(skipped=None if self._step_hook.stepped() else True)
        if step is not None and self._current is None:
            self.next_step = step
        self.add_batch(loss, batch=batch, indices=indices)
        if last:
            self.measure(grad_norm=grad_norm)

    def after_step(self, *, skipped: bool | None = None) -> None:
        """Finish the step, after `optimizer.step()` and `scaler.update()` where there is one.

        Args:
            skipped: whether the loop left the optimizer step out. None: as the scaler tells.
        """
        fell = self._scaling.after_update()
        self._step_hook.stepped()
        current, self._current = self._current, None
        if not self._open:
            return
        if current is not None:
            current.skipped = fell if skipped is None and self._scaling.active else skipped
            self._finish(current)
        self._next += 1
        self._first = False
        self._wake_hooks()

    # Their parts, for loops of another shape.

    def add_batch(
        self, loss: Tensor | float | None = None, *, batch: Batch | None = None, indices: Any = None
    ) -> None:
        """Take the loss and the data of one micro-batch, without looking at the gradients."""
        if not self._open:
            return
        current = self._current = self._current or Step(self._next, self._segment)
        if loss is not None and self._due(self._every.loss):
            value = self._single(loss)
            if self._active:
                current.add("loss", value)
        if self._writer and self._due(self._every.batch):
            for name, value in batch_statistics(batch).items():
                current.add(name, value)
            for name, value in index_fields(indices).items():
                current.ids.setdefault(name, []).append(value)

    def measure(
        self, *, grad_norm: Tensor | float | None = None, scaled: bool | None = None
    ) -> None:
        """Measure gradients (and parameters where due), and clip where asked for.

        Args:
            grad_norm: as for `after_backward`.
            scaled: whether the gradients are still multiplied by the loss scale; None asks the
                scaler.
        """
        if not self._open:
            return
        current = self._current = self._current or Step(self._next, self._segment)
        current.measured = True
        for name, value in learning_rates(self._optimizer).items():
            current.singles.pop(name, None)
            current.add(name, value)
        if self._scaling.active:
            current.loss_scale = self._scaling.scale()
        if grad_norm is not None:
            current.add("told_norm", plain(grad_norm))
        if self._clip is not None:
            self._scaling.unscale()
        if scaled is None:
            current.factor = self._scaling.factor()
        else:
            current.factor = self._scaling.scale() if scaled else 1.0
        self._measure_norms(current)
        if self._activations and self._writer:
            for name, top in self._activations.take().items():
                current.add(f"activation_max/{name}", top)

    def log(self, *, step: int | None = None, **values: float | int) -> None:
        """Write a row of its own, such as `rec.log(val_loss=2.31)`; its step is the last one."""
        if self._open and self._writer:
            self.flush()
            at = max(self._next - 1, 0) if step is None else step
            row: dict[str, Value] = {"step": at, "segment": self._segment}
            self._write(
                [row | {n: v if isinstance(v, int) else float(v) for n, v in values.items()}]
            )

    # The life of the log.

    def flush(self) -> None:
        """Write all finished steps; waits for the device where numbers are still on it."""
        steps, self._pending = self._pending, []
        if not steps:
            return
        try:
            fetch(steps)
        except RuntimeError as err:  # a device that has failed: what the host knows is left
            self._watch.warn("device", f"numbers on it are lost: {str(err).splitlines()[0]}")
            for step in steps:
                step.forget_device()
        self._write([self._row(step) for step in steps])

    def close(self) -> None:
        """Write what is left, also of a step that was not finished, and close the log."""
        if not self._open or os.getpid() != self._process:
            return
        # Micro-batches that no step followed are written only where an error may be in them.
        if self._active and self._current and (self._current.measured or self._failed):
            self._pending.append(self._current)
        self._current = None
        self.flush()
        self._open = False
        self._step_hook.remove()
        if self._activations:
            self._activations.remove()
        self._guarded(self._sink.close)
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._failed = error is not None
        self.close()

    @property
    def next_step(self) -> int:
        """The number of the step that comes next, or is being measured."""
        return self._next

    @next_step.setter
    def next_step(self, step: int) -> None:
        self._next = step
        self._wake_hooks()

    def state_dict(self) -> dict[str, int]:
        """Return what a checkpoint must keep so that a resumed run counts on: the next step."""
        return {"next_step": self._next}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on at the step of a checkpoint."""
        self.next_step = int(state["next_step"])

    # What they are made of.

    def _single(self, loss: Tensor | float) -> Tensor | float:
        if not isinstance(loss, Tensor):
            return float(loss)
        if loss.numel() != 1:
            raise UsageError(
                f"after_backward: the loss has shape {tuple(loss.shape)}",
                "hand over the single number that backward was called on",
            )
        value = plain(loss)
        value = mean_over_ranks(value) if self._reduce_loss else value
        # A copy: the loop may go on to change it in place.
        return value.reshape(()).clone()

    def _measure_norms(self, current: Step) -> None:
        if not self._active and self._clip is None:
            return
        every = self._every
        current.layers_due = self._due(every.layers)
        if self._due(every.grad_norm) or current.layers_due or self._clip is not None:
            current.grads, current.grad_norms = self._grad_norms(), {}
            self.gradients_seen = self.gradients_seen or bool(current.grads)
        if self._clip is not None:
            gradients = [p.tensor.grad for p in self._parameters if p.tensor.grad is not None]
            clip(gradients, current.grads, self._clip)
        if not self._active or every.param_norm == 0:
            return
        wanted = self._due(every.param_norm) or self._look_at_parameters
        if self._on_host:
            # No device to wait for: parameters are looked at in the very step that went wrong.
            fetch([current])
            wanted = self._turned_bad(current) or wanted
        if wanted:
            self._look_at_parameters = False
            self._measure_parameters(current)

    def _grad_norms(self) -> tuple[Norms, ...]:
        return norms_of(
            Named(p.name, p.tensor.grad, p.tensor.device, p.groups)
            for p in self._parameters
            if p.tensor.requires_grad
        )

    def _measure_parameters(self, current: Step) -> None:
        current.param_norms = {}
        current.params = norms_of(
            Named(p.name, p.tensor, p.tensor.device, p.groups)
            for p in self._parameters
            if p.tensor.requires_grad
        )

    def _turned_bad(self, step: Step) -> bool:
        """Whether the run ceased to be finite here, by what all processes of a sharded one know."""
        grad_norm = total_norm(step.grad_norms)
        loss = None if self._sharded else step.loss(self.micro_losses)
        return self._watch.turned_bad(grad_norm, loss)

    def _finish(self, current: Step) -> None:
        if not self._active:
            return
        self._pending.append(current)
        if len(self._pending) > self._late_steps:
            self.flush()

    def _row(self, step: Step) -> Row:
        grad_norm, loss = step.grad_norm(), step.loss(self.micro_losses)
        param_norms = last(step.param_norms)
        self._param_norm = total_norm(step.param_norms) or self._param_norm
        if not self._on_host and self._turned_bad(step):
            self._look_at_parameters = not param_norms
        if not self._writer:
            return {}
        if not_finite(loss, grad_norm, *param_norms.values()):
            self._watch.name_bad(step.step, loss, step.layer_grads(), param_norms)
        worth = self._watch.worth_layers(grad_norm, loss)
        with_layers = self._every.layers > 0 and (step.layers_due or worth or bool(param_norms))
        return row_of(step, self._param_norm, with_layers, self.micro_losses)

    def _write(self, rows: list[Row]) -> None:
        self._guarded(lambda: self._sink.write(rows))

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do something with the log; a full disk must not end the training."""
        try:
            action()
        except OSError as err:
            self._watch.warn("write", f"{self._path}: can't be written, rows are lost: {err}")

    def _wake_hooks(self) -> None:
        if self._activations:
            self._activations.awake = self._writer and self._due(self._every.activations)

    def _due(self, cadence: int) -> bool:
        """Whether the present step records what has this cadence; the first one records all."""
        return cadence > 0 and (self._first or self._next % cadence == 0)
