"""The scale of a heat map: what is usual, how far above it, and what is low or nothing."""

from __future__ import annotations

import math

LEVELS = (0.3, 0.7, 1.3, 2.0)  # base-10 logarithms: 2, 5, 20 and 100 times the usual level


def above(level: float) -> int:
    """Return 0 for the usual level, 1 to 4 for at least 2, 5, 20 and 100 times it."""
    return sum(level >= limit for limit in LEVELS)


def below(level: float) -> int:
    """Return 1 and 2 for at most a fifth and a twentieth of the usual level, 3 for zero, else 0."""
    return 3 if level == -math.inf else sum(level <= -limit for limit in LEVELS[1:3])
