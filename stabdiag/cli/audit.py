"""`stabdiag audit`: what the log holds and lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


@dataclass(frozen=True)
class AuditOptions:
    """For which framework the lines are, and which score passes."""

    framework: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="FRAMEWORK",
            help="Lines to add for pytorch, hf or lightning.  [default: by the log]",
        ),
    ] = None
    min_score: Annotated[
        int | None,
        typer.Option("--min-score", metavar="N", help="Exit 1 below this score of 100."),
    ] = None


def audit(
    logs: Logs = None,
    *,
    options: AuditOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """What was logged, and what each gap costs.

    A score, what can't be decided for want of each metric, and the lines to add.
    """
    from stabdiag.cli.auditing import audit_command

    audit_command(logs, options, reading, analysis, output)
