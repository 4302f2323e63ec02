"""`stabdiag seeds`: step 5 over several seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, PageOutputOptions, ReadingOptions


@dataclass(frozen=True)
class ReachOptions:
    """How far into the runs is looked."""

    first: Annotated[
        int | None,
        typer.Option("--first", metavar="N", help="Look at the first N steps.  [default: 1000]"),
    ] = None


def seeds(
    logs: Annotated[list[str], typer.Argument(metavar="LOG", hidden=True)],
    *,
    reach: ReachOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PageOutputOptions,
) -> None:
    """Step 5: several seeds, systematic or luck.

    Each LOG is one seed; a log of several runs holds as many.
    """
    from stabdiag.cli.several import seeds_command

    seeds_command(logs, reach.first, reading, analysis, output)
