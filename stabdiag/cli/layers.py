"""`stabdiag layers`: step 4 alone."""

from __future__ import annotations

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


def layers(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """Step 4: layers ranked, the part to reproduce.

    The smallest part of the model to reproduce the trouble with.
    """
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output, part="layers")
