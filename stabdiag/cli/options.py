"""The options that commands share: one record a group, spread over a command's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from stabdiag.reporters import FORMATS, PAGE_FORMATS, PART_FORMATS


def completed_by(words: Iterable[str]) -> Callable[[str], list[str]]:
    """What completes an option in a shell: those of `words` that begin like what was typed."""

    def begun(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return begun


# Without a help of its own: what typer writes for it differs from version to version. `--help` of
# the tool says what a LOG is.
Logs = Annotated[list[Path] | None, typer.Argument(metavar="LOG", hidden=True)]


@dataclass(frozen=True)
class ReadingOptions:
    """How the log is read: which column is which, which run, which steps."""

    map: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="SERIES=COLUMN", help="Take this column for this series."),
    ] = None
    step_column: Annotated[
        str | None, typer.Option("--step-column", metavar="NAME", help="Column of the step.")
    ] = None
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="NAME|N", help="Which run of a log that holds several."),
    ] = None
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="A:B", help="Only steps A to B; either may be left out."),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit 2 if anything was dropped, repaired or guessed."),
    ] = False
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration instead of the nearest one."),
    ] = None


@dataclass(frozen=True)
class AnalysisOptions:
    """What counts as a spike, and what makes the exit code other than 0."""

    spike_threshold: Annotated[
        float | None,
        typer.Option(
            "--spike-threshold",
            metavar="Z",
            help="Robust standard deviations that make a spike of the loss.  "
            "[default: from the run's length]",
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", help="Points of the past in a baseline."),
    ] = None
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="SEVERITY",
            help="Exit 1 from this severity: info, warning, error or never.  [default: never]",
            autocompletion=completed_by(("info", "warning", "error", "never")),
        ),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="STEP|SERIES",
            help="Exit 3 when this workflow step or series could not be checked.",
        ),
    ] = None


@dataclass(frozen=True)
class TextOptions:
    """Where a page goes and how it looks."""

    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the report there, all or nothing."),
    ] = None
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; so does NO_COLOR.")] = (
        False
    )
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a fault of the tool.")
    ] = False


@dataclass(frozen=True)
class ReportFormat:
    """The format of a whole report."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(FORMATS)}.  [default: text]",
            autocompletion=completed_by(FORMATS),
        ),
    ] = None


@dataclass(frozen=True)
class OutputOptions(TextOptions, ReportFormat):
    """Where a report goes, in which format, with what on standard error."""

    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on standard error.")] = False


@dataclass(frozen=True)
class PartOutputOptions(OutputOptions):
    """The same for a command that prints one part of the report."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(PART_FORMATS)}.  [default: text]",
            autocompletion=completed_by(PART_FORMATS),
        ),
    ] = None


@dataclass(frozen=True)
class PageOutputOptions(OutputOptions):
    """The same for a command with a page of its own."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(PAGE_FORMATS)}.  [default: text]",
            autocompletion=completed_by(PAGE_FORMATS),
        ),
    ] = None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with each parameter that is an options record spread into its fields.

    So that a command's body gets records, and its `--help` shows one option for each field.
    """
    hints = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in records:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
    own = list(parameters)
    for record in records.values():
        parameters.extend(_keyword_only(record))

    @wraps(command)
    def spread_command(**values: Any) -> None:
        arguments = {parameter.name: values[parameter.name] for parameter in own}
        for name, record in records.items():
            arguments[name] = record(**{one.name: values[one.name] for one in fields(record)})
        command(**arguments)

    signature = inspect.Signature(parameters, return_annotation=None)
    spread_command.__signature__ = signature  # type: ignore[attr-defined]
    spread_command.__annotations__ = {one.name: one.annotation for one in parameters}
    return spread_command


@cache
def _keyword_only(record: Any) -> tuple[inspect.Parameter, ...]:
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
        for one in fields(record)
    )
