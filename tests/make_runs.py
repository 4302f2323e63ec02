"""Synthetic runs with a known truth: as columns, as a log file, or as a Run without a file.

A cell of a column is a number, a text, or None where nothing was logged; NaN is a value that the
training loop wrote. Columns of a healthy run are the start; a test puts its fault in.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stabdiag.model import BatchTable, LayerBlock, Note, Run, Segment, Series

F64: TypeAlias = NDArray[np.float64]
Cell: TypeAlias = float | int | str | None
Values: TypeAlias = Sequence[Cell] | F64 | NDArray[np.int64]
Columns: TypeAlias = Mapping[str, Values]

VOCABULARY = 256


def healthy(
    points: int = 400, *, seed: int = 0, cadence: int = 1, noise: float = 0.02
) -> dict[str, F64]:
    """Columns of a quiet language-model run: loss, grad norm, parameter norm and learning rate.

    The loss falls from ln(256) to about 2 with normal noise, the grad norm is log-normal around
    1, the parameter norm grows by a half, the rate warms up and decays; `cadence` steps a row.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(points) / max(1, points - 1)
    start = math.log(VOCABULARY)
    warm = np.minimum(1.0, (np.arange(points) + 1) / max(1, points // 20))
    return {
        "step": np.arange(points, dtype=np.float64) * cadence,
        "loss": 2.0 + (start - 2.0) * np.exp(-5.0 * t) + noise * rng.standard_normal(points),
        "grad_norm": (1.0 + np.exp(-20.0 * t)) * np.exp(0.15 * rng.standard_normal(points)),
        "param_norm": 40.0 * (1.0 + 0.5 * t) + 1e-3 * rng.standard_normal(points),
        "lr": 1e-3 * warm * (0.1 + 0.9 * 0.5 * (1.0 + np.cos(np.pi * t))),
    }


def healthy_layers(points: int = 400, *, blocks: int = 4, seed: int = 1) -> dict[str, F64]:
    """Per-layer columns of a quiet transformer: `grad_norm/<layer>` and `param_norm/<layer>`."""
    rng = np.random.default_rng(seed)
    t = np.arange(points) / max(1, points - 1)
    columns: dict[str, F64] = {}
    names = ["wte.weight"]
    for i in range(blocks):
        names += [f"h.{i}.attn.c_proj.weight", f"h.{i}.mlp.c_fc.weight", f"h.{i}.ln_1.weight"]
    names.append("lm_head.weight")
    for k, name in enumerate(names):
        size = 0.6 if name.startswith(("wte", "lm_head")) else 0.1 + 0.01 * (k % 3)
        columns[f"grad_norm/{name}"] = size * np.exp(0.1 * rng.standard_normal(points))
    for k, name in enumerate(names):
        size = 12.0 if name.startswith(("wte", "lm_head")) else 8.0 + 0.2 * (k % 3)
        columns[f"param_norm/{name}"] = size * (1.0 + 0.4 * t) + 1e-4 * rng.standard_normal(points)
    return columns


def spike(columns: dict[str, F64], name: str, at: int, height: float, points: int = 1) -> None:
    """Raise `points` values of a column from index `at` by `height`, falling off by half each."""
    for k in range(points):
        columns[name][at + k] += height * 0.5**k


def write_log(path: Path, columns: Columns) -> Path:
    """Write columns as the log that the suffix asks for: .csv, .tsv, .jsonl or .parquet.

    None becomes an empty cell, an absent key, or a null; NaN and infinities are written as such.
    """
    names = list(columns)
    rows = list(zip(*(_cells(columns[n]) for n in names), strict=True))
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, delimiter="," if path.suffix == ".csv" else "\t")
            writer.writerow(names)
            writer.writerows([["" if c is None else _text(c) for c in row] for row in rows])
    elif path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as out:
            for row in rows:
                known = {n: c for n, c in zip(names, row, strict=True) if c is not None}
                out.write(json.dumps(known) + "\n")
    elif path.suffix == ".parquet":
        arrays = [pa.array(list(column)) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(arrays, names=names), path)
    else:
        raise ValueError(f"no writer for {path.suffix!r}")
    return path


def _cells(values: Values) -> list[Cell]:
    if isinstance(values, np.ndarray):
        whole = bool(np.all(np.isfinite(values)) and np.all(values == np.round(values)))
        big = bool(values.size and np.max(np.abs(values)) < 2**53) if whole else False
        return [int(v) for v in values.tolist()] if whole and big else values.tolist()
    return list(values)


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else repr(cell)


def run_of(**series: Values) -> Run:
    """A Run from series of equal length; see `run_from`."""
    return run_from(series)


def run_from(
    columns: Columns,
    *,
    name: str = "run",
    layers: Columns | None = None,
    batch: Columns | None = None,
    notes: Sequence[Note] = (),
    facts: Mapping[str, str] | None = None,
) -> Run:
    """A Run from columns of equal length, in file order; `step` counts rows where it is left out.

    A step that goes back begins a new segment, and what it overwrites is put aside, as the readers
    do. `layers` is keyed `metric/layer`; `batch` holds statistics (numbers) and ids (texts).
    """
    values = {k: _cells(v) for k, v in columns.items()}
    rows = max((len(v) for v in values.values()), default=0)
    step = np.asarray(values.pop("step", list(range(rows))), dtype=np.int64)
    segment, gone = _restarts(step)
    kept: dict[str, Series] = {}
    abandoned: dict[str, Series] = {}
    for key, cells in values.items():
        logged = np.asarray([c is not None for c in cells], dtype=np.bool_)
        value = np.asarray([np.nan if c is None else float(c) for c in cells], dtype=np.float64)
        for into, mask in ((kept, logged & ~gone), (abandoned, logged & gone)):
            if mask.any():
                into[key] = _series(key, step, value, segment, mask)
    edges = [0, *(np.flatnonzero(np.diff(segment)) + 1).tolist(), rows]
    segments = tuple(
        Segment(int(step[a]), int(step[b - 1]), a, b - 1)
        for a, b in itertools.pairwise(edges)
        if b > a
    )
    grids = _grids(layers or {})

    def blocks(metric: str) -> Iterator[LayerBlock]:
        if metric in grids:
            yield _block(metric, grids[metric], step, ~gone)

    return Run(
        name=name,
        files=(f"{name}.csv",),
        format="csv",
        rows=rows,
        axis="step",
        series=kept,
        abandoned=abandoned,
        segments=segments,
        layers={metric: tuple(grid) for metric, grid in grids.items()},
        layer_blocks=blocks,
        batch=None if batch is None else _batch(batch, step, ~gone),
        notes=tuple(notes),
        facts=dict(facts or {}),
        siblings=(),
    )


def _restarts(step: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(segment of each row, whether a later restart overwrote it)."""
    segment = np.zeros(step.size, dtype=np.int64)
    gone = np.zeros(step.size, dtype=np.bool_)
    for i in np.flatnonzero(np.diff(step) < 0) + 1:
        segment[i:] += 1
        gone[:i] |= step[:i] >= step[i]
    return segment, gone


def _series(
    key: str,
    step: NDArray[np.int64],
    value: F64,
    segment: NDArray[np.int64],
    mask: NDArray[np.bool_],
) -> Series:
    row = np.flatnonzero(mask).astype(np.int64)
    silent = np.zeros(row.size, dtype=np.bool_)
    return Series(key, key, step[row], value[row], row, segment[row], silent)


def _grids(layers: Columns) -> dict[str, dict[str, list[Cell]]]:
    grids: dict[str, dict[str, list[Cell]]] = {}
    for key, cells in layers.items():
        metric, layer = key.split("/", 1)
        grids.setdefault(metric, {})[layer] = _cells(cells)
    return grids


def _block(
    metric: str, grid: Mapping[str, list[Cell]], step: NDArray[np.int64], keep: NDArray[np.bool_]
) -> LayerBlock:
    cells = [grid[layer] for layer in grid]
    value = np.asarray([[np.nan if c is None else c for c in column] for column in cells]).T
    logged = np.asarray([[c is not None for c in column] for column in cells]).T
    columns = tuple(f"{metric}/{layer}" for layer in grid)
    rows = keep & logged.any(axis=1)
    return LayerBlock(
        metric, tuple(grid), columns, step[rows], value[rows].astype(np.float64), logged[rows]
    )


def _batch(batch: Columns, step: NDArray[np.int64], keep: NDArray[np.bool_]) -> BatchTable:
    ids: dict[str, tuple[str | None, ...]] = {}
    statistics: dict[str, F64] = {}
    for key, values in batch.items():
        cells = _cells(values)
        if any(isinstance(c, str) for c in cells):
            texts = [None if c is None else str(c) for c in cells]
            ids[key] = tuple(t for t, k in zip(texts, keep.tolist(), strict=True) if k)
        else:
            numbers = [np.nan if c is None else float(c) for c in cells]
            statistics[key] = np.asarray(numbers, dtype=np.float64)[keep]
    row = np.flatnonzero(keep).astype(np.int64)
    return BatchTable(step[keep], row, ids, statistics)
