"""What an optimizer tells: its learning rates, and whether it has stepped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def learning_rates(optimizer: torch.optim.Optimizer) -> dict[str, Tensor | float]:
    """Return `lr` of the first parameter group, and of each other group as `lr/group1`, ..."""
    rates = {}
    for number, group in enumerate(optimizer.param_groups):
        rate = group["lr"]
        # a copy: the scheduler changes a rate that is a tensor in place
        value = rate.detach().clone() if isinstance(rate, Tensor) else float(rate)
        rates["lr" if number == 0 else f"lr/group{number}"] = value
    return rates


class StepHook:
    """Know whether the optimizer has stepped since it was last asked."""

    def __init__(self, optimizer: Any) -> None:
        self._stepped = False
        register = getattr(optimizer, "register_step_post_hook", None)
        try:
            self._handle = register(self._note) if register else None
        except AttributeError:  # a wrapper that never called its base class
            self._handle = None

    def _note(self, *_: Any) -> None:
        self._stepped = True

    def stepped(self) -> bool:
        """Say whether it has stepped since the last call; True where it can't be known."""
        stepped, self._stepped = self._stepped, False
        return stepped or self._handle is None

    def remove(self) -> None:
        """Take the hook off."""
        if self._handle is not None:
            self._handle.remove()
