"""`batch --order torch` against the loaders of PyTorch themselves."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.batches.corpora import BATCH, batch_of, documents, write_corpus, write_log
from tests.command_line import Command
from tests.recorder.conftest import WHY

torch = pytest.importorskip("torch", reason=WHY)

from torch.utils.data import DataLoader, DistributedSampler

SEED = 11
SIZE = 300  # 37.5 batches


def loader_batches(drop_last: bool, epochs: int, size: int = SIZE) -> list[list[int]]:
    """What a shuffled loader with a generator of its own draws."""
    loader = DataLoader(
        range(size),  # type: ignore[arg-type]
        batch_size=BATCH,
        shuffle=True,
        drop_last=drop_last,
        generator=torch.Generator().manual_seed(SEED),
    )
    return [batch.tolist() for _ in range(epochs) for batch in loader]


def distributed_batches(drop_last: bool, epochs: int) -> list[list[int]]:
    """The batches of two ranks, joined."""
    assert not drop_last
    ranks = []
    for rank in range(2):
        sampler = DistributedSampler(
            range(SIZE),  # type: ignore[arg-type]
            num_replicas=2,
            rank=rank,
            seed=SEED,
        )
        loader = DataLoader(range(SIZE), batch_size=BATCH // 2, sampler=sampler)  # type: ignore[arg-type, var-annotated]
        own: list[list[int]] = []
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            own += [batch.tolist() for batch in loader]
        ranks.append(own)
    return [a + b for a, b in zip(*ranks, strict=True)]


Ids = Callable[[int], dict[str, Any]]
BY_BATCH: Ids = lambda step: {"batch_id": step}  # noqa: E731


@pytest.mark.parametrize("step", [0, 36, 37, 38, 74, 75, 76, 115])
@pytest.mark.parametrize(
    ("order", "drop_last"), [("torch", False), ("torch", True), ("distributed", False)]
)
def test_the_samples_are_those_that_the_loader_drew(
    command: Command, folder: Path, order: str, drop_last: bool, step: int
) -> None:
    drawn = {"torch": loader_batches, "distributed": distributed_batches}[order](drop_last, 4)
    corpus = write_corpus(folder, "jsonl", documents()[:SIZE])
    log = write_log(folder / "run.jsonl", BY_BATCH)
    flags: tuple[Any, ...] = ("--data", corpus, "--batch-size", BATCH, "--order", order)
    flags += ("--seed", SEED, "--step", step, "--ordinary", 0)
    flags += ("--drop-last",) if drop_last else ()
    seen = batch_of(command, log, *flags)
    assert {int(one["id"]) for one in seen["sequences"]} == set(drawn[step])
    assert any("37.5 batches" in note for note in seen["notes"])


@pytest.mark.parametrize("drop_last", [False, True])
def test_counted_samples_go_on_over_short_batches(
    command: Command, folder: Path, drop_last: bool
) -> None:
    """After an epoch of 300 the count of samples is 300, or 296 without the short batch; not 304."""
    drawn = loader_batches(drop_last, 4)
    totals = list(itertools.accumulate(map(len, drawn)))
    corpus = write_corpus(folder, "jsonl", documents()[:SIZE])
    log = write_log(folder / "run.jsonl", lambda step: {"consumed_samples": totals[step]})
    flags: tuple[Any, ...] = ("--data", corpus, "--order", "torch", "--seed", SEED, "--ordinary", 0)
    flags += ("--drop-last",) if drop_last else ()
    for step in (36, 37, 38, 60):
        seen = batch_of(command, log, *flags, "--step", step)
        assert {int(one["id"]) for one in seen["sequences"]} == set(drawn[step])
