"""`stabdiag audit`: what the log holds and lacks."""

from __future__ import annotations

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


def audit(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """What was logged, and what each gap costs."""
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output, part="audit")
