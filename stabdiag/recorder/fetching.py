"""Numbers from the device to the host: many small tensors in one copy, so one wait."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from stabdiag.recorder.norms import wide


def fetched(tensors: Sequence[Tensor]) -> list[list[float]]:
    """Return the numbers of each tensor, flat; waits once for each device that holds some."""
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(index)
    numbers: list[list[float]] = [[] for _ in tensors]
    for device, indices in by_device.items():
        flat = [tensors[i].detach().reshape(-1).to(wide(device)) for i in indices]
        values = torch.cat(flat).tolist()
        start = 0
        for index, part in zip(indices, flat, strict=True):
            numbers[index] = values[start : start + part.numel()]
            start += part.numel()
    return numbers
