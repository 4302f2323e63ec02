"""What the commands on one log do alike: find it, analyse it, print, and choose the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from stabdiag.cli.exits import FOUND, NOT_CHECKED, failing
from stabdiag.cli.logs import meant_logs, remember
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.output import deliver, remark, view_for
from stabdiag.cli.progress import at_work
from stabdiag.cli.settled import configuration, fail_on, format_of, required, settings_of
from stabdiag.cli.strict import insist
from stabdiag.config import Config
from stabdiag.errors import UsageError
from stabdiag.findings import Finding, Report
from stabdiag.reporters import FORMATS, PART_FORMATS, render, render_part
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import PARTS, View, findings_of
from stabdiag.settings import Settings
from stabdiag.verdict.required import not_checked


@dataclass(frozen=True)
class Request:
    """One command's question, with flags and configuration settled."""

    logs: tuple[Path, ...]
    settings: Settings
    config: Config
    say: Callable[[str], None]


def report_command(
    named: Sequence[Path] | None,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
    *,
    part: str | None = None,
    adjust: Callable[[Report], Report] = lambda report: report,
    layers_at: int | None = None,
) -> Report:
    """Analyse a log, print the report or one `part` of it, and return it; exit by what was found.

    `adjust` is applied to the report before it is shown; `layers_at` is a step whose layers are
    shown.

    Raises:
        typer.Exit: with 1 for findings at or above --fail-on, 3 for what --require names and the
            log did not let check; both are said on standard error.
        InputError: --strict, and the log was not read as it stands.
    """
    config = configuration(reading)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    name = format_of(output, config, PART_FORMATS if part else tuple(FORMATS))
    request = request_of(named, reading, analysis, output, config)
    request = replace(request, settings=replace(request.settings, layers_at=layers_at))
    report = adjust(analysed(request))
    if reading.strict:
        insist(report.run.notes, request.logs)
    missing = not_checked(report, needs)
    show(lambda view: _text(report, name, part, view), config, output, request.say)
    remember(request.logs, Path.cwd())
    leave(failing(_findings(report, part), limit), missing)
    return report


def request_of(
    named: Sequence[Path] | None,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
    config: Config,
) -> Request:
    """Return what is asked; the choice of a log that was not named is said on standard error."""
    settings = settings_of(reading, analysis, config)
    say = saying(config, output)
    logs = meant_logs(named, config, Path.cwd(), say)
    if output.output is not None and output.output.resolve() in {log.resolve() for log in logs}:
        raise UsageError(
            f"--output {output.output} is the log itself", "Name another file for the report."
        )
    return Request(logs, settings, config, say)


def analysed(request: Request) -> Report:
    """Return the diagnosis of the logs that are meant."""
    from stabdiag import read_run
    from stabdiag.diagnose import diagnose

    named = ", ".join(printable(str(log)) for log in request.logs[:3])
    with at_work(f"reading {named}", quiet=request.say is silence) as say:
        run = read_run(*request.logs, settings=request.settings)
        say(f"judging {run.rows:,} rows of {named}")
        return diagnose(run, request.settings)


def _text(report: Report, name: str, part: str | None, view: View) -> str:
    return render(report, name, view) if part is None else render_part(report, name, part, view)


def _findings(report: Report, part: str | None) -> Sequence[Finding]:
    if part is None:
        return report.findings
    return [report.findings[index] for index in findings_of(report, PARTS[part])]


def show(
    make: Callable[[View], str | bytes],
    config: Config,
    output: OutputOptions,
    say: Callable[[str], None],
    what: str = "report",
) -> None:
    """Make a page for where it goes, deliver it, and say where that was."""
    view = view_for(color=config.color and not output.no_color, to_file=output.output is not None)
    deliver(make(view), output.output)
    if output.output is not None:
        say(f"{what} written to {output.output}")


def saying(config: Config, output: OutputOptions) -> Callable[[str], None]:
    """Return what says a line on standard error, nothing where --quiet asks for that."""
    return silence if output.quiet or config.quiet else remark


def leave(failed: Sequence[Finding], missing: Sequence[str]) -> None:
    """Exit by what was found, as `leave_for`."""
    first = f", such as {failed[0].rule}" if failed else ""
    leave_for(f"{len(failed)} at or above --fail-on{first}" if failed else "", missing)


def leave_for(failed: str, missing: Sequence[str]) -> None:
    """Exit by what failed, "" for nothing; it outranks what was not looked at: it is certain.

    Raises:
        typer.Exit: with 1 for what failed, else 3 for what is missing; said on stderr.
    """
    if failed:
        remark(f"stabdiag: failed: {failed}")
    for sentence in missing:
        remark(f"stabdiag: not checked: {sentence}")
    if failed or missing:
        raise typer.Exit(FOUND if failed else NOT_CHECKED)


def silence(line: str) -> None:
    """Say nothing, as --quiet asks."""
