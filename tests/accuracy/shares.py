"""A share with its confidence interval, and how well probabilities fit what came true."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stabdiag.signals.shares import wilson

BINS = 10


@dataclass(frozen=True)
class Share:
    """`hits` of `n`. With n 0 the share is NaN: nothing to judge."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson (1927); (0, 1) when n is 0."""
        return wilson(self.hits, self.n)


def share(marks: Iterable[bool]) -> Share:
    """Count how many of `marks` are true."""
    listed = list(marks)
    return Share(sum(listed), len(listed))


def calibration_error(said: Sequence[float], right: Sequence[bool]) -> float:
    """Expected calibration error in 10 equal bins of the probability; NaN without answers.

    The mean over the answers of |share right - mean probability| in their bin (Naeini et al.
    2015). A probability of exactly 1 belongs to the last bin.
    """
    bins: dict[int, list[int]] = {}
    for index, probability in enumerate(said):
        bins.setdefault(min(int(probability * BINS), BINS - 1), []).append(index)
    gaps = (
        abs(sum(right[i] for i in inside) - math.fsum(said[i] for i in inside))
        for inside in bins.values()
    )
    return math.fsum(gaps) / len(said) if said else math.nan


def brier(said: Sequence[float], right: Sequence[bool]) -> float:
    """Mean squared distance between probability and outcome (Brier 1950); NaN without answers."""
    squares = ((probability - hit) ** 2 for probability, hit in zip(said, right, strict=True))
    return math.fsum(squares) / len(said) if said else math.nan
