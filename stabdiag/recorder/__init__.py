"""The recorder: the optional logger that makes a training run diagnosable (needs PyTorch).

A plain loop needs two lines besides the `with`:

    with Recorder(model, optimizer, "run.jsonl") as rec:
        for batch in loader:
            loss = model(batch)
            loss.backward()
            rec.after_backward(loss, batch=batch)  # before clipping
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()

`HuggingFaceRecorder(path)` is a `TrainerCallback`, `LightningRecorder(path)` a Lightning
`Callback`. What they write is read by `stabdiag analyze`. Nothing else in stabdiag imports this.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from stabdiag.errors import StabdiagError


class MissingLibraryError(StabdiagError, ImportError):
    """A library that only a part of the recorder needs is not installed."""

    def __str__(self) -> str:
        return f"{self.what}: {self.todo}"


if importlib.util.find_spec("torch") is None:
    raise MissingLibraryError(
        "stabdiag.recorder needs PyTorch, which is not installed",
        "pip install 'stabdiag[recorder]'",
    )

from stabdiag.recorder.loop import Recorder  # noqa: E402 (it imports torch)

if TYPE_CHECKING:
    from stabdiag.recorder.huggingface import HuggingFaceRecorder
    from stabdiag.recorder.lightning import LightningRecorder

__all__ = ["HuggingFaceRecorder", "LightningRecorder", "MissingLibraryError", "Recorder"]


def __getattr__(name: str) -> Any:
    """Import a callback only when it is asked for: each needs its own library."""
    if name == "HuggingFaceRecorder":
        from stabdiag.recorder.huggingface import HuggingFaceRecorder

        return HuggingFaceRecorder
    if name == "LightningRecorder":
        from stabdiag.recorder.lightning import LightningRecorder

        return LightningRecorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
