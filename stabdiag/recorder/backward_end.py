"""The moment when a backward pass has ended: before anyone can clip what it left in `.grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def at_backward_end(tensor: Any, action: Callable[[], None]) -> None:
    """Call `action` at the end of the backward pass that goes through `tensor`.

    The gradients are then complete, also those that DDP or FSDP reduce over processes.
    """

    def begins(_: Tensor) -> None:
        # What DDP and FSDP finish with, they queue here too.
        engine = torch.autograd.Variable._execution_engine
        # Queued by one in the queue, it comes after those that were queued during the pass.
        engine.queue_callback(lambda: engine.queue_callback(action))

    tensor.register_hook(begins)
