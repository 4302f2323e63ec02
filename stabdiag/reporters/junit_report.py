"""The report as JUnit XML: one test case a rule, under its workflow step."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from stabdiag.findings import Finding, Report, Severity
from stabdiag.reporters.numbers import steps
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View
from stabdiag.rules import CATALOGUE, Rule

Suite = tuple[str, Sequence[tuple[str, str]], Sequence[str]]  # name, properties, test cases


def render(report: Report, view: View) -> str:
    """Return JUnit XML: a rule that found something fails, one that could not look is skipped.

    A finding of severity info passes, with its text as output.
    """
    verdict = report.verdict
    properties = (
        ("health", verdict.health),
        ("cause", verdict.cause),
        ("summary", verdict.summary),
    )
    name = f"stabdiag {report.run.files[0] if report.run.files else report.run.name}"
    rules = [rule for rule in CATALOGUE if rule.command == "analyze"]
    return suites([(name, properties, [_rule_case(report, rule) for rule in rules])])


def suites(all_suites: Sequence[Suite]) -> str:
    """Return a whole document of test suites; `cases` are made by `case`."""
    every = [one for _, _, cases in all_suites for one in cases]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="stabdiag" {_counts(every)}>',
    ]
    for name, properties, cases in all_suites:
        lines.append(f"  <testsuite name={attribute(name)} {_counts(cases)}>")
        if properties:
            lines.append("    <properties>")
            lines += [
                f"      <property name={attribute(key)} value={attribute(value)}/>"
                for key, value in properties
            ]
            lines.append("    </properties>")
        lines += [*cases, "  </testsuite>"]
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def case(name: str, body: str, classname: str) -> str:
    """Return one test case; an empty body is a pass."""
    opening = f"    <testcase classname={attribute(classname)} name={attribute(name)}"
    return f"{opening}>{body}</testcase>" if body else f"{opening}/>"


def attribute(text: str) -> str:
    """Return `text` as a quoted attribute, in characters that XML can hold."""
    return quoteattr(printable(text))


def _counts(cases: Sequence[str]) -> str:
    words = {"failures": "<failure", "errors": "<error", "skipped": "<skipped"}
    numbers = [f'{key}="{sum(word in one for one in cases)}"' for key, word in words.items()]
    return f'tests="{len(cases)}" {" ".join(numbers)}'


def _rule_case(report: Report, rule: Rule) -> str:
    titles = {result.step: result.title for result in report.workflow}
    classname = f"stabdiag.{titles.get(rule.workflow_step, 'What was logged')}"
    name = f"{rule.id} {rule.name}"
    findings = [one for one in report.findings if one.rule == rule.id]
    serious = [one for one in findings if one.severity >= Severity.WARNING]
    if serious:
        message = attribute(serious[0].message)
        body = f"<failure type={attribute(rule.id)} message={message}>{_lines(findings)}</failure>"
        return case(name, body, classname)
    if findings:
        return case(name, f"<system-out>{_lines(findings)}</system-out>", classname)
    reason = _not_looked(report, rule)
    return case(name, f"<skipped message={attribute(reason)}/>" if reason else "", classname)


def _not_looked(report: Report, rule: Rule) -> str:
    """Why a rule could not look; "" where it did."""
    for result in report.workflow:
        if result.step == rule.workflow_step and result.status == "skipped":
            return f"step {result.step} was skipped: {result.reason}"
    missing = [name for name in rule.needs if name not in report.run.series]
    if missing and not any("/" in name for name in missing):
        return f"not logged: {', '.join(missing)}"
    return ""


def _lines(findings: Sequence[Finding]) -> str:
    """The findings, a line each, as the text of an element."""
    return escape(
        "\n".join(
            printable(
                f"{one.severity.word} {one.rule} {one.name}, {steps(one.step, one.last_step)}: "
                f"{one.message} {one.advice}".rstrip()
            )
            for one in findings
        )
    )
