"""Points for drawing: fewer than were logged, but every extreme and non-finite one kept."""

from __future__ import annotations

import numpy as np

from stabdiag.findings import ChartSeries
from stabdiag.model import F64, I64
from stabdiag.steps.tracks import track
from stabdiag.steps.view import View

BUCKETS = 400
DRAWN = ("loss", "val_loss", "grad_norm", "param_norm", "lr", "loss_scale")


def charts(view: View) -> tuple[ChartSeries, ...]:
    """The main series reduced to at most 4 points a bucket (first, lowest, highest, last)."""
    out = []
    for name in DRAWN:
        t = track(view.run, name)
        if t is not None:
            keep = reduced(t.step, t.value)
            out.append(
                ChartSeries(
                    name,
                    tuple(int(s) for s in t.step[keep]),
                    tuple(float(v) for v in t.value[keep]),
                )
            )
    return tuple(out)


def reduced(step: I64, value: F64, buckets: int = BUCKETS) -> I64:
    """Indices to draw, sorted: of each bucket the first, lowest, highest, last and non-finite."""
    n = value.size
    if n <= 4 * buckets:
        return np.arange(n)
    edges = np.linspace(0, n, buckets + 1).astype(np.int64)
    keep: list[int] = []
    finite = np.isfinite(value)
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = np.flatnonzero(finite[a:b]) + a
        if part.size:
            keep += [int(part[0]), int(part[-1])]
            keep += [int(part[np.argmin(value[part])]), int(part[np.argmax(value[part])])]
        bad = np.flatnonzero(~finite[a:b]) + a
        if bad.size:
            keep += [int(bad[0]), int(bad[-1])]
    return np.unique(np.asarray(keep, dtype=np.int64))
