"""The OLMo 2 spike score: a headline figure that runs can be compared by."""

from __future__ import annotations

from typing import Any

import numpy as np

from stabdiag.model import F64
from stabdiag.steps.view import View

WINDOW = 1000
DEVIATIONS = 7.0


def spike_score(view: View) -> dict[str, Any]:
    """Share of loss and grad-norm values at least 7 standard deviations from the rolling mean.

    Over the last 1,000 values; marked where the run is too short for it. Source: OLMo 2 (2025).
    """
    out: dict[str, Any] = {"window": WINDOW, "deviations": DEVIATIONS}
    for name, t in (
        ("loss", view.loss.track if view.loss is not None else None),
        ("grad_norm", view.grad_track),
    ):
        if t is None:
            continue
        y = t.value[np.isfinite(t.value)]
        out[name] = _share(y) if y.size > WINDOW else None
    short = [n for n in ("loss", "grad_norm") if n in out and out[n] is None]
    out["note"] = f"too short for it: needs more than {WINDOW} values" if short else ""
    return out


def _share(y: F64) -> float:
    """Share of the values after the first window that lie 7 rolling deviations off, O(N)."""
    shifted = y - np.median(y[:: max(1, y.size // WINDOW)])  # near 0: sums lose no digits
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.concatenate(([0.0], np.cumsum(shifted)))
        square = np.concatenate(([0.0], np.cumsum(shifted**2)))
        mean = (total[WINDOW:-1] - total[: -WINDOW - 1]) / WINDOW
        variance = (square[WINDOW:-1] - square[: -WINDOW - 1]) / WINDOW - mean**2
        spread = np.sqrt(np.maximum(variance, 0.0))
        off = np.abs(shifted[WINDOW:] - mean) > DEVIATIONS * np.maximum(spread, 1e-12)
    return float(np.mean(off))
