"""A per-layer metric reduced to cells, layers by ranges of steps, so that every extreme survives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stabdiag.model import F64, I64, LayerBlock, Mask, Run, cadence_of
from stabdiag.signals.median import median

CELLS = 96  # ranges of steps
AS_FAR_AS_ZERO = 3.0  # a zero is passed over for what is a thousand times the usual level
UP = 0.3  # base-10 logarithm: twice the usual level

F32 = NDArray[np.float32]
I8 = NDArray[np.int8]
NAN, INF = 1, 2


@dataclass(frozen=True)
class Cells:
    """Layers by ranges of steps, [L, C]; range c begins at `edges[c]` and ends before the next.

    `level` is the base-10 logarithm of the value over the layer's own median, of the point in the
    cell that is farthest from it: -Inf for a value of zero, NaN without a finite value. `bad` is
    `NAN` or `INF` where a logged point was that, else 0. Four bytes and one a cell: they are held
    for all layers. `cadence` is the usual number of steps between two logged rows.
    """

    layers: tuple[str, ...]
    edges: I64
    level: F32
    bad: I8
    cadence: int = 1


def edges_of(run: Run) -> I64:
    """Steps at which cells begin, and one past the last; each at least one step wide."""
    steps = [s for one in run.segments for s in (one.first_step, one.last_step)]
    if not steps:
        return np.zeros(0, dtype=np.int64)
    first, last = min(steps), max(steps)
    count = min(CELLS, last - first + 1)
    return np.unique(np.linspace(first, last + 1, count + 1).astype(np.int64))


def cells_of(block: LayerBlock, edges: I64, usual: F64) -> Cells:
    """Reduce one block of layers to cells; `usual` [B] is the median of each, NaN where none is."""
    shape = (len(block.layers), max(0, edges.size - 1))
    level = np.full(shape, np.nan, dtype=np.float32)
    bad = np.zeros(shape, dtype=np.int8)
    border = np.searchsorted(block.step, edges)
    filled = np.flatnonzero(np.diff(border) > 0)
    if filled.size:
        start = border[filled]
        x, logged = block.value, block.logged
        known = logged & np.isfinite(x)
        level[:, filled] = _farthest(x, known, start, usual).T
        if not known.all() and (odd := logged & ~known).any():
            nan = np.logical_or.reduceat(odd & np.isnan(x), start, axis=0)
            inf = np.logical_or.reduceat(odd & np.isinf(x), start, axis=0)
            bad[:, filled] = np.where(inf, INF, np.where(nan, NAN, 0)).T
    return Cells(block.layers, edges, level, bad, cadence_of(block.step))


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of several blocks of layers on the same ranges."""
    return Cells(
        layers=tuple(name for part in parts for name in part.layers),
        edges=parts[0].edges,
        level=np.concatenate([part.level for part in parts]),
        bad=np.concatenate([part.bad for part in parts]),
        cadence=min(part.cadence for part in parts),
    )


def merged(cells: Cells, rows: Sequence[int]) -> tuple[F32, I8]:
    """Several layers as one row [C]: the highest level; where none is up, the farthest one.

    A value that is not finite in one of them shows.
    """
    level = cells.level[list(rows)]
    high, low = np.fmax.reduce(level, axis=0), np.fmin.reduce(level, axis=0)
    pick = (high >= UP) | (np.abs(high) >= np.abs(low))
    out = np.asarray(np.where(pick, high, low), dtype=np.float32)
    return out, np.asarray(cells.bad[list(rows)].max(axis=0))


def _farthest(x: F64, known: Mask, start: I64, usual: F64) -> F64:
    """[cells, layers] base-10 logarithm over the usual level, of the point farthest from it."""
    positive = known & (x > 0)
    all_positive = bool(positive.all())
    value = x if all_positive else np.where(positive, x, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        high = np.log10(np.fmax.reduceat(value, start, axis=0) / usual)
        low = np.log10(np.fmin.reduceat(value, start, axis=0) / usual)
        far = np.where(np.abs(high) >= np.abs(low), high, low)
    if all_positive or not (none := known & ~positive).any():
        return far
    zero = np.logical_or.reduceat(none, start, axis=0)
    return np.where(zero & ~(high > AS_FAR_AS_ZERO), -np.inf, far)


def medians(block: LayerBlock) -> F64:
    """Median of each layer's positive finite values, [B]; NaN where there is none."""
    known = block.logged & np.isfinite(block.value) & (block.value > 0)
    columns = (block.value[known[:, j], j] for j in range(len(block.layers)))
    return np.array([median(x) if x.size else np.nan for x in columns])
