"""`stabdiag watch`: the verdict on a run that is still written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import (
    AnalysisOptions,
    ReadingOptions,
    completed_by,
)

FORMATS = ("text", "json")


def watch(
    log: Annotated[Path | None, typer.Argument(metavar="LOG", hidden=True)] = None,
    *,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="Look again after so long.")
    ] = 10.0,
    until_change: Annotated[
        bool,
        typer.Option(
            "--until-change",
            help="Exit 1 at the first finding at or above --fail-on (error unless set).",
        ),
    ] = False,
    lasting: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", help="End after so long.")
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            "--idle", metavar="SECONDS", help="End when nothing was appended for so long."
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, or json: a report a line, at each change.",
            autocompletion=completed_by(FORMATS),
        ),
    ] = "text",
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; so does NO_COLOR.")] = (
        False
    ),
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a fault of the tool.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on standard error.")] = False,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
) -> None:
    """A run that is still written: each change of the verdict.

    Reads what was appended to a CSV, JSON Lines or text log and judges all of it, as `analyze`
    does. In a terminal the first screen stays up to date; else a line for each change. Ends with
    --for, --idle, --until-change or Ctrl-C, and the exit code of `analyze`.
    """
    from stabdiag.cli.output import remark
    from stabdiag.cli.reporting import silence
    from stabdiag.cli.watching import Patience, shown_as, watch_log

    show = shown_as(form, color=not no_color)
    patience = Patience(interval, lasting, idle, until_change)
    watch_log(log, reading, analysis, show, patience, silence if quiet else remark)
