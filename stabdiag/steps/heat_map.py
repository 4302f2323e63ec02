"""Layers over time: each layer's level against its own usual one, in cells that keep extremes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.findings import HeatMap
from stabdiag.model import F64, I64, LayerBlock, Run

CELLS = 96  # columns of time
MOST_LAYERS = 120  # rows; beyond them the ranked ones, and an even sample of the others
RANKED = 40
_METRICS = ("grad_norm", "param_norm", "activation_max")


@dataclass(frozen=True)
class _Rows:
    """Cells of some layers, [B, C] each; `bad` is 0, 1 for NaN, 2 for Inf."""

    layers: tuple[str, ...]
    value: F64
    bad: I64


def heat_maps(run: Run, ranked: Sequence[str]) -> tuple[HeatMap, ...]:
    """Return the map of each per-layer metric that is logged; `ranked` layers are kept first.

    Only the cells are held, of one block of layers at a time.
    """
    made = (_map(run, metric, ranked) for metric in _METRICS if run.layers.get(metric))
    return tuple(one for one in made if one is not None)


def _map(run: Run, metric: str, ranked: Sequence[str]) -> HeatMap | None:
    names = run.layers[metric]
    kept = _kept(names, ranked)
    edges = _edges(run)
    if edges.size < 2:
        return None
    rows: dict[str, tuple[F64, I64]] = {}
    for block in run.layer_blocks(metric):
        part = _cells(block, kept, edges)
        for place, layer in enumerate(part.layers):
            rows[layer] = part.value[place], part.bad[place]
    shown = [name for name in names if name in rows]
    if not shown:
        return None
    return HeatMap(
        metric=metric,
        layers=tuple(shown),
        first_step=tuple(int(s) for s in edges[:-1]),
        last_step=tuple(int(s) - 1 for s in edges[1:]),
        value=tuple(
            tuple(None if np.isnan(v) else round(float(v), 3) for v in rows[name][0])
            for name in shown
        ),
        bad=tuple(tuple(("", "NaN", "Inf")[b] for b in rows[name][1]) for name in shown),
        left_out=len(names) - len(shown),
    )


def _kept(names: Sequence[str], ranked: Sequence[str]) -> set[str]:
    if len(names) <= MOST_LAYERS:
        return set(names)
    kept = {name for name in ranked[:RANKED] if name in set(names)}
    rest = [name for name in names if name not in kept]
    even = np.linspace(0, len(rest) - 1, MOST_LAYERS - len(kept)).astype(int)
    return kept | {rest[i] for i in even.tolist()}


def _edges(run: Run) -> I64:
    """Steps at which cells begin, and one past the last; each at least one step wide."""
    steps = [s for one in run.segments for s in (one.first_step, one.last_step)]
    if not steps:
        return np.zeros(0, dtype=np.int64)
    first, last = min(steps), max(steps)
    return np.unique(
        np.linspace(first, last + 1, min(CELLS, last - first + 1) + 1).astype(np.int64)
    )


def _cells(block: LayerBlock, kept: set[str], edges: I64) -> _Rows:
    columns = [j for j, layer in enumerate(block.layers) if layer in kept]
    shape = (len(columns), edges.size - 1)
    value, bad = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    border = np.searchsorted(block.step, edges)
    filled = np.flatnonzero(np.diff(border) > 0)
    if columns and filled.size:
        x, logged = block.value[:, columns], block.logged[:, columns]
        finite = np.where(logged & np.isfinite(x) & (x > 0), x, np.nan)
        start = border[filled]
        middle = _median(finite)
        with np.errstate(invalid="ignore", divide="ignore"):
            high = np.log10(np.fmax.reduceat(finite, start, axis=0) / middle)
            low = np.log10(np.fmin.reduceat(finite, start, axis=0) / middle)
        value[:, filled] = np.where(np.abs(high) >= np.abs(low), high, low).T
        nan = np.logical_or.reduceat(logged & np.isnan(x), start, axis=0)
        inf = np.logical_or.reduceat(logged & np.isinf(x), start, axis=0)
        bad[:, filled] = np.where(inf, 2, np.where(nan, 1, 0)).T
    return _Rows(tuple(block.layers[j] for j in columns), value, bad)


def _median(finite: F64) -> F64:
    """Median of each column's finite values, NaN where there is none."""
    return np.array(
        [float(np.median(c[~np.isnan(c)])) if (~np.isnan(c)).any() else np.nan for c in finite.T]
    )
