"""What `audit` does: the page for one framework, and a score that may have to be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from stabdiag.cli.audit import AuditOptions
from stabdiag.cli.exits import FOUND
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.output import remark
from stabdiag.cli.reporting import report_command
from stabdiag.cli.settled import one_of
from stabdiag.errors import UsageError
from stabdiag.findings import Report
from stabdiag.verdict.logging_lines import FRAMEWORKS


def audit_command(
    logs: Sequence[Path] | None,
    options: AuditOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Print the audit.

    Raises:
        typer.Exit: 1 below --min-score; else as `analyze`.
        UsageError: no such framework, or no such score.
    """
    framework = options.framework
    if framework is not None:
        one_of("--for", framework, list(FRAMEWORKS))
    if options.min_score is not None and not 0 <= options.min_score <= 100:
        raise UsageError(
            f"--min-score is {options.min_score}; the score is of 100",
            "Give a number from 0 to 100.",
        )

    def chosen(report: Report) -> Report:
        if framework is None or report.audit is None:
            return report
        return replace(report, audit=replace(report.audit, framework=framework))

    report = report_command(logs, reading, analysis, output, part="audit", adjust=chosen)
    score = report.audit.score if report.audit is not None else 0
    if options.min_score is not None and score < options.min_score:
        remark(f"stabdiag: failed: the score is {score}, below --min-score {options.min_score}")
        raise typer.Exit(FOUND)
