"""`stabdiag layers`: step 4 alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, Logs, PartOutputOptions, ReadingOptions


@dataclass(frozen=True)
class MomentOptions:
    """At which step the layers are shown beside their ranking."""

    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="Show the layers at this step, too."),
    ] = None


def layers(
    logs: Logs = None,
    *,
    moment: MomentOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PartOutputOptions,
) -> None:
    """Step 4: layers ranked, the part to reproduce.

    The smallest part of the model to reproduce the trouble with, and how to bisect it.
    """
    from stabdiag.cli.reporting import report_command

    report_command(logs, reading, analysis, output, part="layers", layers_at=moment.step)
