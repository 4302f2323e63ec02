"""`stabdiag batch`: step 2, the batch before the spike and its sequences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import AnalysisOptions, Logs, PageOutputOptions, ReadingOptions


@dataclass(frozen=True)
class BatchOptions:
    """Which batch, and what it is compared with."""

    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="The batch of this step.  [default: the onset's]"),
    ] = None
    ordinary: Annotated[
        int, typer.Option("--ordinary", metavar="N", help="Ordinary batches to compare with.")
    ] = 8
    top: Annotated[
        int, typer.Option("--top", metavar="N", help="Sequences shown; JSON has them all.")
    ] = 5


@dataclass(frozen=True)
class CorpusFlags:
    """Where the data is and how it is read."""

    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE|DIR",
            help="The corpus: JSON Lines, Parquet, CSV, text, .npy, a .bin of tokens (Megatron's "
            "with its .idx), or a folder of such shards.",
        ),
    ] = None
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="FILE",
            help="Sample ids by step or batch id: JSON Lines, CSV, Parquet, or .npy [steps, B].",
        ),
    ] = None
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer", metavar="FILE", help="A tokenizer.json.  [default: bytes of the text]"
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", metavar="N", help="Samples in a batch, where the log counts."),
    ] = None
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="ORDER",
            help="How counted samples were drawn, by --seed: sequential; numpy; torch, a shuffled "
            "DataLoader with its own seeded generator; or distributed, by DistributedSampler.",
        ),
    ] = "sequential"
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Seed of the order.  [default: the log's, or 0]"),
    ] = None
    drop_last: Annotated[
        bool,
        typer.Option("--drop-last", help="The loader left out the short last batch of an epoch."),
    ] = False
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="NAME", help="Field of the text or the token ids."),
    ] = None
    id_field: Annotated[
        str | None,
        typer.Option(
            "--id-field", metavar="NAME", help="Field that ids name; none: ids are places from 0."
        ),
    ] = None
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            metavar="lines|blank",
            help="A document of plain text is a line, or ends at a blank one.",
        ),
    ] = None
    block_size: Annotated[
        int | None,
        typer.Option("--block-size", metavar="N", help="Tokens of a sample in a flat token file."),
    ] = None
    token_offsets: Annotated[
        bool,
        typer.Option("--token-offsets", help="Ids are places of tokens, as nanoGPT draws them."),
    ] = False
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="TYPE", help="Type in a .bin: uint16, uint32, ..."),
    ] = None
    ignore_index: Annotated[
        int, typer.Option("--ignore-index", metavar="N", help="Label of a masked target.")
    ] = -100
    pad: Annotated[
        int | None, typer.Option("--pad", metavar="N", help="Token id that is padding.")
    ] = None


def batch(
    logs: Logs = None,
    *,
    batch: BatchOptions,
    corpus: CorpusFlags,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: PageOutputOptions,
) -> None:
    """Step 2: the batch before the spike, inspected.

    With --data its sequences, ranked against those of ordinary batches; without, the batch
    statistics that the log holds, beside what was usual.
    """
    from stabdiag.cli.batching import batch_command

    batch_command(logs, batch, corpus, reading, analysis, output)
