"""Samples in the order of a shuffled loader: from the n-th drawn to its place in the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stabdiag.errors import InputError, UsageError
from stabdiag.model import I64

ORDERS = ("sequential", "numpy", "torch")


def places_drawn(drawn: Sequence[int], order: str, seed: int, size: Callable[[], int]) -> list[int]:
    """The places in the corpus of the samples drawn as number `drawn`, epochs counted on.

    "sequential": in the corpus' order. "numpy": `default_rng(seed + epoch).permutation(size)`.
    "torch": `randperm(size)` of a generator with `seed + epoch`, as DistributedSampler draws.

    Raises:
        UsageError: no such order, or PyTorch is missing.
        InputError: the corpus is empty.
    """
    if order not in ORDERS:
        raise UsageError(f"--order is {order!r}, which is none of {', '.join(ORDERS)}", "Name one.")
    if order == "sequential":
        return list(drawn)
    count = size()
    if count == 0:
        raise InputError("the corpus holds no sample", "Name another with --data.")
    out: list[int] = []
    kept: dict[int, I64] = {}
    for number in drawn:
        epoch = number // count
        if epoch not in kept:
            kept = {epoch: _permutation(count, order, seed + epoch)}  # one in memory at a time
        out.append(int(kept[epoch][number % count]))
    return out


def _permutation(count: int, order: str, seed: int) -> I64:
    if order == "numpy":
        return np.random.default_rng(seed).permutation(count)
    try:
        import torch
    except ImportError as err:
        raise UsageError(
            "--order torch needs PyTorch", "pip install torch, or write the order with --index."
        ) from err
    generator: Any = torch.Generator().manual_seed(seed)
    numbers: I64 = torch.randperm(count, generator=generator).numpy()
    return numbers
