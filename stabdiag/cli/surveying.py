"""What `fleet` does: find the logs, choose who judges them, show the rows, choose the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from stabdiag.cli.exits import NOT_ANALYSED
from stabdiag.cli.fleet import CrewOptions
from stabdiag.cli.logs import cache_folder
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.output import remark
from stabdiag.cli.reporting import leave_for, saying, show
from stabdiag.cli.settled import configuration, fail_on, one_of, settings_of
from stabdiag.errors import UsageError
from stabdiag.findings import SEVERITIES, Severity
from stabdiag.fleet.cluster import Cluster
from stabdiag.fleet.find import find
from stabdiag.fleet.judge import Job
from stabdiag.fleet.processes import Pool
from stabdiag.fleet.rows import Fleet
from stabdiag.fleet.runner import Runner
from stabdiag.fleet.state import State
from stabdiag.fleet.survey import survey
from stabdiag.reporters.fleet_report import FLEET_FORMATS
from stabdiag.reporters.numbers import count

NO_STATE = "none"


def fleet_command(
    places: Sequence[str],
    crew: CrewOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Survey the runs at `places` and print the table; exit by what was found.

    Raises:
        typer.Exit: 1 for a run with a finding at or above --fail-on; 3 where --fail-on is given
            and a log could not be judged; 2 where none could.
        UsageError, InputError: nothing to survey, or an option that can't be met.
    """
    config = configuration(reading)
    limit = fail_on(analysis, config)
    name = one_of("--format", output.format or "text", list(FLEET_FORMATS))
    if name == "parquet" and output.output is None:
        raise UsageError("--format parquet is not for a terminal", "Name a file with --output.")
    if not places:
        raise UsageError("no runs were named", "Name a folder, as in `stabdiag fleet runs/`.")
    job = Job(
        settings_of(reading, analysis, config), reading.strict, os.getcwd() if crew.cluster else ""
    )
    say = saying(config, output)
    found = find(places)
    state = State(_state_file(crew.state), job)
    if state.damaged:
        say(f"{state.path}: {state.damaged} damaged lines passed over; their logs are read again")
    with _progress(len(found), quiet=output.quiet) as done:
        seen = survey(found, job, _runner(crew), state, done)
    what = f"table of {len(seen.rows)} runs"
    show(lambda view: FLEET_FORMATS[name](seen, view), config, output, say, what)
    _exit(seen, limit)


def _runner(crew: CrewOptions) -> Runner:
    if crew.time_limit is not None and not crew.time_limit > 0:
        raise UsageError("--time-limit is no time", "Give seconds, such as --time-limit 60.")
    if crew.cluster is not None:
        if crew.workers is not None or crew.time_limit is not None:
            raise UsageError(
                "--cluster has workers of its own", "Leave out --workers and --time-limit."
            )
        return Cluster(crew.cluster)
    if crew.workers is not None and crew.workers < 1:
        raise UsageError(f"--workers is {crew.workers}", "Give a whole number from 1.")
    return Pool(crew.workers or os.cpu_count() or 1, crew.time_limit)


def _state_file(named: str | None) -> Path | None:
    if named == NO_STATE:
        return None
    if named is not None:
        return Path(named)
    return cache_folder() / "fleet.jsonl"


@contextmanager
def _progress(logs: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while it is a terminal; yield what to tell the number done."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("logs", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("logs", total=logs)
        yield lambda done: bar.update(task, completed=done)


def _exit(seen: Fleet, limit: Severity | None) -> None:
    judged = [row for row in seen.rows if row.status == "analysed"]
    if seen.rows and not judged:
        remark("stabdiag: error: none of the logs could be judged")
        raise typer.Exit(NOT_ANALYSED)
    if limit is None:
        return
    failed = [row for row in judged if SEVERITIES.get(row.severity, 0) >= limit]
    many = f"{count(len(failed), 'run')} at or above --fail-on"
    unread = [f"{count(seen.unread, 'log')} could not be judged"] if seen.unread else []
    leave_for(f"{many}, such as {failed[0].log}" if failed else "", unread)
