"""What a GradScaler says: the loss scale, whether gradients are still scaled, skipped steps."""

from __future__ import annotations

from typing import Any


class Scaling:
    """Follow a GradScaler without waiting for the device more than once a step.

    The scale changes only in `scaler.update()`, so the one read after a step is in force in the
    next. `scaler` None, or not enabled, stands for no scaling.
    """

    def __init__(self, scaler: Any | None, optimizer: Any) -> None:
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._optimizer = optimizer
        self._scale: float | None = None

    @property
    def active(self) -> bool:
        """Whether losses are scaled at all."""
        return self._scaler is not None

    def scale(self) -> float:
        """Return the scale in force; 1 without a scaler."""
        if self._scaler is None:
            return 1.0
        if self._scale is None:
            self._scale = float(self._scaler.get_scale())
        return self._scale

    def factor(self) -> float:
        """Return what the gradients are multiplied by now: the scale, or 1 once unscaled."""
        return 1.0 if self._scaler is None or self._unscaled() else self.scale()

    def _unscaled(self) -> bool:
        # GradScaler keeps this to itself; it has since PyTorch 1.6.
        states = getattr(self._scaler, "_per_optimizer_states", {})
        inner = getattr(self._optimizer, "optimizer", self._optimizer)  # of a wrapper
        stages = [states[id(o)]["stage"] for o in (self._optimizer, inner) if id(o) in states]
        return any(stage.name != "READY" for stage in stages)

    def unscale(self) -> None:
        """Divide the gradients by the scale, unless that has been done."""
        if self._scaler is not None and not self._unscaled():
            self._scaler.unscale_(self._optimizer)

    def after_update(self) -> bool:
        """Read the new scale; True where it fell, for the scaler then skipped the step."""
        if self._scaler is None:
            return False
        before = self.scale()
        self._scale = float(self._scaler.get_scale())
        return self._scale < before
