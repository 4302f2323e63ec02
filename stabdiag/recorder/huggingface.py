"""The recorder as a callback of the Hugging Face Trainer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from stabdiag.recorder import MissingLibraryError
from stabdiag.recorder.activations import first_real_tensor
from stabdiag.recorder.backward_end import at_backward_end
from stabdiag.recorder.loop import Recorder

try:
    from transformers import TrainerCallback
except ImportError as err:
    raise MissingLibraryError(
        "HuggingFaceRecorder needs transformers, which can't be imported",
        "pip install transformers",
    ) from err


class HuggingFaceRecorder(TrainerCallback):
    """Record each step of a Trainer: `Trainer(..., callbacks=[HuggingFaceRecorder("run.jsonl")])`.

    Steps are numbered as in `trainer_state.json`, from 1. Loss and batch are those that the model
    is called with and returns, so they are of this step alone, not of a logging window; norms are
    taken at the end of the backward pass, before the Trainer clips. A loss that the model does not
    compute itself (label smoothing, `compute_loss_func`) is taken from the Trainer's own log, and
    so is the evaluation loss.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        every: Mapping[str, int] | None = None,
        activations: bool | str | Iterable[str] = False,
        late_steps: int | None = None,
        part_rows: int = 1000,
    ) -> None:
        """Keep the options; the log is opened when training begins. See `Recorder`."""
        self._path = path
        self._every = every
        self._activations = activations
        self._late_steps = late_steps
        self._part_rows = part_rows
        self._recorder: Recorder | None = None
        self._hook: Any = None
        self._processes = 1
        self._measured = self._loss_seen = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """Open the log and listen to the model."""
        self._close()
        model, optimizer = named["model"], named["optimizer"]
        self._recorder = Recorder(
            model,
            optimizer,
            self._path,
            scaler=getattr(optimizer, "scaler", None),
            every=self._every,
            activations=self._activations,
            start_step=state.global_step + 1,
            late_steps=self._late_steps,
            part_rows=self._part_rows,
        )
        shared = getattr(args, "average_tokens_across_devices", False)
        self._processes = int(args.world_size) if shared else 1
        self._hook = model.register_forward_hook(self._after_forward, with_kwargs=True)

    def _after_forward(self, module: nn.Module, _: Any, named: Mapping[str, Any], out: Any) -> None:
        recorder = self._recorder
        if recorder is None or not module.training or not torch.is_grad_enabled():
            return
        loss = _loss_in(out)
        whole_batch = named.get("num_items_in_batch") is not None
        if whole_batch:  # each micro-batch's loss is its share of the step's
            recorder.micro_losses = "sum"
        if loss is not None:
            self._loss_seen = True
            value = loss.detach() * self._processes if whole_batch else loss
            recorder.add_batch(value, batch=_inputs(named))
        else:
            recorder.add_batch(batch=_inputs(named))
        hooked = loss if loss is not None else first_real_tensor(out)
        if hooked is not None and hooked.requires_grad:
            at_backward_end(hooked, self._backward_ended)

    def _backward_ended(self) -> None:
        if self._recorder is not None:
            self._recorder.measure(scaled=True)
            self._measured = True

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure now where the end of the backward pass was not seen and nothing is clipped."""
        if self._recorder is not None and not self._measured and not args.max_grad_norm:
            self._recorder.measure(scaled=False)
            self._measured = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Finish the step."""
        if self._recorder is not None:
            self._recorder.after_step()
        self._measured = False

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        """Take what only the Trainer knows: the evaluation loss, and what the model hides."""
        if self._recorder is None or logs is None:
            return
        values = {"val_loss": logs.get("eval_loss")}
        if not self._loss_seen:
            values["loss"] = logs.get("loss")
        if not self._recorder.gradients_seen:  # as under DeepSpeed, which keeps them to itself
            values["grad_norm"] = logs.get("grad_norm")
        known = {name: float(value) for name, value in values.items() if value is not None}
        if known:
            self._recorder.log(step=state.global_step, **known)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the log."""
        self._close()

    def _close(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        if self._recorder is not None:
            self._recorder.close()
        self._hook = self._recorder = None


def _loss_in(output: Any) -> Tensor | None:
    """Return the loss that a model returned, None where it computed none."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if loss is None and isinstance(output, tuple) and output:
        loss = output[0]
    return loss if isinstance(loss, Tensor) and loss.numel() == 1 else None


def _inputs(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in named.items() if isinstance(part, Tensor)}
