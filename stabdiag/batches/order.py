"""Samples in the order of a shuffled loader: from the n-th drawn to its place in the corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stabdiag.errors import InputError, UsageError
from stabdiag.model import I64

ORDERS = ("sequential", "numpy", "torch", "distributed")


@dataclass(frozen=True)
class Drawing:
    """How a loader draws, epoch after epoch.

    `order` is one of

    - "sequential": the corpus' order.
    - "numpy": `default_rng(seed + epoch).permutation(size)`.
    - "torch": `DataLoader(..., shuffle=True, generator=torch.Generator().manual_seed(seed))`, which
      draws one seed for its workers, then the order, and goes on from there in the next epoch. With
      `persistent_workers` the first epoch alone is the same.
    - "distributed": `randperm(size)` of a generator with `seed + epoch`, as DistributedSampler
      after `set_epoch` and Accelerate's seedable sampler draw it, the batches of all ranks joined.

    Where the corpus is no whole number of batches of `batch_size`, the last one of an epoch is
    short, and counts as if it were full where batches are counted (`by_batch`) and not samples;
    `drop_last` says that it was left out.
    """

    order: str = "sequential"
    seed: int = 0
    batch_size: int | None = None
    by_batch: bool = False
    drop_last: bool = False


class Places:
    """The places in a corpus of the n-th samples drawn.

    Raises:
        UsageError: no such order, or PyTorch is missing.
    """

    def __init__(self, drawing: Drawing, size: Callable[[], int]) -> None:
        if drawing.order not in ORDERS:
            raise UsageError(
                f"--order is {drawing.order!r}, which is none of {', '.join(ORDERS)}", "Name one."
            )
        self._drawing = drawing
        self._size = size

    @cached_property
    def _count(self) -> int:
        count = self._size()
        if count == 0:
            raise InputError("the corpus holds no sample", "Name another with --data.")
        return count

    @cached_property
    def epoch_draws(self) -> int:
        """Samples that are counted in an epoch.

        Raises:
            InputError: none, as the corpus is empty or no batch is whole.
        """
        size, by_batch = self._drawing.batch_size, self._drawing.by_batch
        if size is None or not (by_batch or self._drawing.drop_last):
            return self._count
        whole = self._count // size if self._drawing.drop_last else -(-self._count // size)
        if whole == 0:
            raise InputError(
                f"the corpus holds {self._count:,} samples, less than a batch of {size:,}",
                "Name another with --data, or leave out --drop-last.",
            )
        return whole * size

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was taken for granted of an epoch that is no whole number of batches."""
        size = self._drawing.batch_size
        if size is None or self._drawing.order == "sequential" or self._count % size == 0:
            return ()
        last = "left out, as by drop_last" if self._drawing.drop_last else "taken as a short one"
        other = "" if self._drawing.drop_last else " (--drop-last: left out)"
        return (f"an epoch is {self._count / size:.4g} batches: the last is {last}{other}",)

    def of(self, batches: Sequence[Sequence[int]]) -> list[list[int]]:
        """The places of the samples of some batches, each drawn as these numbers from 0 on.

        A number beyond the short last batch of an epoch has none.

        Raises:
            InputError: the corpus is empty.
        """
        if self._drawing.order == "sequential":
            return [list(batch) for batch in batches]
        places: dict[int, int] = {}
        numbers = sorted({number for batch in batches for number in batch})
        epochs = enumerate(self._epochs())
        epoch, order = next(epochs)
        for number in numbers:  # one epoch in memory at a time
            while epoch < number // self.epoch_draws:
                epoch, order = next(epochs)
            drawn = number % self.epoch_draws
            if drawn < self._count:
                places[number] = int(order()[drawn])
        return [[places[n] for n in batch if n in places] for batch in batches]

    def _epochs(self) -> Iterator[Callable[[], I64]]:
        """What gives the order of each epoch; drawn where it is asked for."""
        if self._drawing.order == "torch":
            yield from _loader_epochs(self._count, self._drawing.seed)
        draw = _numpy if self._drawing.order == "numpy" else _distributed
        epoch = 0
        while True:
            yield _once(draw, self._count, self._drawing.seed + epoch)
            epoch += 1


def _once(draw: Callable[[int, int], I64], count: int, seed: int) -> Callable[[], I64]:
    kept: list[I64] = []

    def order() -> I64:
        if not kept:
            kept.append(draw(count, seed))
        return kept[0]

    return order


def _numpy(count: int, seed: int) -> I64:
    return np.random.default_rng(seed).permutation(count)


def _distributed(count: int, seed: int) -> I64:
    torch = _torch("distributed")
    numbers: I64 = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).numpy()
    return numbers


def _loader_epochs(count: int, seed: int) -> Iterator[Callable[[], I64]]:
    """The epochs of a DataLoader whose own generator was seeded once."""
    torch = _torch("torch")
    generator = torch.Generator().manual_seed(seed)
    while True:
        torch.empty((), dtype=torch.int64).random_(generator=generator)  # the workers' base seed
        order: I64 = torch.randperm(count, generator=generator).numpy()
        yield lambda order=order: order  # type: ignore[misc]
        # RandomSampler draws another order for what is left over after whole rounds: for none.
        torch.randperm(count, generator=generator)


def _torch(order: str) -> Any:
    try:
        import torch
    except ImportError as err:
        raise UsageError(
            f"--order {order} needs PyTorch", "pip install torch, or write the order with --index."
        ) from err
    return torch
