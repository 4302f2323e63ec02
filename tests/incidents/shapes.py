"""The shapes that logs are made of: levels that fall, noise, schedules, bumps."""

from __future__ import annotations

import zlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

F64: TypeAlias = NDArray[np.float64]


def dice(name: str) -> np.random.Generator:
    """Return the random generator of a log: the same for the same name, everywhere."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def falling(points: int, start: float, end: float, *, speed: float = 6.0) -> F64:
    """Return a loss that falls from `start` to `end`: fast at first, then ever slower, [T]."""
    t = np.arange(points) / max(1, points - 1)
    curve = (1.0 + 25.0 * t) ** (-speed / 6.0)
    return np.asarray(end + (start - end) * (curve - curve[-1]) / (1.0 - curve[-1]))


def jitter(rng: np.random.Generator, points: int, size: float, *, tail: float = 0.0) -> F64:
    """Return normal noise of standard deviation `size`; `tail` > 0 mixes Student's t with 3 dof."""
    noise = rng.standard_normal(points)
    if tail > 0.0:
        noise = noise + tail * rng.standard_t(3, points)
    return size * noise


def norms(
    rng: np.random.Generator, points: int, level: float | NDArray[Any], spread: float = 0.15
) -> F64:
    """Return log-normal gradient norms around `level`."""
    return np.asarray(level * np.exp(spread * rng.standard_normal(points)))


def cosine(
    points: int, peak: float, *, warm: int = 0, floor: float = 0.1, total: int | None = None
) -> F64:
    """Return a learning rate that warms up over `warm` points and falls as a cosine."""
    i = np.arange(points, dtype=np.float64)
    t = np.clip((i - warm) / max(1, (total or points) - warm), 0.0, 1.0)
    rate = peak * (floor + (1.0 - floor) * 0.5 * (1.0 + np.cos(np.pi * t)))
    return np.where(i < warm, peak * (i + 1) / max(1, warm), rate)


def linear(points: int, peak: float, *, warm: int = 0, total: int | None = None) -> F64:
    """Return a learning rate that warms up over `warm` points and falls in a line to 0."""
    i = np.arange(points, dtype=np.float64)
    fall = np.clip(1.0 - (i - warm) / max(1, (total or points) - warm), 0.0, 1.0)
    return np.where(i < warm, peak * (i + 1) / max(1, warm), peak * fall)


def bump(points: int, at: int, height: float, *, rise: int = 1, life: float = 5.0) -> F64:
    """Return 0 before `at`, a climb over `rise` points to `height`, then an exponential return."""
    i = np.arange(points, dtype=np.float64) - at
    up = np.clip((i + 1.0) / rise, 0.0, 1.0)
    down = np.exp(-np.maximum(0.0, i + 1.0 - rise) / life)
    return np.where(i < 0, 0.0, height * up * down)


def to_bfloat16(values: F64) -> F64:
    """Round as bfloat16 does: 8 significant bits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256.0) / 256.0, exponent)
