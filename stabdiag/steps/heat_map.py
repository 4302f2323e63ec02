"""Layers over time: each layer's level against its own usual one, for a reader to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stabdiag.drawings import HeatBlock, HeatMap
from stabdiag.model import Run
from stabdiag.steps.layer_cells import F32, I8, Cells, cells_of, edges_of, joined, medians, merged
from stabdiag.steps.roles import parts_of

MOST_LAYERS = 120  # rows; beyond them the ranked ones, and an even sample of the others
RANKED = 40
_METRICS = ("grad_norm", "param_norm", "activation_max")
_BAD = ("", "NaN", "Inf")


def layer_cells(run: Run, gathered: Mapping[str, Cells]) -> dict[str, Cells]:
    """The cells of each per-layer metric that is drawn: those `gathered` before, others read."""
    found: dict[str, Cells] = {}
    for metric in _METRICS:
        if run.layers.get(metric):
            cells = gathered.get(metric) or _read(run, metric)
            if cells is not None:
                found[metric] = cells
    return found


def heat_maps(cells: Mapping[str, Cells], ranked: Sequence[str]) -> tuple[HeatMap, ...]:
    """Return the map of each per-layer metric that is logged; `ranked` layers are kept first."""
    return tuple(
        _map(metric, one, ranked)
        for metric, one in cells.items()
        if one.edges.size > 1 and one.layers
    )


def _read(run: Run, metric: str) -> Cells | None:
    edges = edges_of(run)
    parts = [cells_of(block, edges, medians(block)) for block in run.layer_blocks(metric)]
    return joined(parts) if parts else None


def _map(metric: str, cells: Cells, ranked: Sequence[str]) -> HeatMap:
    kept = _kept(cells.layers, ranked)
    rows = [j for j, name in enumerate(cells.layers) if name in kept]
    return HeatMap(
        metric=metric,
        layers=tuple(cells.layers[j] for j in rows),
        first_step=tuple(int(s) for s in cells.edges[:-1]),
        last_step=tuple(int(s) - 1 for s in cells.edges[1:]),
        value=tuple(_values(cells.level[j]) for j in rows),
        bad=tuple(_marks(cells.bad[j]) for j in rows),
        left_out=len(cells.layers) - len(rows),
        blocks=_blocks(cells),
    )


def _blocks(cells: Cells) -> tuple[HeatBlock, ...]:
    """The model's blocks over time, neighbours joined where they are very many; () where alone."""
    parts = parts_of(cells.layers)
    if len(parts) == len(cells.layers):
        return ()
    place = {name: j for j, name in enumerate(cells.layers)}
    out = []
    for group in np.array_split(np.arange(len(parts)), min(len(parts), MOST_LAYERS)):
        some = [parts[i] for i in group.tolist()]
        layers = [layer for _, inside in some for layer in inside]
        level, bad = merged(cells, [place[layer] for layer in layers])
        name = some[0][0] if len(some) == 1 else f"{some[0][0]} to {some[-1][0]}"
        out.append(HeatBlock(name, len(layers), _values(level), _marks(bad)))
    return tuple(out)


def _kept(names: Sequence[str], ranked: Sequence[str]) -> set[str]:
    if len(names) <= MOST_LAYERS:
        return set(names)
    there = set(names)
    kept = {name for name in ranked[:RANKED] if name in there}
    rest = [name for name in names if name not in kept]
    even = np.linspace(0, len(rest) - 1, MOST_LAYERS - len(kept)).astype(int)
    return kept | {rest[i] for i in even.tolist()}


def _values(level: F32) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(v) else round(float(v), 3) for v in level)


def _marks(bad: I8) -> tuple[str, ...]:
    return tuple(_BAD[b] for b in bad.tolist())
