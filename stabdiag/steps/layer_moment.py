"""The layers' shares of the global norm: usually, and at one step (handbook: decompose the norm)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stabdiag.errors import UsageError
from stabdiag.findings import LayerMoment
from stabdiag.model import F64, LayerBlock, Run
from stabdiag.signals.peers import finite_median
from stabdiag.steps.layer_cells import medians
from stabdiag.steps.layer_stats import LayerStats

LEAST_BEFORE = 5  # rows before the onset that make what is usual
_METRICS = ("grad_norm", "activation_max", "param_norm")


def usual_shares(stats: LayerStats) -> dict[str, float]:
    """Median over the sampled rows of each layer's share of the sum of squares; NaN where unknown.

    Layers that were not logged in a row count as nothing there.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        top = np.nanmax(np.where(np.isfinite(stats.sample), stats.sample, 0.0), axis=1, initial=0.0)
        square = (stats.sample / top[:, None]) ** 2  # scaled: a square must not overflow
        share = square / np.nansum(square, axis=1)[:, None]
    return dict(zip(stats.layers, finite_median(share.T).tolist(), strict=True))


def layers_at(run: Run, asked: int, onset: int | None = None) -> LayerMoment | None:
    """Return the layers at the last logged step at or before `asked`, None where none is logged.

    What is usual is the median before `onset`, where enough is logged there to tell: what follows
    is not. By grad norm where it is logged per layer, else by activation maximum or parameter norm.

    Raises:
        UsageError: the first logged step comes after `asked`.
    """
    metric = next((m for m in _METRICS if run.layers.get(m)), None)
    if metric is None:
        return None
    logged = [block.step[block.logged.any(axis=1)] for block in run.layer_blocks(metric)]
    earlier = [int(step[step <= asked][-1]) for step in logged if step.size and step[0] <= asked]
    if not earlier:
        firsts = [int(step[0]) for step in logged if step.size]
        if not firsts:
            return None
        raise UsageError(
            f"--step {asked}: no layer is logged at or before it",
            f"Name a step from {min(firsts)} on, the first with {metric} by layer.",
        )
    step = max(earlier)
    names, value, usual = _row(run, metric, step, onset)
    positive = np.where(np.isfinite(value) & (value > 0), value, np.nan)
    middle = float(np.median(_finite(positive))) if np.isfinite(positive).any() else float("nan")
    middle_usual = float(np.median(_finite(usual))) if np.isfinite(usual).any() else float("nan")
    top = np.nanmax(positive) if np.isfinite(positive).any() else float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        square = (positive / top) ** 2
        share = square / np.nansum(square)
        ratio, before = positive / middle, usual / middle_usual
    # what is not finite is the largest of all
    order = sorted(
        range(len(names)), key=lambda j: (np.isfinite(value[j]), -np.nan_to_num(value[j]), j)
    )
    return LayerMoment(
        asked=asked,
        step=step,
        metric=metric,
        layers=tuple(names[j] for j in order),
        value=tuple(float(value[j]) for j in order),
        share=tuple(_known(share[j]) for j in order),
        ratio=tuple(_known(ratio[j]) for j in order),
        usual=tuple(_known(before[j]) for j in order),
    )


def _row(run: Run, metric: str, step: int, onset: int | None) -> tuple[list[str], F64, F64]:
    """Names, values at `step`, and medians before the onset, of the layers logged at that step."""
    names: list[str] = []
    values: list[float] = []
    usual: list[float] = []
    for block in run.layer_blocks(metric):
        i = int(np.searchsorted(block.step, step, side="right")) - 1
        if i < 0 or block.step[i] != step:
            continue
        there = np.flatnonzero(block.logged[i]).tolist()
        names += [block.layers[j] for j in there]
        values += block.value[i, there].tolist()
        usual += medians(_before(block, onset))[there].tolist()
    return names, np.asarray(values), np.asarray(usual)


def _before(block: LayerBlock, onset: int | None) -> LayerBlock:
    """The rows before the onset; all where these are too few."""
    rows = block.step.size if onset is None else int(np.searchsorted(block.step, onset))
    if rows < LEAST_BEFORE:
        return block
    return replace(
        block, step=block.step[:rows], value=block.value[:rows], logged=block.logged[:rows]
    )


def _finite(value: F64) -> F64:
    return value[np.isfinite(value)]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
