"""What `watch` does: read what was appended, judge the log, show what changed, know when to end."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stabdiag.cli.exits import failing
from stabdiag.cli.logs import STANDARD_INPUT, meant_logs
from stabdiag.cli.options import AnalysisOptions, ReadingOptions
from stabdiag.cli.output import deliver, reader_gone, view_for
from stabdiag.cli.reporting import leave
from stabdiag.cli.settled import configuration, fail_on, one_of, required, settings_of
from stabdiag.cli.strict import insist
from stabdiag.cli.watch import FORMATS
from stabdiag.diagnose import diagnose
from stabdiag.errors import InputError, UsageError
from stabdiag.findings import Report, Severity
from stabdiag.opened import understood
from stabdiag.readers.growing import GrowingLog, NotGrowingError
from stabdiag.readers.store import remote_uri
from stabdiag.reporters.json_report import render as as_json
from stabdiag.reporters.view import View
from stabdiag.reporters.watch_lines import changes, verdict_line
from stabdiag.settings import Settings
from stabdiag.verdict.required import known_steps, not_checked

Say = Callable[[str], None]


class Show(Protocol):
    """Shows what changed from one report to the next, and at the end what stands."""

    def __call__(self, before: Report | None, now: Report) -> None:
        """Show a report that follows another."""
        ...

    def end(self, now: Report) -> None:
        """Show the last report where it does not stand there already."""
        ...


@dataclass(frozen=True)
class Patience:
    """How often to look, and when to end; seconds, None for never."""

    interval: float
    lasting: float | None = None
    idle: float | None = None
    until_change: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no time.

        Raises:
            UsageError: a time that is not above 0.
        """
        for option, value in (
            ("--interval", self.interval),
            ("--for", self.lasting),
            ("--idle", self.idle),
        ):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(
                    f"{option} is {value:g}; it is a time in seconds", "Give a number above 0."
                )

    def looks(self, news: Callable[[], bool]) -> Iterator[bool]:
        """Yield whether there is news, again and again, until the time is over."""
        began = last = time.monotonic()
        while True:
            there = news()
            now = time.monotonic()
            last = now if there else last
            yield there
            ends = [math.inf if self.lasting is None else began + self.lasting]
            ends.append(math.inf if self.idle is None else last + self.idle)
            left = min(ends) - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(self.interval, left))


def shown_as(form: str, *, color: bool) -> AbstractContextManager[Show]:
    """What shows a change: a screen kept up to date in a terminal, else lines.

    Raises:
        UsageError: there is no such format.
    """
    if one_of("--format", form, list(FORMATS)) == "json":
        return nullcontext(_Lines(_as_json_line, whole=True))
    if sys.stdout.isatty():
        from stabdiag.cli.screen import Screen

        return Screen(lambda: view_for(color=color, to_file=False))
    return nullcontext(_Lines(_as_text, whole=False))


def watch_log(
    named: Path | None,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    showing: AbstractContextManager[Show],
    patience: Patience,
    say: Say,
) -> None:
    """Judge a log each time that something was appended to it; exit by what was found.

    Raises:
        typer.Exit: as `analyze`; with --until-change 1 at the first finding that fails.
        InputError: no log was seen in the time given, or it is none that is appended to.
    """
    config = configuration(reading)
    settings = settings_of(reading, analysis, config)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    known_steps(needs)
    if patience.until_change and limit is None:
        limit = Severity.ERROR
    path = _one(meant_logs(None if named is None else [named], config, Path.cwd(), say))
    last: Report | None = None
    with showing as show:
        try:
            for now in _reports(GrowingLog(path), settings, patience, say):
                if now is not None:
                    if reading.strict:
                        insist(now.run.notes, [path])
                    show(last, now)
                last = now
                if now is not None and patience.until_change and failing(now.findings, limit):
                    break
        except KeyboardInterrupt:
            if last is None:
                raise
        if last is not None:
            show.end(last)
    if last is None:
        raise InputError(
            f"{path}: no log to judge in the time given",
            "check the path, or give it more time with --for or --idle",
        )
    leave(failing(last.findings, limit), not_checked(last, needs))


def _reports(
    log: GrowingLog, settings: Settings, patience: Patience, say: Say
) -> Iterator[Report | None]:
    """Yield a report each time that there is news; what is waited for is said once.

    None takes the last one back: what it rested on is gone.

    Raises:
        NotGrowingError: waiting helps nothing.
        UsageError: a threshold that there is not.
    """
    said, restarts = "", 0
    for there in patience.looks(log.update):
        if reader_gone():
            return
        if log.restarts > restarts:
            restarts = log.restarts
            say(f"{log.path}: cut or written anew; read from its beginning")
            yield None
        why, run = log.trouble, None
        if there:
            try:
                run = understood(log.table(), settings).run(settings)
            except NotGrowingError:
                raise
            except (InputError, UsageError) as err:  # a column or a run may come later
                why = err.what
        elif not log.holds_bytes and not why:
            there_yet = os.path.exists(log.path)
            why = f"{log.path} is empty" if there_yet else "no such file yet"
        if run is not None:
            yield diagnose(run, settings)
        if why and why != said:
            say(f"waiting: {why}")
        said = why


def _one(logs: tuple[Path, ...]) -> Path:
    path = logs[0]
    uri = remote_uri(path)
    if len(logs) > 1 or path == STANDARD_INPUT or os.path.isdir(path) or uri:
        what = f"{len(logs)} logs" if len(logs) > 1 else uri or f"{path}"
        raise UsageError(
            f"{what}: watch follows one plain file to which a run appends",
            "Name that file; `stabdiag analyze` reads everything else.",
        )
    return path


class _Lines:
    """Writes each change, and at the end the verdict where it was last written otherwise."""

    def __init__(self, made: Callable[[Report | None, Report], str], *, whole: bool) -> None:
        """Write what `made` makes of a change: the `whole` report, or what changed alone."""
        self._made = made
        self._whole = whole
        self._verdict = ""

    def __call__(self, before: Report | None, now: Report) -> None:
        if changes(before, now):
            self._write(before, now)

    def end(self, now: Report) -> None:
        if verdict_line(now, step=False) != self._verdict:
            self._write(now, now)

    def _write(self, before: Report | None, now: Report) -> None:
        text, verdict = self._made(before, now), verdict_line(now, step=False)
        if self._whole or verdict in text:
            self._verdict = verdict
        deliver(text + "\n", None)
        sys.stdout.flush()


def _as_text(before: Report | None, now: Report) -> str:
    return "\n".join(changes(before, now)) or verdict_line(now)


def _as_json_line(before: Report | None, now: Report) -> str:
    return json.dumps(json.loads(as_json(now, View(width=80))), separators=(",", ":"))
