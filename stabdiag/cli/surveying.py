"""What `fleet` does: find the logs, choose who judges them, show the rows, choose the exit code."""

from __future__ import annotations

import os
import re
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
from stabdiag.cli.settled import configuration, fail_on, one_of, required, settings_of
from stabdiag.errors import UsageError
from stabdiag.findings import SEVERITIES, Severity
from stabdiag.fleet.cluster import Cluster
from stabdiag.fleet.find import find
from stabdiag.fleet.judge import STRICT, Job
from stabdiag.fleet.processes import Pool
from stabdiag.fleet.rows import Fleet
from stabdiag.fleet.runner import Runner
from stabdiag.fleet.state import State
from stabdiag.fleet.survey import survey
from stabdiag.reporters.fleet_report import FLEET_FORMATS
from stabdiag.reporters.numbers import count
from stabdiag.verdict.required import known_steps

NO_STATE = "none"
_MOST_SAID = 10  # of what could not be checked
_SCHEDULER = re.compile(r"(tcp|tls|wss?|ucxx?)://[^/]+")


def fleet_command(
    places: Sequence[str],
    crew: CrewOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Survey the runs at `places` and print the table; exit by what was found.

    Raises:
        typer.Exit: 1 for a run with a finding at or above --fail-on; 2 where none could be judged,
            or with --strict one was not read as written; 3 where --fail-on is given and a log
            could not be judged, or what --require names could not be checked in a run.
        UsageError, InputError: nothing to survey, or an option that can't be met.
    """
    config = configuration(reading)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    known_steps(needs)
    name = one_of("--format", output.format or "text", list(FLEET_FORMATS))
    if name == "parquet" and output.output is None:
        raise UsageError("--format parquet is not for a terminal", "Name a file with --output.")
    if not places:
        raise UsageError("no runs were named", "Name a folder, as in `stabdiag fleet runs/`.")
    job = Job(
        settings_of(reading, analysis, config),
        reading.strict,
        os.getcwd() if crew.cluster else "",
        tuple(needs),
    )
    say = saying(config, output)
    file = _state_file(crew.state, say)
    own = {os.path.realpath(path) for path in (file, output.output) if path is not None}
    found = [one for one in find(places) if os.path.realpath(one.log) not in own]
    state = State(file, job)
    if state.damaged:
        say(f"{state.path}: {state.damaged} damaged lines passed over; their logs are read again")
    with _progress(len(found), quiet=output.quiet) as done:
        seen = survey(found, job, _runner(crew), state, done)
    what = f"table of {len(seen.rows)} runs"
    show(lambda view: FLEET_FORMATS[name](seen, view), config, output, say, what)
    _exit(seen, limit, strict=reading.strict)


def _runner(crew: CrewOptions) -> Runner:
    if crew.time_limit is not None and not crew.time_limit > 0:
        raise UsageError("--time-limit is no time", "Give seconds, such as --time-limit 60.")
    if crew.cluster is not None:
        if not _SCHEDULER.match(crew.cluster):
            raise UsageError(
                f"--cluster {crew.cluster}: not the address of a scheduler",
                "Give one such as tcp://host:8786.",
            )
        if crew.workers is not None or crew.time_limit is not None:
            raise UsageError(
                "--cluster has workers of its own", "Leave out --workers and --time-limit."
            )
        return Cluster(crew.cluster)
    if crew.workers is not None and crew.workers < 1:
        raise UsageError(f"--workers is {crew.workers}", "Give a whole number from 1.")
    return Pool(crew.workers or os.cpu_count() or 1, crew.time_limit)


def _state_file(named: str | None, say: Callable[[str], None]) -> Path | None:
    """Return where known rows are kept; by default in the cache, where that may be written."""
    if named == NO_STATE:
        return None
    if named is not None:
        return Path(named)
    file = cache_folder() / "fleet.jsonl"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("ab").close()
    except OSError as err:
        say(f"{file}: {err.strerror}; what is found is not kept (--state FILE keeps it elsewhere)")
        return None
    return file


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


def _exit(seen: Fleet, limit: Severity | None, *, strict: bool) -> None:
    judged = [row for row in seen.rows if row.status == "analysed"]
    if not judged:
        none = "none of the logs could be judged" if seen.rows else "no metric log was found"
        remark(f"stabdiag: error: {none}")
        raise typer.Exit(NOT_ANALYSED)
    failed = [row for row in judged if limit and SEVERITIES.get(row.severity, 0) >= limit]
    refused = [row for row in seen.rows if strict and row.error.startswith(STRICT)]
    if refused and not failed:
        many = count(len(refused), "log")
        remark(f"stabdiag: error: {many} not read as written, such as {refused[0].log}")
        raise typer.Exit(NOT_ANALYSED)
    missing = [f"{row.log}: {sentence}" for row in judged for sentence in row.unchecked]
    if limit and seen.unread:
        missing.append(f"{count(seen.unread, 'log')} could not be judged")
    many = f"{count(len(failed), 'run')} at or above --fail-on"
    leave_for(f"{many}, such as {failed[0].log}" if failed else "", _some(missing))


def _some(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - _MOST_SAID
    return [*sentences[:_MOST_SAID], *([f"{more} more"] if more > 0 else [])]
