"""`stabdiag compare`: two runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, PageOutputOptions, ReadingOptions


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", hidden=True)],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", hidden=True)],
    *,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PageOutputOptions,
) -> None:
    """Two runs: where they part, what got worse.

    BASE and CANDIDATE are logs. With --fail-on warning it exits 1 where the candidate is worse
    beyond the noise, with error where it has a new error-level finding or diverged.
    """
    from stabdiag.cli.several import compare_command

    compare_command(base, candidate, reading, analysis, output)
