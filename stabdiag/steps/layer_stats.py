"""Per-layer figures, gathered block by block so that memory doesn't grow with the layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, LayerBlock, Mask, Run
from stabdiag.signals.baseline import MAD_TO_SIGMA
from stabdiag.signals.median import median
from stabdiag.steps.layer_cells import Cells, cells_of, edges_of, joined
from stabdiag.threads import each

SAMPLES = 200  # rows kept of each layer for ratios over time
BEFORE = 100  # rows before an onset that make a layer's baseline
AFTER = 10  # rows after an onset in which its peak is looked for
LOG_FLOOR = 0.05
LEFT = 6.0  # robust standard deviations of the log: the layer left its baseline (SD402)


@dataclass(frozen=True)
class LayerStats:
    """Figures of one per-layer metric, shape [L] each unless said.

    `median`, `first`, `last`: of the finite positive values (NaN: none). `sample` [S, L] holds
    evenly spaced rows, at steps `sample_step` [S]. Around the onset, on the log: `peak_score`,
    `peak_log` (height), `left_step` (first step scored above 6, -1: none). `bad_step`: first
    non-finite value (-1: none), `bad_share` the share of them. `jump`: largest absolute change of
    the log between two logged rows after the first tenth, `jump_usual` times the usual one;
    `onset_jump` the same near the onset only. `marked` [K, L] holds the rows at the steps asked
    for. `cells` is the metric over time, for a reader to look at.
    """

    metric: str
    layers: tuple[str, ...]
    median: F64
    first: F64
    last: F64
    sample: F64
    sample_step: I64
    peak_score: F64
    peak_log: F64
    left_step: I64
    bad_step: I64
    bad_share: F64
    jump: F64
    jump_usual: F64
    onset_jump: F64
    marked: F64
    cells: Cells


def gather(
    run: Run, metric: str, onset: int | None, marked: tuple[int, ...] = ()
) -> LayerStats | None:
    """Gather the figures of a per-layer metric, None where it is not logged.

    `onset` is the step around which scores and jumps are taken; None: whole run only. The rows
    at the steps `marked` are kept as they are (NaN where a step was not logged).
    """
    if not run.layers.get(metric):
        return None
    edges = edges_of(run)
    made = each(lambda block: _block(block, onset, marked, edges), run.layer_blocks(metric))
    parts = [p for p in made if p.layers]
    if not parts:
        return None
    same = all(np.array_equal(p.sample_step, parts[0].sample_step) for p in parts)
    rows = min(p.sample.shape[0] for p in parts)
    return LayerStats(
        metric=metric,
        layers=tuple(name for p in parts for name in p.layers),
        sample=np.concatenate([p.sample[:rows] for p in parts], axis=1),
        sample_step=parts[0].sample_step if same else parts[0].sample_step[:rows],
        marked=np.concatenate([p.marked for p in parts], axis=1),
        cells=joined([p.cells for p in parts]),
        **{
            key: np.concatenate([getattr(p, key) for p in parts])
            for key in (
                "median",
                "first",
                "last",
                "peak_score",
                "peak_log",
                "left_step",
                "bad_step",
                "bad_share",
                "jump",
                "jump_usual",
                "onset_jump",
            )
        },
    )


def _block(block: LayerBlock, onset: int | None, marked: tuple[int, ...], edges: I64) -> LayerStats:
    value, step = block.value, block.step
    n, count = value.shape
    ok = block.logged & np.isfinite(value) & (value > 0)
    rows = (
        np.unique(np.linspace(0, n - 1, min(n, SAMPLES)).astype(np.int64))
        if n
        else np.zeros(0, np.int64)
    )
    out = {
        key: np.full(count, np.nan)
        for key in (
            "median",
            "first",
            "last",
            "peak_score",
            "peak_log",
            "jump",
            "jump_usual",
            "onset_jump",
            "bad_share",
        )
    }
    marks = {key: np.full(count, -1, dtype=np.int64) for key in ("left_step", "bad_step")}
    for j in range(count):
        y, s, good = value[:, j], step, ok[:, j]
        out["bad_share"][j] = 0.0
        if not good.all():
            logged = block.logged[:, j]
            bad = np.flatnonzero(logged & ~np.isfinite(y))
            out["bad_share"][j] = bad.size / max(1, int(np.count_nonzero(logged)))
            if bad.size:
                marks["bad_step"][j] = step[bad[0]]
            y, s = y[good], s[good]
        if y.size == 0:
            continue
        out["median"][j] = median(y)
        edge = max(1, min(5, y.size // 20))
        out["first"][j] = np.median(y[:edge])
        out["last"][j] = np.median(y[-edge:])
        log = np.log(y)
        _jumps(log, s, onset, j, out)
        if onset is not None:
            _around(log, s, onset, j, out, marks)
    sample = np.where(ok[rows], value[rows], np.nan)
    return LayerStats(
        metric=block.metric,
        layers=block.layers,
        sample=sample,
        sample_step=step[rows],
        marked=_rows_at(block, ok, marked),
        cells=cells_of(block, edges, out["median"]),
        median=out["median"],
        first=out["first"],
        last=out["last"],
        peak_score=out["peak_score"],
        peak_log=out["peak_log"],
        jump=out["jump"],
        jump_usual=out["jump_usual"],
        onset_jump=out["onset_jump"],
        left_step=marks["left_step"],
        bad_step=marks["bad_step"],
        bad_share=out["bad_share"],
    )


def _rows_at(block: LayerBlock, ok: Mask, marked: tuple[int, ...]) -> F64:
    """The block's rows at the steps `marked`, [K, B]; NaN where one was not logged."""
    out = np.full((len(marked), len(block.layers)), np.nan)
    for k, wanted in enumerate(marked):
        i = int(np.searchsorted(block.step, wanted))
        if i < block.step.size and block.step[i] == wanted:
            out[k] = np.where(ok[i], block.value[i], np.nan)
    return out


def _jumps(log: F64, s: I64, onset: int | None, j: int, out: dict[str, F64]) -> None:
    if log.size < 4:
        return
    change = np.abs(np.diff(log))
    skip = max(1, change.size // 10)
    late = change[skip:]
    if late.size == 0:
        return
    k = skip + int(np.argmax(late))
    usual = max(median(late), 1e-4)
    out["jump"][j] = change[k]
    out["jump_usual"][j] = change[k] / usual
    if onset is not None:
        first = int(np.searchsorted(s, onset))
        near = change[max(skip, first - 1) : first + 2]
        out["onset_jump"][j] = float(near.max()) if near.size else 0.0


def _around(
    log: F64, s: I64, onset: int, j: int, out: dict[str, F64], marks: dict[str, I64]
) -> None:
    at = int(np.searchsorted(s, onset))
    start = max(0, at - 25)
    past = log[max(0, start - BEFORE) : start] if start >= 10 else log[: max(0, at - 2)]
    if past.size < 5 or at >= log.size:
        return
    level = float(np.median(log[max(0, at - 16) : at])) if at else float(np.median(past))
    scale = max(MAD_TO_SIGMA * float(np.median(np.abs(past - np.median(past)))), LOG_FLOOR)
    part = (log[start : at + AFTER] - level) / scale
    after = part[at - start :]
    out["peak_score"][j] = float(after.max())
    out["peak_log"][j] = float(after.max()) * scale
    out_of = part > LEFT
    # before the onset a lone point is a blip: two in a row are needed
    again = out_of & np.append(out_of[1:], False)
    left = np.flatnonzero(np.where(s[start : start + part.size] < onset, again, out_of))
    if left.size:
        marks["left_step"][j] = s[start + left[0]]
