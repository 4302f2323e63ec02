"""A share of few cases, with what so few can show."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054  # standard normal quantile of 0.975


def wilson(hits: int, cases: int) -> tuple[float, float]:
    """Return the 95 % interval of a share; (0, 1) for no cases.

    Source: Wilson (1927), J. Am. Stat. Assoc. 22; good also for few cases and shares of 0 and 1.
    """
    if cases == 0:
        return 0.0, 1.0
    share = hits / cases
    scale = 1.0 + Z_95**2 / cases
    centre = (share + Z_95**2 / (2 * cases)) / scale
    half = Z_95 * math.sqrt(share * (1 - share) / cases + Z_95**2 / (4 * cases**2)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)
