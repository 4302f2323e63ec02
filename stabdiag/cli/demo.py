"""`stabdiag demo`: the sample logs in a folder, and one of them analysed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions, TextOptions

SHOWN = "nan_in_one_layer.csv"
NEXT = (
    ("timeline {0}/lr_too_high.jsonl", "a learning rate that was too high"),
    ("layers {0}/one_layer_dominates.csv", "which layer is out of proportion"),
    ("batch {0}/bad_batch.parquet --data {0}/bad_batch_data", "the batch behind a spike"),
    ("seeds {0}/seed_1.csv {0}/seed_2.csv {0}/seed_3.csv", "systematic, or chance?"),
    ("fleet {0}", "all of them, a row a run"),
    ("analyze {0}/healthy.csv", "what a healthy run looks like"),
)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", hidden=True)] = Path("stabdiag-demo"),
    *,
    output: TextOptions,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on standard error.")] = False,
) -> None:
    """Write the sample logs to FOLDER and analyse one.

    FOLDER is stabdiag-demo where none is named. They are real short runs, each with one thing
    wrong or none; the README beside them says what to see.
    """
    from stabdiag.cli.output import remark
    from stabdiag.cli.reporting import report_command
    from stabdiag.samples import write_samples

    names = write_samples(folder)
    if not quiet:
        remark(f"{len(names)} files of sample logs are in {folder}")
    report_command(
        [folder / SHOWN],
        ReadingOptions(),
        AnalysisOptions(),
        OutputOptions(
            output=output.output, no_color=output.no_color, debug=output.debug, quiet=quiet
        ),
    )
    if not quiet:
        remark(f"That was `stabdiag analyze {folder / SHOWN}`. Next:")
        for command, why in NEXT:
            remark(f"  stabdiag {command.format(folder)}   # {why}")
