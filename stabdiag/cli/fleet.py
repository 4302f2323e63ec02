"""`stabdiag fleet`: many finished runs, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions


@dataclass(frozen=True)
class CrewOptions:
    """Who does the work, and what is kept of it."""

    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Local processes.  [default: one a core]"),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="ADDRESS", help="Dask scheduler, such as tcp://host:8786."
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="Give up on a log after so long."),
    ] = None
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="FILE|none",
            help="Where known rows are kept, by content.  [default: the user's cache]",
        ),
    ] = None


@dataclass(frozen=True)
class FleetOutputOptions(OutputOptions):
    """The formats of a table of runs."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="text, json, csv, parquet, html.  [default: text]"
        ),
    ] = None


def fleet(
    places: Annotated[list[str] | None, typer.Argument(metavar="DIR|GLOB|URI", hidden=True)] = None,
    *,
    crew: CrewOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: FleetOutputOptions,
) -> None:
    """Many runs at once: one row a run.

    Sorted by who needs a look. Runs that an earlier survey saw are not read again.
    """
    from stabdiag.cli.surveying import fleet_command

    fleet_command(places or (), crew, reading, analysis, output)
