"""One log judged: its runs, a row each; whatever goes wrong with it is a row too."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from stabdiag.errors import ManyRunsError, MissingPackageError, StabdiagError
from stabdiag.fleet.rows import FleetRow, row_of
from stabdiag.model import NOT_AS_WRITTEN
from stabdiag.readers.store import remote_uri
from stabdiag.settings import Settings

STRICT = "--strict"
Judge = Callable[[str | None], FleetRow]


@dataclass(frozen=True)
class Job:
    """How every log of a survey is judged; `strict` refuses what was not read as it stands.

    `required` are workflow steps and series that had to be checked.
    Paths are relative to `folder` where the worker may run in another one.
    """

    settings: Settings
    strict: bool = False
    folder: str = ""
    required: tuple[str, ...] = ()


def judge(log: str, job: Job) -> tuple[FleetRow, ...]:
    """Diagnose every run of `log`; an error is a row, never raised."""
    try:
        return tuple(_judged(log, job))
    except MissingPackageError as err:  # that may be mended: the log is read again
        return (FleetRow(log, "", "fault", f"{err.what}; {err.todo}"),)
    except StabdiagError as err:
        return (FleetRow(log, "", "unreadable", f"{err.what}; {err.todo}"),)
    except Exception as err:  # a fault of the tool on one log must not end the others
        return (FleetRow(log, "", "fault", f"{type(err).__name__}: {err}"),)


def place_of(log: str, job: Job) -> str:
    """Return where a worker finds `log`."""
    return log if not job.folder or remote_uri(log) else os.path.join(job.folder, log)


def _judged(log: str, job: Job) -> list[FleetRow]:
    from stabdiag.diagnose import diagnose
    from stabdiag.opened import open_log
    from stabdiag.verdict.required import not_checked

    opened = open_log([place_of(log, job)], job.settings)

    def row(name: str | None) -> FleetRow:
        settings = replace(job.settings, run=name)
        run = opened.run(settings)
        against = [note for note in run.notes if note.kind in NOT_AS_WRITTEN]
        if job.strict and against:
            own = run.name if run.siblings else ""
            return FleetRow(log, own, "unreadable", f"{STRICT}: {against[0].text}")
        report = diagnose(run, settings)
        return row_of(log, report, not_checked(report, job.required))

    try:
        return [row(job.settings.run)]
    except ManyRunsError as err:
        return [_or_error(log, name, row) for name in err.runs]


def _or_error(log: str, name: str, row: Judge) -> FleetRow:
    """Judge one run of several: what is wrong with it leaves the others alone."""
    try:
        return row(name)
    except StabdiagError as err:
        return FleetRow(log, name, "unreadable", f"{err.what}; {err.todo}")
