"""What `gate` does: policy and baseline, each run through the gate, the worst exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import typer

from stabdiag import __version__, read_run
from stabdiag.cli.exits import FOUND, NOT_ANALYSED, NOT_CHECKED
from stabdiag.cli.gate import GateOptions
from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.cli.output import add_to, remark
from stabdiag.cli.reporting import show, silence
from stabdiag.cli.settled import configuration, one_of, settings_of
from stabdiag.cli.strict import insist
from stabdiag.config import Config
from stabdiag.diagnose import diagnose
from stabdiag.errors import StabdiagError, UsageError
from stabdiag.findings import FAIL_ON, Report
from stabdiag.gate import Gated, Policy, gate, load_policy
from stabdiag.gate.baseline import baseline_from_json, baseline_of
from stabdiag.gate.measure import measured
from stabdiag.gate.records import Baseline, Measured
from stabdiag.reporters.gate_report import GATE_FORMATS, markdown
from stabdiag.reporters.view import View
from stabdiag.settings import Settings
from stabdiag.verdict.required import not_checked


def gate_command(
    logs: Sequence[str],
    options: GateOptions,
    reading: ReadingOptions,
    analysis: AnalysisOptions,
    output: OutputOptions,
) -> None:
    """Hold each run against the policy and print the outcome.

    Raises:
        typer.Exit: 2 where a log can't be read, else 1 where the policy is broken, else 3 where
            something that it asks could not be checked.
        UsageError: the policy, the baseline or an option is not as it should be.
    """
    config = configuration(reading)
    settings = settings_of(reading, analysis, config)
    name = one_of("--format", output.format or "text", list(GATE_FORMATS))
    policy = _policy(options, analysis, config)
    today = _today(options.today)
    baseline = _baseline(options.baseline, settings)
    results = [_gated(log, policy, settings, reading, today, baseline) for log in logs]
    show(lambda view: GATE_FORMATS[name](results, view), config, output, silence)
    if options.summary is not None:
        add_to(options.summary, markdown(results, View()))
    for result in results:
        if result.error:
            remark(f"stabdiag: error: {result.error}")
    code = _code(results)
    if code:
        raise typer.Exit(code)


def _policy(options: GateOptions, analysis: AnalysisOptions, config: Config) -> Policy:
    """The policy of --policy, else that of the configuration; flags beat it."""
    path = options.policy or config.path
    named = options.policy is not None
    policy = load_policy(path, named=named) if path is not None else Policy()
    if analysis.fail_on is not None:
        word = one_of("--fail-on", analysis.fail_on, list(FAIL_ON))
        policy = replace(policy, fail_on=FAIL_ON[word])
    return replace(policy, require=(*policy.require, *(analysis.require or config.require)))


def _today(text: str | None) -> date:
    if text is None:
        return date.today()  # acceptances expire by the calendar of the machine
    try:
        return date.fromisoformat(text)
    except ValueError as err:
        raise UsageError(f"--today is {text!r}, which is no date", "Write 2027-01-31.") from err


def _baseline(path: Path | None, settings: Settings) -> Baseline | None:
    if path is None:
        return None
    found = baseline_from_json(path)
    if found is not None:
        return found
    report, numbers = _judged(str(path), settings)
    return baseline_of(str(path), report, numbers)


def _judged(
    log: str, settings: Settings, reading: ReadingOptions | None = None
) -> tuple[Report, Measured]:
    run = read_run(log, settings=settings)
    if reading is not None and reading.strict:
        insist([vars(note) for note in run.notes], [Path(log)])
    report = diagnose(run, settings)
    return report, measured(run, report)


def _gated(
    log: str,
    policy: Policy,
    settings: Settings,
    reading: ReadingOptions,
    today: date,
    baseline: Baseline | None,
) -> Gated:
    try:
        report, numbers = _judged(log, settings, reading)
        missing = not_checked(report, policy.require)
    except UsageError:
        raise
    except StabdiagError as err:
        return Gated(
            log, passed=False, lines=(), error=f"{err.what}; {err.todo}", version=__version__
        )
    return gate(log, report, numbers, policy, today=today, not_checked=missing, baseline=baseline)


def _code(results: Sequence[Gated]) -> int:
    if any(result.error for result in results):
        return NOT_ANALYSED
    if any(line.state == "broken" for result in results for line in result.lines):
        return FOUND
    return NOT_CHECKED if any(result.unchecked for result in results) else 0
