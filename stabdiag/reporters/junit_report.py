"""The report as JUnit XML: one test case a workflow step, and one for what was logged."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from stabdiag.findings import Finding, Report, Severity, StepResult
from stabdiag.reporters.numbers import steps
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import PARTS, View, findings_of


def render(report: Report, view: View) -> str:
    """Return JUnit XML: a step that found something fails, a skipped one is skipped."""
    cases = [_step_case(report, result) for result in report.workflow]
    cases.append(_logging_case(report))
    failures = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    name = _attribute(f"stabdiag {report.run.files[0] if report.run.files else report.run.name}")
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    verdict = report.verdict
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="stabdiag" {counts}>',
        f"  <testsuite name={name} {counts}>",
        "    <properties>",
        f"      <property name={_attribute('health')} value={_attribute(verdict.health)}/>",
        f"      <property name={_attribute('cause')} value={_attribute(verdict.cause)}/>",
        f"      <property name={_attribute('summary')} value={_attribute(verdict.summary)}/>",
        "    </properties>",
        *cases,
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _step_case(report: Report, result: StepResult) -> str:
    name = f"{result.step} {result.title}"
    findings = [report.findings[index] for index in result.findings]
    if result.status == "skipped":
        return _case(name, f"<skipped message={_attribute(result.reason)}/>")
    if result.status == "found":
        return _case(name, _failure(result.reason, findings))
    return _case(name, _output(findings))


def _logging_case(report: Report) -> str:
    findings = [report.findings[index] for index in findings_of(report, PARTS["audit"])]
    serious = [finding for finding in findings if finding.severity >= Severity.WARNING]
    body = _failure(serious[0].message, findings) if serious else _output(findings)
    return _case("What was logged", body)


def _case(name: str, body: str) -> str:
    opening = f'    <testcase classname="stabdiag" name={_attribute(name)}'
    return f"{opening}>{body}</testcase>" if body else f"{opening}/>"


def _failure(message: str, findings: Sequence[Finding]) -> str:
    kind = max(findings, key=lambda one: one.severity).rule if findings else "stabdiag"
    text = escape(_lines(findings))
    return f"<failure type={_attribute(kind)} message={_attribute(message)}>{text}</failure>"


def _output(findings: Sequence[Finding]) -> str:
    return f"<system-out>{escape(_lines(findings))}</system-out>" if findings else ""


def _lines(findings: Sequence[Finding]) -> str:
    """The findings, a line each, in characters that XML can hold."""
    return "\n".join(
        printable(
            f"{one.severity.word} {one.rule} {one.name}, {steps(one.step, one.last_step)}: "
            f"{one.message} {one.advice}".rstrip()
        )
        for one in findings
    )


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
