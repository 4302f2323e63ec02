"""Which column numbers the rows: an optimizer step, else an epoch or tokens, else the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stabdiag.columns.recognise import Candidate
from stabdiag.errors import UsageError
from stabdiag.model import F64, Column, LogTable, Mask

# A counter must be there in this share of the rows that carry the loss; the others are filled.
MIN_SHARE = 0.5
# Share of its cells that must be whole numbers (a few damaged cells are dropped).
MIN_WHOLE = 0.99
# Above it a float doesn't tell whole numbers apart.
LARGEST_STEP = 2.0**53
# An epoch numbers the rows when no more than this many stand in one on average: a few restarts.
MOST_ROWS = 3


def numbers_of(column: Column) -> tuple[F64, Mask]:
    """A counter's cells as numbers and where they are usable, shape [R] each.

    Text such as "1,250" or "20/1000" counts by its first number.
    """
    if column.kind != "text" or column.text is None:
        return column.value, column.logged & (np.abs(column.value) < LARGEST_STEP)
    value = np.full(len(column.text), np.nan)
    for row, cell in enumerate(column.text):
        head = (cell or "").split("/")[0].replace(",", "").replace("_", "").strip()
        try:
            value[row] = float(head)
        except ValueError:
            continue
    return value, np.abs(value) < LARGEST_STEP


def choose_step(
    candidates: Sequence[Candidate], loaded: Mapping[str, Column], measured: Mask
) -> tuple[str | None, str]:
    """The step column and what it counts, among columns that could be it.

    Args:
        candidates: columns whose kind is step, tokens or epoch.
        loaded: their cells.
        measured: rows that carry the loss (or any metric), shape [R].

    Returns:
        Column and axis; (None, "row") where no column will do.
    """
    for kind in ("step", "epoch", "tokens"):
        group = sorted((c for c in candidates if c.role.kind == kind), key=lambda c: c.fit)
        for candidate in group:
            column = loaded.get(candidate.role.column)
            if column is not None and _usable(column, measured, alone=kind != "step"):
                return candidate.role.column, kind
    return None, "row"


def _usable(column: Column, measured: Mask, *, alone: bool) -> bool:
    """Whether a counter is there and counts; `alone`: it must also tell the rows apart."""
    value, logged = numbers_of(column)
    there = logged & measured
    count, rows = int(np.count_nonzero(there)), int(np.count_nonzero(measured))
    if count == 0 or count < MIN_SHARE * rows:
        return False
    whole = value[there] == np.floor(value[there])
    if np.count_nonzero(whole) < MIN_WHOLE * count:
        return False
    if alone and np.unique(value[there]).size * MOST_ROWS < count:
        return False
    return rows < 2 or bool(np.ptp(value[there]) > 0)


def check_step(table: LogTable, column: str, cells: Column) -> None:
    """Refuse a step column given by the user that doesn't count whole steps."""
    value, logged = numbers_of(cells)
    whole = value[logged] == np.floor(value[logged])
    if not logged.any():
        raise UsageError(
            f"the step column {column!r} of {table.files[0]} holds no number",
            "name another column with --step-column; `stabdiag columns` lists them",
        )
    if np.count_nonzero(whole) < MIN_WHOLE * whole.size:
        row = int(table.line[np.flatnonzero(logged)[np.argmin(whole)]])
        raise UsageError(
            f"the step column {column!r} of {table.files[0]} has no whole number in row {row}",
            "name a column that counts steps with --step-column; `stabdiag columns` lists them",
        )
