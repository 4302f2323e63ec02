"""The cells of the columns that are no layers, read once, as the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stabdiag.columns import ColumnPlan, ColumnRole
from stabdiag.columns.row_words import SaidKinds, said_kinds
from stabdiag.columns.step_column import numbers_of
from stabdiag.model import F64, Column, LogTable, Mask, Note

_NO_SERIES = ("step", "batch_id", "run", "restart")
_READ = frozenset({"metric", "epoch", "tokens", "time", "batch_statistic", "other", *_NO_SERIES})
_COLUMNS_AT_ONCE = 64


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
    """What is read of a table at once: raw columns, and series by canonical name.

    Of the layers only the first of each metric is among the columns. `said` are the kinds of rows
    that the log states itself.
    """

    columns: Mapping[str, Column]
    series: Mapping[str, Cells]
    said: SaidKinds | None
    notes: tuple[Note, ...] = ()


def load_cells(table: LogTable, plan: ColumnPlan, run: str | None = None) -> Loaded:
    """Read every column that is neither a layer nor ignored; `run` is one of a chart export's."""
    roles = [r for r in plan.roles if r.run is None or r.run == run]
    wanted = [r.column for r in roles if r.kind in _READ]
    columns = table.load(wanted) if wanted else {}
    series: dict[str, Cells] = {}
    for role in roles:
        if role.kind in _READ and role.name and role.kind not in _NO_SERIES:
            series[role.name] = Cells(role.column, role, *_read(role, columns[role.column]))
    for name, parts in plan.sums.items():
        own = [role for role in roles if role.column in parts]
        if own:
            series[name] = _sum(own, columns)
    for name, parts in plan.roots.items():
        series[name] = _root(name, parts, table)
    columns = {**columns, **_witnesses(table, roles)}
    said = said_kinds(table, plan.kind_column)
    if said is not None:
        _evaluated_apart(series, said)
    return Loaded(columns, series, said, _skips_in_each_step(series))


def _witnesses(table: LogTable, roles: Sequence[ColumnRole]) -> dict[str, Column]:
    """The first layer of each metric: it tells which rows are records of layers."""
    first: dict[str, str] = {}
    for role in roles:
        if role.kind == "layer":
            first.setdefault(role.name, role.column)
    return table.load(list(first.values())) if first else {}


def _read(role: ColumnRole, cells: Column) -> tuple[F64, Mask]:
    if role.reading == "power_of_two":
        with np.errstate(over="ignore"):
            return np.exp2(cells.value), cells.logged
    if role.reading == "inverted":
        return np.where(np.isfinite(cells.value), 1.0 - cells.value, cells.value), cells.logged
    return cells.value, cells.logged


def _sum(roles: Sequence[ColumnRole], columns: Mapping[str, Column]) -> Cells:
    """Sum of parts where all are logged; a part that is NaN makes the sum NaN."""
    parts = [columns[role.column] for role in roles]
    logged = np.logical_and.reduce([part.logged for part in parts])
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(logged, np.sum([part.value for part in parts], axis=0), np.nan)
    return Cells(" + ".join(role.column for role in roles), roles[0], value, logged)


def _root(name: str, parts: Sequence[str], table: LogTable) -> Cells:
    """Root of the sum of squares where all parts are logged, a bounded number read at a time."""
    total = np.zeros(table.rows)
    logged = np.ones(table.rows, dtype=np.bool_)
    for first in range(0, len(parts), _COLUMNS_AT_ONCE):
        for column in table.load(parts[first : first + _COLUMNS_AT_ONCE]).values():
            logged &= column.logged
            with np.errstate(over="ignore"):
                total += np.where(column.logged, column.value, 0.0) ** 2
    why = f"the root of the sum of squares over {len(parts)} layers"
    role = ColumnRole(parts[0], "metric", name, None, why, scope="train")
    return Cells(f"{len(parts)} layers", role, np.where(logged, np.sqrt(total), np.nan), logged)


def _evaluated_apart(series: dict[str, Cells], said: SaidKinds) -> None:
    """Where train and eval rows share a loss column, the eval rows' part is the val loss."""
    loss = series.get("loss")
    if loss is None or not np.any(loss.logged & said.train):
        return
    evaluated = loss.logged & said.other
    if not evaluated.any():
        return
    trained = loss.logged & ~evaluated
    series["loss"] = replace(loss, value=np.where(trained, loss.value, np.nan), logged=trained)
    if "val_loss" not in series:
        role = replace(loss.role, name="val_loss", scope="eval")
        value = np.where(evaluated, loss.value, np.nan)
        series["val_loss"] = Cells(loss.column, role, value, evaluated)


def _skips_in_each_step(series: dict[str, Cells]) -> tuple[Note, ...]:
    """Turn a running total of skipped steps into skips since the row before.

    A total never falls, rises more than once and stays where it is in between.
    """
    cells = series.get("skipped")
    if cells is None:
        return ()
    at = np.flatnonzero(cells.logged & np.isfinite(cells.value))
    value = cells.value[at]
    gaps = np.diff(value)
    levels = np.unique(value[value > 0])
    stays = bool(np.any((gaps == 0) & (value[1:] > 0)))
    if np.any(gaps < 0) or levels.size < 2 or not stays:
        return ()
    own = cells.value.copy()
    own[at] = np.diff(value, prepend=value[0])
    series["skipped"] = replace(cells, value=own)
    return (Note("guessed", f"{cells.column} is a running total: read as skips in each row"),)


def counter(columns: Mapping[str, Column], name: str | None) -> tuple[F64, Mask] | None:
    """A counting column's numbers and where they are whole, shape [R]; None without a column."""
    if name is None or name not in columns:
        return None
    value, usable = numbers_of(columns[name])
    whole = np.where(usable, value, 0.5)
    return value, whole == np.floor(whole)
