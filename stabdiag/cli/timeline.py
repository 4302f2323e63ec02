"""`stabdiag timeline`: step 1 alone, with a chart."""

from __future__ import annotations

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


def timeline(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """Step 1: the events in order, with a chart."""
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output, part="timeline")
