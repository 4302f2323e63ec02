"""What `compare` and `seeds` do: read each run, diagnose it, hold them against one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from stabdiag import read_run
from stabdiag.cli.exits import failing
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.reporting import leave_for, saying, show
from stabdiag.cli.settled import configuration, fail_on, format_of, required, settings_of
from stabdiag.cli.strict import insist
from stabdiag.compare import Side
from stabdiag.compare import compare as compare_runs
from stabdiag.diagnose import diagnose
from stabdiag.errors import ManyRunsError, UsageError
from stabdiag.findings import SEVERITIES
from stabdiag.model import Run
from stabdiag.opened import OpenedLog, open_log
from stabdiag.reporters import PAGE_FORMATS
from stabdiag.reporters.several_report import (
    comparison_json,
    comparison_text,
    seeds_json,
    seeds_text,
)
from stabdiag.rules import CATALOGUE, Limits
from stabdiag.rules.comparing import SEED_PATTERN
from stabdiag.seeds import Trial, judge_seeds
from stabdiag.settings import Settings
from stabdiag.verdict.required import not_checked


def compare_command(
    base: str,
    candidate: str,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Print the comparison of two runs; exit by its severity.

    Raises:
        typer.Exit: 1 at or above --fail-on, 3 where --require can't be met or the comparison can't
            be made while --fail-on asks for it.
    """
    config = configuration(reading)
    settings = settings_of(reading, analysis, config)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    name = format_of(output, config, PAGE_FORMATS)
    base_side, side = (_side(log, settings, reading) for log in (base, candidate))
    seen = compare_runs(base_side, side, Limits(CATALOGUE, settings.thresholds))
    make = comparison_json if name == "json" else comparison_text
    show(lambda view: make(seen, view), config, output, saying(config, output))
    missing = [
        f"{log}: {sentence}"
        for log, one in ((base, base_side), (candidate, side))
        for sentence in not_checked(one.report, needs)
    ]
    if limit is not None and seen.outcome == "unknown":
        missing.append(seen.summary)
    failed = limit is not None and SEVERITIES.get(seen.severity, 0) >= limit
    leave_for(f"the candidate is {seen.outcome} ({seen.severity})" if failed else "", missing)


def seeds_command(
    logs: Sequence[str],
    first: int | None,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Print what several seeds show; exit 1 where one has a finding at or above --fail-on."""
    config = configuration(reading)
    settings = settings_of(reading, analysis, config)
    limit, needs = fail_on(analysis, config), required(analysis, config)
    name = format_of(output, config, PAGE_FORMATS)
    limits = Limits(CATALOGUE, settings.thresholds)
    if first is not None and first < 1:
        raise UsageError(f"--first is {first}", "Give a number of steps from 1.")
    steps = first if first is not None else int(limits(SEED_PATTERN, "first_steps"))
    trials = [trial for log in logs for trial in _trials(log, settings, reading, steps)]
    seen = judge_seeds(trials, limits)
    make = seeds_json if name == "json" else seeds_text
    show(lambda view: make(seen, view), config, output, saying(config, output))
    failed = [trial.log for trial in trials if failing(trial.report.findings, limit)]
    missing = [f"{t.log}: {s}" for t in trials for s in not_checked(t.report, needs)]
    share = f"{len(failed)} of {len(trials)} runs at or above --fail-on"
    leave_for(share if failed else "", missing)


def _side(log: str, settings: Settings, reading: ReadingOptions) -> Side:
    run = read_run(log, settings=settings)
    if reading.strict:
        insist([vars(note) for note in run.notes], [Path(log)])
    return Side(run, diagnose(run, settings))


def _trials(log: str, settings: Settings, reading: ReadingOptions, steps: int) -> Iterator[Trial]:
    """The runs of a log, all of them where none is named; it is read once."""
    opened = open_log([log], settings)
    try:
        found = [opened.run(settings)]
    except ManyRunsError as err:
        found = [opened.run(replace(settings, run=name)) for name in err.runs]
    for run in found:
        if reading.strict:
            insist([vars(note) for note in run.notes], [Path(log)])
        yield _trial(log, opened, run, settings, steps)


def _trial(log: str, opened: OpenedLog, run: Run, settings: Settings, steps: int) -> Trial:
    """Diagnose the first `steps` of a run, and all of it where there is more."""
    whole = diagnose(run, settings)
    start, last = whole.run.first_step, whole.run.last_step
    ranged = settings.first_step is not None or settings.last_step is not None
    if ranged or start is None or last is None or last < start + steps:
        return Trial(log, run, whole)
    chosen = replace(settings, last_step=start + steps - 1, run=run.name if run.siblings else None)
    part = opened.run(chosen)
    return Trial(log, part, diagnose(part, chosen), whole)
