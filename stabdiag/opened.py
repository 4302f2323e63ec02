"""A log that was read once, from which each of its runs, or a part of one, is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabdiag.columns import ColumnPlan, understand
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

    Raises:
        InputError: as `stabdiag.readers.read_log`.
        UsageError: as `understood`.
    """
    return understood(read_log(paths), settings)
