"""The recorder's count of restarts: a column that says where a run was resumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stabdiag.columns.records import ColumnRole
from stabdiag.model import LogTable

# Every row of the recorder begins with these two. Others call a phase of a curriculum, a piece of
# audio or a shard a segment: a restart read from it would put a change of the loss down to a resume.
_BEGINS_WITH = ("step", "segment")
# What the recorder writes beside them under its own names: the learning rate in every step's row,
# and one of the norms that a loop seldom logs.
_BESIDE = "lr"
_NORMS = ("grad_param_ratio", "grad_norm/", "param_norm/")


def restart_column_of(table: LogTable, roles: Sequence[ColumnRole], step: str | None) -> str | None:
    """The column that counts the run's restarts, None where no column surely does.

    It is the recorder's: known by its place and company, and by its cells, whole numbers in every
    row that never fall and rise by one. A count that begins anew (logs put behind one another) is
    not read; the steps tell such restarts.
    """
    if step != _BEGINS_WITH[0] or table.names[:2] != _BEGINS_WITH or _BESIDE not in table.names:
        return None
    if not any(name.startswith(_NORMS) for name in table.names):
        return None
    column = _BEGINS_WITH[1]
    if not any(role.column == column and role.kind == "other" for role in roles):
        return None
    cells = table.load([column])[column]
    if not np.isfinite(cells.value).all():
        return None
    rises = np.diff(cells.value)
    whole = bool(np.all(cells.value[:1] % 1 == 0)) and bool(np.isin(rises, (0, 1)).all())
    return column if whole and np.any(rises > 0) else None
