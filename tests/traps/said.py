"""What the tool says about a small log: the report of columns written to a file and read back."""

from __future__ import annotations

from pathlib import Path

from stabdiag import analyze
from stabdiag.findings import Episode, Finding, Report, Severity
from tests.make_runs import Columns, write_log


def report_of(folder: Path, columns: Columns, suffix: str = ".csv") -> Report:
    """The report of a log with these columns, written into `folder`."""
    return analyze(write_log(folder / f"log{suffix}", columns))


def serious(report: Report) -> set[str]:
    """Rules found with severity warning or error."""
    return {f.rule for f in report.findings if f.severity >= Severity.WARNING}


def findings(report: Report, rule: str) -> list[Finding]:
    return [f for f in report.findings if f.rule == rule]


def quiet(report: Report) -> bool:
    """Whether the run is called healthy, with nothing of severity warning or more."""
    return report.verdict.cause == "none" and not serious(report)


def episode_at(report: Report, step: int, reach: int = 2) -> Episode:
    """The one episode that begins within `reach` steps of `step`."""
    near = [e for e in report.episodes if abs(e.onset_step - step) <= reach]
    assert len(near) == 1, [(e.kind, e.onset_step) for e in report.episodes]
    return near[0]
