"""The report as GitHub workflow commands: annotations on the run of a workflow."""

from __future__ import annotations

from stabdiag.findings import Finding, Health, Report, Severity
from stabdiag.reporters.first_screen import cause_name
from stabdiag.reporters.numbers import percent, steps
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_VERDICT_COMMANDS: dict[Health, str] = {
    "healthy": "notice",
    "inconclusive": "warning",
    "unstable": "warning",
    "diverged": "error",
}


def render(report: Report, view: View) -> str:
    """Return one annotation for the verdict, then one a finding, the most severe first.

    GitHub shows ten of each kind a step, so the order says what is kept.
    """
    verdict = report.verdict
    title = f"stabdiag: {verdict.health}, {cause_name(verdict.cause)} "
    title += percent(verdict.probability)
    lines = [annotation(_VERDICT_COMMANDS[verdict.health], title, verdict.summary)]
    ordered = sorted(report.findings, key=lambda finding: -finding.severity)
    lines += [_of_finding(finding) for finding in ordered]
    return "\n".join(lines) + "\n"


def _of_finding(finding: Finding) -> str:
    place = f", {steps(finding.step, finding.last_step)}" if finding.step is not None else ""
    title = f"{finding.rule} {finding.name}{place}"
    text = f"{finding.message} {finding.advice}".rstrip()
    return annotation(_COMMANDS[finding.severity], title, text)


def annotation(command: str, title: str, text: str) -> str:
    """Return one workflow command, such as ::error title=...::text, escaped as GitHub asks."""
    return f"::{command} title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """A property's value; colons and commas end it, so they are escaped as GitHub asks."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
