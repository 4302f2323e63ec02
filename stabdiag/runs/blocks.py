"""Per-layer series in blocks of a bounded number of layers, read from the table on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stabdiag.columns import ColumnRole
from stabdiag.model import F64, I64, Column, LayerBlock, LogTable, Mask
from stabdiag.runs.hidden import ALWAYS, MIN_GAPS, MIN_ROWS, due
from stabdiag.runs.series import Timeline

Kind = TypeVar("Kind", bound=np.generic)

LAYERS_PER_BLOCK = 64
# Bounds the memory of a block at 5 MB, whatever the number of layers and rows (of a single layer
# where that has more rows).
CELLS_PER_BLOCK = 500_000


@dataclass(frozen=True)
class BlockSource:
    """Where blocks come from: the run's rows [P], with `train` and `trouble` rows among them.

    `take` picks the run's rows of the table's.
    """

    table: LogTable
    line: Timeline
    take: I64 | slice
    train: Mask
    trouble: Mask


def layer_blocks(source: BlockSource, roles: Sequence[ColumnRole]) -> Iterator[LayerBlock]:
    """Yield the layers of one metric in file order, a bounded number of cells at a time.

    A layer that is missing in a row with a non-finite loss or norm, where it has always been
    logged, is NaN (`logged` True).
    """
    at_once = min(LAYERS_PER_BLOCK, max(1, CELLS_PER_BLOCK // max(1, source.line.row.size)))
    for first in range(0, len(roles), at_once):
        some = roles[first : first + at_once]
        loaded = source.table.load([role.column for role in some])
        yield _block(source, some, loaded)


def _block(
    source: BlockSource, roles: Sequence[ColumnRole], loaded: Mapping[str, Column]
) -> LayerBlock:
    line = source.line
    columns = [loaded[role.column] for role in roles]
    logged = _beside([column.logged for column in columns], source.take)
    present = line.alive & line.kept
    if line.rising and present.all() and logged.all():  # the usual log: nothing to pick
        step, value = line.step, _beside([column.value for column in columns], source.take)
    else:
        any_logged: Mask = np.any(logged, axis=1)
        silent = _silent_rows(source, any_logged)
        rows = np.flatnonzero(present & (any_logged | silent))
        rows = rows[np.argsort(line.step[rows], kind="stable")]
        value = _beside([column.value for column in columns], line.row[rows])
        logged = _beside(list(logged.T), rows)
        logged |= _silent_layers(logged, source.trouble[rows], silent[rows])
        step, value, logged = _each_step_once(line.step[rows], value, logged)
        value = np.where(logged, value, np.nan)
    return LayerBlock(
        metric=roles[0].name,
        layers=tuple(role.layer or "" for role in roles),
        columns=tuple(role.column for role in roles),
        step=step,
        value=value,
        logged=logged,
    )


def _beside(columns: Sequence[NDArray[Kind]], rows: I64 | slice) -> NDArray[Kind]:
    """The same rows of several columns, [P, B]; each column in one piece, as it is looked at."""
    return np.stack([column[rows] for column in columns]).T


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
