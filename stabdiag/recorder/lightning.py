"""The recorder as a callback of PyTorch Lightning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor

from stabdiag.recorder import MissingLibraryError
from stabdiag.recorder.loop import Recorder

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment]
    except ImportError as err:
        raise MissingLibraryError(
            "LightningRecorder needs lightning, which can't be imported", "pip install lightning"
        ) from err

_VALIDATION_LOSS = ("val_loss", "val/loss", "valid_loss", "valid/loss", "validation_loss")


class LightningRecorder(Callback):
    """Record each step of a Trainer: `Trainer(callbacks=[LightningRecorder("run.jsonl")])`.

    Steps are `trainer.global_step`, from 0. Norms are taken before clipping and after unscaling.
    With several optimizers the first that steps on a batch is recorded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        indices: Callable[[Any], Any] | None = None,
        every: Mapping[str, int] | None = None,
        activations: bool | str | Iterable[str] = False,
        late_steps: int | None = None,
        part_rows: int = 1000,
    ) -> None:
        """Keep the options; the log is opened when training begins. See `Recorder`.

        Args:
            path: as for `Recorder`.
            indices: gives the ids of a batch's samples; None records the number of the batch in its
                epoch.
            every: as for `Recorder`.
            activations: as for `Recorder`.
            late_steps: as for `Recorder`.
            part_rows: as for `Recorder`.
        """
        super().__init__()
        self._path = path
        self._indices = indices
        self._every = every
        self._activations = activations
        self._late_steps = late_steps
        self._part_rows = part_rows
        self._recorder: Recorder | None = None
        self._measured = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Open the log."""
        self._recorder = Recorder(
            trainer.strategy.model if trainer.strategy.model is not None else pl_module,
            trainer.optimizers[0],
            self._path,
            scaler=getattr(trainer.precision_plugin, "scaler", None),
            every=self._every,
            activations=self._activations,
            start_step=trainer.global_step,
            late_steps=self._late_steps,
            part_rows=self._part_rows,
        )

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Measure: gradients are complete, and not yet clipped."""
        if self._recorder is not None and not self._measured:
            self._measured = True
            self._recorder.measure()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Take loss and data of the batch, and finish the step where there was one."""
        recorder = self._recorder
        if recorder is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        single = isinstance(loss, Tensor) and loss.numel() == 1
        # Lightning has divided it for the accumulation.
        loss = loss * trainer.accumulate_grad_batches if single else None
        indices = self._indices(batch) if self._indices else batch_idx
        recorder.add_batch(loss, batch=_statistics_of(batch), indices=indices)
        if self._measured:
            self._measured = False
            recorder.after_step()
            recorder.next_step = trainer.global_step

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Take the validation loss, where the module logs one under a usual name."""
        if self._recorder is None or trainer.sanity_checking:
            return
        for name in _VALIDATION_LOSS:
            value = trainer.callback_metrics.get(name)
            if value is not None:
                self._recorder.log(val_loss=float(value))
                return

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write what is left of a run that fails."""
        if self._recorder is not None:
            self._recorder.__exit__(type(exception), exception, exception.__traceback__)
            self._recorder = None

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Close the log."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None


def _statistics_of(batch: Any) -> Any:
    return batch if isinstance(batch, Tensor | Mapping | tuple | list) else None
