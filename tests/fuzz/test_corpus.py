"""Every seed of the fuzzer, and what it once found, is survived."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.survives import survives

CORPUS = Path(__file__).resolve().parent / "corpus"
SEEDS = sorted(file for file in CORPUS.glob("*/*") if file.is_file())


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.parent.name}/{seed.name}")
def test_a_seed_is_survived(seed: Path) -> None:
    said = survives(seed)
    assert bool(said) == seed.name.startswith("refused-"), said
