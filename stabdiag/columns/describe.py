"""How the columns were understood, line by line, with what each holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.columns.records import ColumnPlan, ColumnRole
from stabdiag.columns.step_column import numbers_of
from stabdiag.model import F64, Column, LogTable


@dataclass(frozen=True)
class ColumnLine:
    """One line: a column (or the layers of one metric), its series, points, usual steps between.

    `cadence` is None where fewer than two points are logged.
    """

    column: str
    read_as: str
    points: int
    cadence: int | None
    why: str


def describe(table: LogTable, plan: ColumnPlan) -> list[ColumnLine]:
    """Return a line for every column in the table's order, the layers of a metric as one.

    The points of layers are those of the first one.
    """
    first_of: dict[tuple[str, str | None], list[ColumnRole]] = {}
    for role in plan.roles:
        if role.kind == "layer":
            first_of.setdefault((role.name, role.run), []).append(role)
    shown = [role for role in plan.roles if role.kind != "layer"]
    leaders = [roles[0] for roles in first_of.values()]
    names = {role.column for role in (*shown, *leaders)}
    loaded = table.load([name for name in table.names if name in names])
    step = numbers_of(loaded[plan.step])[0] if plan.step else np.arange(table.rows, dtype=float)
    lines = []
    for role in plan.roles:
        if role.kind != "layer":
            lines.append(_line(role.column, _read_as(role), loaded[role.column], step, role.why))
        elif role in leaders:
            group = first_of[role.name, role.run]
            lines.append(_line(_together(group), role.name, loaded[role.column], step, role.why))
    return lines


def _read_as(role: ColumnRole) -> str:
    return role.name if role.kind != "ignored" else "ignored"


def _together(roles: list[ColumnRole]) -> str:
    """Names of layer columns as one: "gradients/* (48 layers)"."""
    first = roles[0]
    layer = first.layer or ""
    shape = first.column.replace(layer, "*", 1) if layer in first.column else first.column
    return f"{shape} ({len(roles)} layers)"


def _line(name: str, read_as: str, cells: Column, step: F64, why: str) -> ColumnLine:
    at = np.unique(step[cells.logged & np.isfinite(step)])
    cadence = int(np.median(np.diff(at))) if at.size > 1 else None
    return ColumnLine(name, read_as, int(np.count_nonzero(cells.logged)), cadence, why)
