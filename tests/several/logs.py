"""Runs of one experiment for the tests: healthy ones of several seeds, worse ones, failing ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stabdiag.compare import Side
from stabdiag.diagnose import diagnose
from stabdiag.rules import CATALOGUE, Limits
from stabdiag.settings import Settings
from tests.make_runs import Columns, healthy, run_from

LIMITS = Limits(CATALOGUE, {})


def side(columns: Columns, **parts: object) -> Side:
    run = run_from(columns, **parts)  # type: ignore[arg-type]
    return Side(run, diagnose(run, Settings()))


def wandering(points: int, seed: int, *, noise: float, wander: float) -> dict[str, np.ndarray]:
    """A quiet run whose loss wanders slowly by `wander` of its level, as another seed's does."""
    columns = healthy(points, seed=seed, noise=noise)
    rng = np.random.default_rng([seed, 7])
    drift = np.zeros(points)
    kick = rng.standard_normal(points) * wander * np.sqrt(1 - 0.98**2)
    for t in range(1, points):
        drift[t] = 0.98 * drift[t - 1] + kick[t]
    columns["loss"] = columns["loss"] * (1.0 + drift)
    return columns


def write(path: Path, columns: Columns) -> Path:
    names = list(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    lines = [",".join(names), *(",".join(repr(float(cell)) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
