"""What the commands on one log do alike: find it, analyse it, print, and choose the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from stabdiag.cli.exits import FOUND, NOT_CHECKED, failing, not_checked
from stabdiag.cli.logs import meant_logs, remember
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.output import deliver, remark, view_for
from stabdiag.cli.settled import configuration, fail_on, format_of, required, settings_of
from stabdiag.cli.strict import insist
from stabdiag.config import Config
from stabdiag.errors import UsageError
from stabdiag.findings import Finding, Report
from stabdiag.reporters import FORMATS, PART_FORMATS, render, render_part
from stabdiag.reporters.view import PARTS, View, findings_of
from stabdiag.settings import Settings


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
    view = view_for(color=config.color and not output.no_color, to_file=output.output is not None)
    deliver(_text(report, name, part, view), output.output)
    remember(request.logs, Path.cwd())
    if output.output is not None:
        request.say(f"report written to {output.output}")
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
    say = _silent if output.quiet or config.quiet else remark
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

    return diagnose(read_run(*request.logs, settings=request.settings), request.settings)


def _text(report: Report, name: str, part: str | None, view: View) -> str:
    return render(report, name, view) if part is None else render_part(report, name, part, view)


def _findings(report: Report, part: str | None) -> Sequence[Finding]:
    if part is None:
        return report.findings
    return [report.findings[index] for index in findings_of(report, PARTS[part])]


def leave(failed: Sequence[Finding], missing: Sequence[str]) -> None:
    """Exit by what was found; it outranks what was not looked at, since it is certain.

    Raises:
        typer.Exit: with 1 for findings that fail, else 3 for what is missing; said on stderr.
    """
    if failed:
        first = failed[0]
        remark(f"stabdiag: failed: {len(failed)} at or above --fail-on, such as {first.rule}")
    for sentence in missing:
        remark(f"stabdiag: not checked: {sentence}")
    if failed or missing:
        raise typer.Exit(FOUND if failed else NOT_CHECKED)


def _silent(line: str) -> None:
    """Say nothing, as --quiet asks."""
