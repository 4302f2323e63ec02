"""`stabdiag gate`: pass or fail for CI, by a policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions


@dataclass(frozen=True)
class GateOptions:
    """The policy, what came before, and where a job's summary goes."""

    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="TOML with a [gate] table.  [default: stabdiag.toml]"
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="An earlier log or JSON report: fail only on what is new or worse.",
        ),
    ] = None
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", metavar="FILE", help="Add a Markdown summary to this file as well."
        ),
    ] = None
    today: Annotated[
        str | None,
        typer.Option(
            "--today", metavar="DATE", help="Date for acceptances that expire.  [default: today]"
        ),
    ] = None


@dataclass(frozen=True)
class GateOutputOptions(OutputOptions):
    """The formats of a gate."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, json, markdown, junit, github.  [default: text]",
        ),
    ] = None


def gate(
    logs: Annotated[list[str], typer.Argument(metavar="LOG", hidden=True)],
    *,
    options: GateOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: GateOutputOptions,
) -> None:
    """Pass or fail for CI, by a policy.

    Each LOG is one run. Exit 0: all pass; 1: the policy is broken; 2: a log can't be read; 3: what
    the policy asks could not be checked.
    """
    from stabdiag.cli.gating import gate_command

    gate_command(logs, options, reading, analysis, output)
