"""`stabdiag numerics`: step 3 alone."""

from __future__ import annotations

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


def numerics(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """Step 3: the first NaN or Inf, how it spread."""
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output, part="numerics")
