"""The recorder's count of restarts: a column that says where a run was resumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stabdiag.columns.records import ColumnRole
from stabdiag.model import I64, LogTable

# Every row of the recorder begins with these two. Others call a phase of a curriculum, a piece of
# audio or a shard a segment: a restart read from it would put a change of the loss down to a resume.
_BEGINS_WITH = ("step", "segment")
# What the recorder writes beside them under its own names: the learning rate in every step's row,
# and one of the norms that a loop seldom logs.
_BESIDE = "lr"
_NORMS_SEEN = 8  # of them, enough to know a first row by
_NORMS = ("grad_param_ratio", "grad_norm/", "param_norm/")


def restart_column_of(table: LogTable, roles: Sequence[ColumnRole], step: str | None) -> str | None:
    """The column that counts the run's restarts, None where no column surely does.

    It is the recorder's: known by its place and company, and by its cells, whole numbers in every
    row that rise by one at a restart. Where logs are put behind one another the count begins anew:
    at 0, or at the step where the later log begins. A row that does so is the first of its log, in
    which the recorder writes every norm, however seldom it is due; other falls are no count, nor
    are those where no norm is seldom.
    """
    if step != _BEGINS_WITH[0] or table.names[:2] != _BEGINS_WITH or _BESIDE not in table.names:
        return None
    norms = [name for name in table.names if name.startswith(_NORMS)]
    if not norms:
        return None
    column = _BEGINS_WITH[1]
    if not any(role.column == column and role.kind == "other" for role in roles):
        return None
    cells = table.load([column])[column].value
    if not np.isfinite(cells).all() or (cells[:1] % 1 != 0).any():
        return None
    change = np.diff(cells)
    if not change.any():
        return None
    anew = np.flatnonzero((change != 0) & (change != 1)) + 1
    return column if anew.size == 0 or _begin_logs(table, anew, norms) else None


def _begin_logs(table: LogTable, rows: I64, norms: Sequence[str]) -> bool:
    """Whether a log of the recorder begins at each of these rows."""
    known = table.load([*_BEGINS_WITH, *norms[:_NORMS_SEEN]])
    seldom = [one.logged for name, one in known.items() if name in norms and not one.logged.all()]
    first = [logged for logged in seldom if logged[0]]
    count, step = known["segment"].value[rows], known["step"].value[rows]
    begins = (count == 0) | (count == step)
    return bool(first) and bool(begins.all()) and all(bool(one[rows].all()) for one in first)
