"""The cells of the columns that are no layers, read once, as the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stabdiag.columns import ColumnPlan, ColumnRole
from stabdiag.columns.step_column import numbers_of
from stabdiag.model import F64, Column, LogTable, Mask

_READ = frozenset(
    {"metric", "step", "epoch", "tokens", "time", "batch_id", "batch_statistic", "run", "other"}
)


@dataclass(frozen=True)
class Cells:
    """One series before rows are put in order: `value` and `logged`, shape [R] each.

    `value` is NaN where nothing was logged. `column` names where it is from (columns joined by
    " + " for a sum).
    """

    column: str
    role: ColumnRole
    value: F64
    logged: Mask


@dataclass(frozen=True)
class Loaded:
    """All that is read of a table but its layers: raw columns, and series by canonical name."""

    columns: Mapping[str, Column]
    series: Mapping[str, Cells]


def load_cells(table: LogTable, plan: ColumnPlan, run: str | None = None) -> Loaded:
    """Read every column that is neither a layer nor ignored; `run` is one of a chart export's."""
    roles = [r for r in plan.roles if r.run is None or r.run == run]
    wanted = [r.column for r in roles if r.kind in _READ]
    if plan.kind_column is not None:
        wanted.append(plan.kind_column)
    columns = table.load(wanted) if wanted else {}
    series: dict[str, Cells] = {}
    for role in roles:
        if role.kind in _READ and role.name and role.kind not in ("step", "batch_id", "run"):
            cells = columns[role.column]
            series[role.name] = Cells(role.column, role, *_read(role, cells))
    own = {role.column for role in roles}
    for name, parts in plan.sums.items():
        of_run = [part for part in parts if part in own]
        if of_run:
            series[name] = _sum(name, [_role_of(roles, part) for part in of_run], columns, table)
    return Loaded(columns, series)


def _read(role: ColumnRole, cells: Column) -> tuple[F64, Mask]:
    if role.reading == "power_of_two":
        with np.errstate(over="ignore"):
            return np.exp2(cells.value), cells.logged
    if role.reading == "inverted":
        return np.where(np.isfinite(cells.value), 1.0 - cells.value, cells.value), cells.logged
    return cells.value, cells.logged


def _role_of(roles: list[ColumnRole], column: str) -> ColumnRole:
    return next(role for role in roles if role.column == column)


def _sum(
    name: str, roles: list[ColumnRole], columns: Mapping[str, Column], table: LogTable
) -> Cells:
    """Sum of parts where all are logged; a part that isn't a number makes the sum none."""
    missing = [role.column for role in roles if role.column not in columns]
    read = {**columns, **(table.load(missing) if missing else {})}
    parts = [read[role.column] for role in roles]
    logged = np.logical_and.reduce([part.logged for part in parts])
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(logged, np.sum([part.value for part in parts], axis=0), np.nan)
    return Cells(" + ".join(role.column for role in roles), roles[0], value, logged)


def counter(columns: Mapping[str, Column], name: str | None) -> tuple[F64, Mask] | None:
    """A counting column's numbers and where they are whole, shape [R]; None without a column."""
    if name is None or name not in columns:
        return None
    value, usable = numbers_of(columns[name])
    whole = usable & (np.where(usable, value, 0.5) == np.floor(np.where(usable, value, 0.0)))
    return value, whole
