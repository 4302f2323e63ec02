"""`stabdiag analyze`: the five steps and the diagnosis."""

from __future__ import annotations

from stabdiag.cli.options import AnalysisOptions, Logs, OutputOptions, ReadingOptions


def analyze(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """What went wrong, when, where, why, what now.

    The five steps in order, then the diagnosis with its evidence.
    """
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output)
