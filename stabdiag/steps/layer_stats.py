"""Per-layer figures, gathered block by block so that memory doesn't grow with the layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, LayerBlock, Mask, Run
from stabdiag.signals.baseline import MAD_TO_SIGMA
from stabdiag.signals.median import row_medians
from stabdiag.steps.layer_cells import Cells, cells_of, edges_of, joined
from stabdiag.threads import each

SAMPLES = 200  # rows kept of each layer for ratios over time
BEFORE = 100  # rows before an onset that make a layer's baseline
AFTER = 10  # rows after an onset in which its peak is looked for
LOG_FLOOR = 0.05
FIGURES = (
    "median",
    "first",
    "last",
    "jump",
    "jump_usual",
    "onset_jump",
    "peak_score",
    "peak_log",
    "left_step",
)
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
            for key in (*FIGURES, "bad_step", "bad_share")
        },
    )


def _block(block: LayerBlock, onset: int | None, marked: tuple[int, ...], edges: I64) -> LayerStats:
    value, step = block.value, block.step
    n, count = value.shape
    ok = block.logged & np.isfinite(value) & (value > 0)
    rows = np.unique(np.linspace(0, max(0, n - 1), min(n, SAMPLES)).astype(np.int64))
    bad = block.logged & ~np.isfinite(value)
    figures = _figures_of(value, step, ok, onset)
    return LayerStats(
        metric=block.metric,
        layers=block.layers,
        sample=np.where(ok[rows], value[rows], np.nan),
        sample_step=step[rows],
        marked=_rows_at(block, ok, marked),
        cells=cells_of(block, edges, figures["median"]),
        bad_step=np.where(bad.any(axis=0), step[bad.argmax(axis=0)], -1)
        if n
        else np.full(count, -1),
        bad_share=bad.sum(axis=0) / np.maximum(block.logged.sum(axis=0), 1),
        left_step=np.nan_to_num(figures.pop("left_step"), nan=-1.0).astype(np.int64),
        **figures,
    )


def _figures_of(value: F64, step: I64, ok: Mask, onset: int | None) -> dict[str, F64]:
    """The figures of each layer, [B] each: all at once where every cell is good."""
    if ok.shape[0] and ok.all():
        return _figures(value.T, step, onset)
    out = {key: np.full(ok.shape[1], np.nan) for key in FIGURES}
    for j in np.flatnonzero(ok.any(axis=0)).tolist():
        at = np.flatnonzero(ok[:, j])
        for key, figure in _figures(value[None, at, j], step[at], onset).items():
            out[key][j] = figure[0]
    return out


def _figures(y: F64, s: I64, onset: int | None) -> dict[str, F64]:
    """The figures of layers logged at the same steps, positive and finite: `y` [B, T]."""
    edge = max(1, min(5, s.size // 20))
    out = {key: np.full(y.shape[0], np.nan) for key in FIGURES}
    out["median"] = row_medians(y)
    out["first"], out["last"] = row_medians(y[:, :edge]), row_medians(y[:, -edge:])
    log = np.log(y)
    out |= _jumps(log, s, onset)
    return out if onset is None else out | _around(log, s, onset)


def _rows_at(block: LayerBlock, ok: Mask, marked: tuple[int, ...]) -> F64:
    """The block's rows at the steps `marked`, [K, B]; NaN where one was not logged."""
    out = np.full((len(marked), len(block.layers)), np.nan)
    for k, wanted in enumerate(marked):
        i = int(np.searchsorted(block.step, wanted))
        if i < block.step.size and block.step[i] == wanted:
            out[k] = np.where(ok[i], block.value[i], np.nan)
    return out


def _jumps(log: F64, s: I64, onset: int | None) -> dict[str, F64]:
    if s.size < 4:
        return {}
    change = np.abs(np.diff(log, axis=1))
    skip = max(1, change.shape[1] // 10)
    late = change[:, skip:]
    if not late.size:
        return {}
    jump = late.max(axis=1)
    out = {"jump": jump, "jump_usual": jump / np.maximum(row_medians(late), 1e-4)}
    if onset is not None:
        first = int(np.searchsorted(s, onset))
        near = change[:, max(skip, first - 1) : first + 2]
        out["onset_jump"] = near.max(axis=1, initial=0.0)
    return out


def _around(log: F64, s: I64, onset: int) -> dict[str, F64]:
    at = int(np.searchsorted(s, onset))
    start = max(0, at - 25)
    past = log[:, max(0, start - BEFORE) : start] if start >= 10 else log[:, : max(0, at - 2)]
    if past.shape[1] < 5 or at >= s.size:
        return {}
    level = row_medians(log[:, max(0, at - 16) : at])[:, None]
    spread = MAD_TO_SIGMA * row_medians(np.abs(past - row_medians(past)[:, None]))
    scale = np.maximum(spread, LOG_FLOOR)[:, None]
    part = (log[:, start : at + AFTER] - level) / scale
    peak = part[:, at - start :].max(axis=1)
    out_of = part > LEFT
    # before the onset a lone point is a blip: two in a row are needed
    again = out_of & np.pad(out_of[:, 1:], ((0, 0), (0, 1)))
    steps = s[start : start + part.shape[1]]
    left = np.where(steps < onset, again, out_of)
    left_step = np.where(left.any(axis=1), steps[left.argmax(axis=1)], np.nan)
    return {"peak_score": peak, "peak_log": peak * scale[:, 0], "left_step": left_step}
