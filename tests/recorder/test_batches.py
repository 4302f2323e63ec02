"""Batch statistics against plain counting, and data indices."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recorder.conftest import WHY

torch = pytest.importorskip("torch", reason=WHY)

from stabdiag.recorder.batches import batch_statistics, index_fields

TOKENS = st.integers(1, 6).flatmap(
    lambda length: st.lists(
        st.tuples(st.lists(st.integers(0, 5), min_size=length, max_size=length), st.integers(0, 6)),
        min_size=1,
        max_size=5,
    )
)


def counted(sequences: list[list[int]]) -> tuple[float, float]:
    """Entropy in nats and share of repeated pairs, counted one by one."""
    tokens = Counter(token for sequence in sequences for token in sequence)
    size = sum(tokens.values())
    entropy = -sum(n / size * math.log(n / size) for n in tokens.values())
    pairs = repeated = 0
    for sequence in sequences:
        seen = set()
        for pair in pairwise(sequence):
            pairs += 1
            repeated += pair in seen
            seen.add(pair)
    return entropy, repeated / max(pairs, 1)


@settings(deadline=None)
@given(TOKENS)
def test_statistics_of_token_ids(batch: list[tuple[list[int], int]]) -> None:
    ids = torch.tensor([row for row, _ in batch])
    lengths = [min(length, len(row)) for row, length in batch]
    mask = torch.arange(ids.shape[1])[None] < torch.tensor(lengths)[:, None]
    found = batch_statistics({"input_ids": ids, "attention_mask": mask.long()})
    entropy, repetition = counted([row[:n] for (row, _), n in zip(batch, lengths, strict=True)])
    got = {name: float(value) for name, value in found.items()}
    assert got == pytest.approx(
        {
            "batch/seq_len": sum(lengths) / len(lengths),
            "batch/max_len": max(lengths),
            "batch/token_entropy": entropy,
            "batch/repetition": repetition,
        },
        rel=1e-5,
        abs=1e-9,
    )


def test_large_vocabularies_do_not_mix_pairs() -> None:
    ids = torch.tensor([[2**30, 0, 2**30, 0], [1, 2**30, 1, 5]])
    assert float(batch_statistics(ids)["batch/repetition"]) == pytest.approx(1 / 6)


def test_statistics_of_real_numbers() -> None:
    x = torch.tensor([[1.0, -5.0], [2.0, 2.0]], requires_grad=True)
    for batch in (x, (x, torch.tensor([0, 1])), {"pixel_values": x}):
        found = batch_statistics(batch)
        assert {n: float(v) for n, v in found.items()} == pytest.approx(
            {"batch/mean": 0.0, "batch/std": math.sqrt(8.5), "batch/abs_max": 5.0}
        )
        assert not any(v.requires_grad for v in found.values())


def test_named_numbers_are_statistics_of_the_users_own() -> None:
    batch = {"web_share": 0.25, "difficulty": torch.tensor(3.0), "name": "x", "flag": True}
    found = batch_statistics(batch)
    assert {n: float(v) for n, v in found.items()} == {
        "batch/web_share": 0.25,
        "batch/difficulty": 3.0,
    }


def test_targets_that_count() -> None:
    labels = torch.tensor([[1, -100, 2], [-100, -100, -100]])
    assert int(batch_statistics({"labels": labels})["batch/targets"]) == 2


@pytest.mark.parametrize(
    "batch",
    [None, [], "text", torch.zeros(0), torch.ones(2, 2, dtype=torch.bool), {"a": object()}],
)
def test_what_is_no_batch_has_no_statistics(batch: object) -> None:
    assert batch_statistics(batch) == {}


def test_indices() -> None:
    assert index_fields(None) == {}
    assert index_fields(7) == {"batch_id": 7}
    assert index_fields("shard-3") == {"batch_id": "shard-3"}
    assert index_fields([3, 4]) == {"sample_ids": [3, 4]}
    assert index_fields(("a", "b")) == {"sample_ids": ["a", "b"]}
    assert index_fields(range(2)) == {"sample_ids": [0, 1]}
    assert index_fields(np.array([5, 6])) == {"sample_ids": [5, 6]}
    assert index_fields(np.int64(5)) == {"batch_id": 5}
    tensor = torch.tensor([1, 2])
    assert index_fields(tensor)["sample_ids"] is tensor
