"""Which rows of a table are training records, and which are evaluations or summaries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import LogTable, Mask
from stabdiag.runs.cells import Loaded

# A training record carries one of these.
_OF_TRAINING = ("loss", "grad_norm", "grad_norm_clipped")
# A column that is logged in fewer of the rows with a loss belongs to another kind of record.
TYPICAL = 0.5
# ... unless the loss is logged beside it in nearly all the rows where it stands itself.
BESIDE = 0.9


@dataclass(frozen=True)
class RowKinds:
    """Masks over the table's rows, shape [R] each.

    `loss` rows carry a training measurement. `train` rows do, or hold nothing that a training
    record doesn't hold: where their loss is missing it may be a NaN that was not written. Rows
    that are not `train` are evaluations, summaries and records of something else.
    """

    loss: Mask
    train: Mask


def row_kinds(table: LogTable, loaded: Loaded) -> RowKinds:
    """Tell the rows apart by what the log says of them, else by which cells are filled."""
    measured = np.zeros(table.rows, dtype=np.bool_)
    for name in _OF_TRAINING:
        if name in loaded.series:
            measured |= loaded.series[name].logged
    if loaded.said is not None:
        known, train = loaded.said.known, loaded.said.train
        loss = measured & (train | ~known)
        return RowKinds(loss, (known & train) | (~known & _like_training(loaded, loss)))
    return RowKinds(measured, measured | _like_training(loaded, measured))


def _like_training(loaded: Loaded, measured: Mask) -> Mask:
    """Rows without a cell that rows with a loss don't usually have, shape [R]."""
    like = np.ones(measured.size, dtype=np.bool_)
    rows = int(np.count_nonzero(measured))
    if rows == 0:
        return like
    until_last = np.arange(measured.size) <= np.flatnonzero(measured)[-1]
    for column in loaded.columns.values():
        beside = int(np.count_nonzero(column.logged & measured))
        alone = int(np.count_nonzero(column.logged & until_last))
        if beside < TYPICAL * rows and (alone == 0 or beside < BESIDE * alone):
            like &= ~column.logged
    return like
