"""Sequences of a batch that are the same, or nearly so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabdiag.batches.features import Features, likeness

_NEARLY = 0.99  # what a sketch calls the same is not so by its digest


@dataclass(frozen=True)
class Twins:
    """For each sequence of a batch the other that it repeats (None: no one), and how alike, 0 to 1."""

    other: tuple[int | None, ...]
    alike: tuple[float, ...]

    @property
    def count(self) -> int:
        """Number of sequences that have a twin."""
        return sum(one is not None for one in self.other)

    @property
    def share(self) -> float:
        """Share of the sequences that have a twin; 0 for an empty batch."""
        return self.count / max(1, len(self.other))


def twins_of(batch: Sequence[Features], least: float) -> Twins:
    """Exact duplicates by digest, near ones by their n-grams; empty sequences are no twins."""
    same: dict[bytes, list[int]] = {}
    for i, one in enumerate(batch):
        if one.length:
            same.setdefault(one.digest, []).append(i)
    alike, which = likeness([one.sketch for one in batch])
    others: list[int | None] = []
    sizes: list[float] = []
    for i, one in enumerate(batch):
        group = same.get(one.digest, [])
        other, size = None, 0.0
        if len(group) > 1:
            other, size = group[1] if group[0] == i else group[0], 1.0
        elif alike[i] >= least:
            other, size = which[i], min(float(alike[i]), _NEARLY)
        others.append(other)
        sizes.append(size)
    return Twins(tuple(others), tuple(sizes))
