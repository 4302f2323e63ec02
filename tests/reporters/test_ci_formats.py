"""Markdown, JUnit and GitHub: what a CI page reads, and nothing that a log could slip in."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from stabdiag.findings import Report, Severity
from stabdiag.reporters import View, render
from stabdiag.rules import CATALOGUE
from tests.reporters.make_report import diverged_report, healthy_report, inconclusive_report

VIEW = View()
ANNOTATION = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)")


def with_name(name: str) -> Report:
    """Return a report with `name` wherever a log's own words appear."""
    report = diverged_report()
    return replace(
        report,
        run=replace(report.run, name=name, files=(name,), notes=()),
        verdict=replace(report.verdict, summary=name, layers=(name,)),
        findings=(replace(report.findings[1], message=name, layer=name, advice=name),),
        workflow=(replace(report.workflow[0], findings=(0,), reason=name, looked_at=(name,)),),
        layers=(replace(report.layers[0], layer=name, why=name),),
    )


@given(st.text(min_size=1, max_size=40))
@example("a]]>b</failure><x a='\"'>&amp;\x00\ufffe\ud800")
@settings(deadline=None, max_examples=50)
def test_junit_is_xml_whatever_the_log_holds(name: str) -> None:
    root = ElementTree.fromstring(render(with_name(name), "junit", VIEW).encode())
    assert root.tag == "testsuites"
    assert len(root.findall(".//failure")) == 1


def test_junit_has_a_test_case_for_each_rule() -> None:
    report = diverged_report()
    root = ElementTree.fromstring(render(report, "junit", VIEW).encode())
    cases = {case.get("name", "")[:5]: case for case in root.iter("testcase")}
    assert set(cases) == {rule.id for rule in CATALOGUE if rule.command == "analyze"}
    serious = {one.rule for one in report.findings if one.severity >= Severity.WARNING}
    assert {
        rule for rule, case in cases.items() if case.find("failure") is not None
    } == serious & set(cases)
    assert cases["SD201"].find("skipped") is not None, "its step was skipped"
    assert cases["SD101"].get("classname") == "stabdiag.Isolate the timeline"
    for element in (root, root[0]):
        assert element.get("tests") == str(len(cases))
        for key, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
            assert element.get(key) == str(len(root.findall(f".//{tag}")))
    failure = cases["SD101"].find("failure")
    assert failure is not None
    assert "steps 702 to 1999: The loss rose to 3.4x its level" in (failure.text or "")


def test_junit_of_a_healthy_run_has_no_failure() -> None:
    root = ElementTree.fromstring(render(healthy_report(), "junit", VIEW).encode())
    assert root.get("failures") == "0"
    messages = [one.get("message") or "" for one in root.findall(".//skipped")]
    assert any("step 2 was skipped" in message for message in messages)


@given(st.text(min_size=1, max_size=40))
@example("%0A::error::forged\r\n::set-output name=x::y")
@settings(deadline=None, max_examples=50)
def test_a_log_can_forge_no_workflow_command(name: str) -> None:
    lines = render(with_name(name), "github", VIEW).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert ANNOTATION.fullmatch(line)
        assert not re.search(r"%(?!25|3A|2C)", line)


def test_annotations_come_by_severity_under_the_verdict() -> None:
    lines = render(diverged_report(), "github", VIEW).splitlines()
    kinds = [line.split(" ")[0] for line in lines]
    assert kinds == ["::error", "::error", "::error", "::warning", "::notice", "::notice"]
    assert lines[0].startswith("::error title=stabdiag%3A diverged%2C optimizer 91 %25::")
    assert "SD101 loss-spike%2C steps 702 to 1999" in lines[1]


@pytest.mark.parametrize(
    ("report", "command"),
    [(healthy_report(), "::notice"), (inconclusive_report(), "::warning")],
    ids=["healthy", "inconclusive"],
)
def test_the_verdict_is_annotated_by_its_health(report: Report, command: str) -> None:
    assert render(report, "github", VIEW).startswith(f"{command} title=stabdiag%3A ")


@given(st.text(min_size=1, max_size=40))
@example("<script>alert(1)</script>")
@example("![x](https://example.org/a.png) [y](javascript:z)")
@example("*a* _b_ `c` **d** ~~e~~ | f | <!-- g -->")
@settings(deadline=None, max_examples=50)
def test_markdown_shows_a_log_as_text(name: str) -> None:
    tokens = MarkdownIt("commonmark", {"html": True}).parse(
        render(with_name(name), "markdown", VIEW)
    )
    kinds = {child.type for token in tokens for child in token.children or ()}
    kinds |= {token.type for token in tokens}
    assert not kinds & {"html_inline", "link_open", "image", "em_open"}
    own = {"<details><summary>The five steps, findings, evidence, layers</summary>", "</details>"}
    assert {token.content.strip() for token in tokens if token.type == "html_block"} == own
    headings = [token for token in tokens if token.type == "heading_open"]
    assert {heading.tag for heading in headings} == {"h2"}


def test_markdown_tables_keep_their_columns() -> None:
    report = with_name("a|b\\|c")
    page = render(report, "markdown", VIEW)
    rows = MarkdownIt("commonmark").enable("table").parse(page)
    cells = [token for token in rows if token.type in ("td_open", "th_open")]
    rank = next(one for one in report.causes if one.cause == report.verdict.cause)
    steps, findings, layers = len(report.workflow), len(report.findings), len(report.layers)
    columns = {3: 1 + steps, 4: 1 + findings, 2: 1 + min(4, len(rank.evidence))}
    most = sum(width * rows for width, rows in columns.items()) + 3 * (1 + min(3, layers))
    assert len(cells) == most


def test_markdown_is_short_however_much_was_found() -> None:
    full = diverged_report()
    many = replace(
        full,
        findings=full.findings * 40,
        layers=full.layers * 40,
        causes=tuple(replace(one, evidence=one.evidence * 9) for one in full.causes),
    )
    page = render(many, "markdown", VIEW)
    assert len(page.splitlines()) < 60
    assert f"{len(many.findings) - 4} more" in page


def test_markdown_has_the_commands_as_code() -> None:
    page = render(diverged_report(), "markdown", VIEW)
    assert "1. Restore the scheduler state" in page
    assert "`stabdiag batch gpt-small.jsonl --step 699`" in page
    assert page.endswith("\n")
    assert not page.endswith("\n\n")
