"""Per-layer series in blocks of a bounded number of layers, read from the table on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.columns import ColumnRole
from stabdiag.model import F64, I64, Column, LayerBlock, LogTable, Mask
from stabdiag.runs.hidden import ALWAYS, MIN_GAPS, MIN_ROWS, due
from stabdiag.runs.series import Timeline

# Bounds the memory of a block at 64 x 9 bytes a row, whatever the number of layers.
LAYERS_PER_BLOCK = 64


@dataclass(frozen=True)
class BlockSource:
    """Where blocks come from: the run's rows [P], with `train` and `trouble` rows among them."""

    table: LogTable
    line: Timeline
    train: Mask
    trouble: Mask


def layer_blocks(source: BlockSource, roles: Sequence[ColumnRole]) -> Iterator[LayerBlock]:
    """Yield the layers of one metric, at most `LAYERS_PER_BLOCK` at a time, in file order.

    A layer that is missing in a row with a non-finite loss or norm, where it has always been
    logged, is NaN (`logged` True).
    """
    for first in range(0, len(roles), LAYERS_PER_BLOCK):
        some = roles[first : first + LAYERS_PER_BLOCK]
        loaded = source.table.load([role.column for role in some])
        yield _block(source, some, loaded)


def _block(
    source: BlockSource, roles: Sequence[ColumnRole], loaded: Mapping[str, Column]
) -> LayerBlock:
    line = source.line
    columns = [loaded[role.column] for role in roles]
    logged = np.stack([column.logged[line.row] for column in columns], axis=1)
    any_logged: Mask = np.any(logged, axis=1)
    silent = _silent_rows(source, any_logged)
    rows = np.flatnonzero((any_logged | silent) & line.alive & line.kept)
    rows = rows[np.argsort(line.step[rows], kind="stable")]
    logged = logged[rows]
    value = np.stack([column.value[line.row[rows]] for column in columns], axis=1)
    logged |= _silent_layers(logged, source.trouble[rows], silent[rows])
    step, value, logged = _each_step_once(line.step[rows], value, logged)
    return LayerBlock(
        metric=roles[0].name,
        layers=tuple(role.layer or "" for role in roles),
        columns=tuple(role.column for role in roles),
        step=step,
        value=np.where(logged, value, np.nan),
        logged=logged,
    )


def _silent_rows(source: BlockSource, any_logged: Mask) -> Mask:
    """Training rows in trouble that have no layer though it was due, shape [P]."""
    suspect = source.train & source.trouble & ~any_logged
    if not suspect.any():
        return suspect
    sound = source.train & ~source.trouble
    enough = np.count_nonzero(sound & any_logged) >= MIN_ROWS
    if enough and np.mean(any_logged[sound]) >= ALWAYS:
        return suspect
    return due(source.line.step, any_logged, suspect)


def _silent_layers(logged: Mask, trouble: Mask, silent: Mask) -> Mask:
    """Cells [T, B] that are missing in a row in trouble though the layer was always logged."""
    sound = ~trouble
    found = np.zeros_like(logged)
    if not trouble.any() or np.count_nonzero(sound) < MIN_GAPS:
        return found
    steady = np.mean(logged[sound], axis=0) >= ALWAYS
    found[np.ix_(trouble | silent, steady)] = True
    return found & ~logged


def _each_step_once(step: I64, value: F64, logged: Mask) -> tuple[I64, F64, Mask]:
    """Join rows of the same step: each layer takes the last of its logged cells."""
    if step.size == 0 or np.all(step[1:] > step[:-1]):
        return step, value, logged
    first = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
    at = np.where(logged, np.arange(step.size)[:, None], -1)
    last = np.maximum.reduceat(at, first, axis=0)
    joined = np.take_along_axis(value, np.maximum(last, 0), axis=0)
    return step[first], joined, last >= 0
