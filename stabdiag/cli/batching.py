"""What `stabdiag batch` does once it is asked for: check the flags, inspect, print, exit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from stabdiag import read_run
from stabdiag.batches.examine import DataRequest, inspect_batch
from stabdiag.batches.features import Masking
from stabdiag.batches.sources.samples import CorpusOptions
from stabdiag.cli.batch import BatchOptions, CorpusFlags
from stabdiag.cli.exits import failing
from stabdiag.cli.logs import remember
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.reporting import leave, request_of, show
from stabdiag.cli.settled import configuration, fail_on, format_of, required
from stabdiag.cli.strict import insist
from stabdiag.diagnose import diagnose
from stabdiag.errors import UsageError
from stabdiag.findings import Report
from stabdiag.inspection import BatchInspection
from stabdiag.reporters import PAGE_FORMATS
from stabdiag.reporters.batch_report import batch_json, batch_text
from stabdiag.reporters.view import View
from stabdiag.verdict.required import not_checked

_LARGEST_SEED = 2**63


def batch_command(
    named: Sequence[Path] | None,
    batch: BatchOptions,
    corpus: CorpusFlags,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Inspect the batch and print the page; exit by what was found, as `analyze` does.

    Raises:
        typer.Exit: with 1 for findings at or above --fail-on, 3 where --require names step 2, or
            another step or series, and it could not be checked.
        StabdiagError: the log, the corpus or a flag is not as it should be.
    """
    _check(batch, corpus, output.output)
    config = configuration(reading)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    name = format_of(output, config, PAGE_FORMATS)
    request = request_of(named, reading, analysis, output, config)
    run = read_run(*request.logs, settings=request.settings)
    report = diagnose(run, request.settings)
    if reading.strict:
        insist(report.run.notes, request.logs)
    seen = inspect_batch(run, report, _data_request(batch, corpus), request.settings)
    missing = not_checked(_with_step_2(report, seen), needs)

    def page(view: View) -> str:
        return batch_json(seen) if name == "json" else batch_text(seen, view, shown=batch.top)

    show(page, config, output, request.say)
    remember(request.logs, Path.cwd())
    leave(failing(seen.findings, limit), missing)


def _check(batch: BatchOptions, corpus: CorpusFlags, output: Path | None) -> None:
    read = [path for path in (corpus.data, corpus.index, corpus.tokenizer) if path is not None]
    if output is not None and output.resolve() in {path.resolve() for path in read}:
        raise UsageError(
            f"--output {output} is a file that is read", "Name another file for the report."
        )
    least = {
        "--ordinary": (batch.ordinary, 0),
        "--top": (batch.top, 1),
        "--batch-size": (corpus.batch_size, 1),
        "--block-size": (corpus.block_size, 1),
    }
    for option, (value, low) in least.items():
        if value is not None and value < low:
            raise UsageError(f"{option} is {value}", f"Give a whole number from {low}.")
    if corpus.documents not in (None, "lines", "blank"):
        raise UsageError(
            f"--documents is {corpus.documents!r}, which is none of lines, blank", "Name one."
        )
    if corpus.drop_last and corpus.order == "sequential":
        raise UsageError(
            "--drop-last is for a shuffled --order", "Leave it out, or name the order."
        )
    if corpus.seed is not None and not 0 <= corpus.seed < _LARGEST_SEED:
        raise UsageError(f"--seed is {corpus.seed}", "Give a whole number from 0.")


def _data_request(batch: BatchOptions, corpus: CorpusFlags) -> DataRequest:
    return DataRequest(
        data=corpus.data,
        index=corpus.index,
        tokenizer=corpus.tokenizer,
        step=batch.step,
        ordinary=batch.ordinary,
        batch_size=corpus.batch_size,
        order=corpus.order,
        seed=corpus.seed,
        drop_last=corpus.drop_last,
        id_field=corpus.id_field,
        masking=Masking(corpus.ignore_index, corpus.pad),
        corpus=CorpusOptions(
            documents=cast(Literal["lines", "blank"] | None, corpus.documents),
            block_size=corpus.block_size,
            dtype=corpus.dtype,
            token_offsets=corpus.token_offsets,
            field=corpus.field,
        ),
    )


def _with_step_2(report: Report, seen: BatchInspection) -> Report:
    """The report with step 2 as it was checked here, for --require."""
    workflow = tuple(
        replace(result, status=seen.status, reason=seen.reason) if result.step == 2 else result
        for result in report.workflow
    )
    return replace(report, workflow=workflow)
