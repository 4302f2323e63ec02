"""A log that was read once, from which each of its runs, or a part of one, is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.columns import ColumnPlan, understand
from stabdiag.columns.step_column import numbers_of
from stabdiag.model import LogTable, Run
from stabdiag.readers import read_log
from stabdiag.runs import build_run
from stabdiag.settings import Settings


@dataclass(frozen=True)
class OpenedLog:
    """A table, and how its columns were understood."""

    table: LogTable
    plan: ColumnPlan

    def run(self, settings: Settings) -> Run:
        """Return the run and steps that `settings` ask for.

        Raises:
            ManyRunsError: the log holds several runs and `settings.run` names none.
            UsageError, InputError: there is no such run, or nothing in it.
        """
        s = settings
        return build_run(
            self.table, self.plan, run=s.run, first_step=s.first_step, last_step=s.last_step
        )


def understood(table: LogTable, settings: Settings) -> OpenedLog:
    """Return a table with its columns understood.

    Raises:
        UsageError, InputError: a column that was named is not there, or none numbers the rows.
    """
    s = settings
    return OpenedLog(table, understand(table, column_map=s.column_map, step_column=s.step_column))


def open_log(paths: Sequence[str], settings: Settings) -> OpenedLog:
    """Read a log, or the shards of one.

    Of a log so long that rows are left out, the steps that `settings` ask for are read anew.

    Raises:
        InputError: as `stabdiag.readers.read_log`.
        UsageError: as `understood`.
    """
    opened = understood(read_log(paths), settings)
    if opened.table.place is None or len(paths) > 1 or paths[0] == "-":
        return opened
    rows = _rows_asked(opened, settings)
    return opened if rows is None else understood(read_log(paths, rows), settings)


def _rows_asked(opened: OpenedLog, settings: Settings) -> tuple[int, int] | None:
    """The rows of the log between which the steps asked for lie; None where all may."""
    low = -np.inf if settings.first_step is None else settings.first_step
    high = np.inf if settings.last_step is None else settings.last_step
    column, place = opened.plan.step, opened.table.place
    if column is None or place is None or (low, high) == (-np.inf, np.inf):
        return None
    step, usable = numbers_of(opened.table.load([column])[column])
    inside = np.flatnonzero(usable & (step >= low) & (step <= high))
    below, above = np.flatnonzero(usable & (step < low)), np.flatnonzero(usable & (step > high))
    if inside.size:
        first, last = inside[0], inside[-1]
    elif below.size and (above > below[-1]).any():  # between two rows that were looked at
        first, last = below[-1] + 1, below[-1]
    else:
        return None
    # up to the next rows that were looked at and lie outside
    before = place[first - 1] + 1 if first else 0
    behind = place[last + 1] if last + 1 < place.size else place[-1] + 1
    return int(before), int(behind)
