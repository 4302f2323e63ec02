"""The outcome of a gate as text, JSON, Markdown, JUnit XML and GitHub annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from stabdiag.findings import Finding
from stabdiag.gate.records import Gated, Line
from stabdiag.reporters.blocks import Block, Heading, Labelled, Paragraph, Span, Tone, prose, words
from stabdiag.reporters.github_report import annotation
from stabdiag.reporters.json_report import document, finding_records
from stabdiag.reporters.junit_report import attribute, case, suites
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.markdown_report import as_markdown
from stabdiag.reporters.numbers import count
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

_WORDS = {"kept": "ok", "broken": "BROKEN", "not_checked": "NOT CHECKED"}
_TONES: Mapping[str, Tone] = {"kept": "good", "broken": "bad", "not_checked": "warn"}


def text(results: Sequence[Gated], view: View) -> str:
    """Return a page: pass or fail, then for each run each line of the policy."""
    return laid_out(_page(results), view)


def markdown(results: Sequence[Gated], view: View) -> str:
    """Return the same as Markdown, for a job summary or a pull request."""
    return as_markdown(_page(results))


def _page(results: Sequence[Gated]) -> tuple[Block, ...]:
    passed = sum(result.passed for result in results)
    word = "PASSED" if passed == len(results) else "FAILED"
    tone: Tone = "good" if passed == len(results) else "bad"
    head = f"{passed} of {count(len(results), 'run')} through the gate"
    blocks: list[Block] = [Labelled(((words(Span(word, tone)), prose(head, "strong")),))]
    for result in results:
        blocks += [Heading(result.log), *_run(result)]
    return tuple(blocks)


def _run(result: Gated) -> Iterator[Block]:
    if result.error:
        yield Labelled(((words(Span("NOT READ", "bad")), prose(result.error)),))
        return
    if result.report is not None:
        yield Paragraph(prose(f" {result.report.verdict.summary}"))
    rows = [
        (
            words(Span(_WORDS[line.state], _TONES[line.state])),
            words(Span(line.key, "strong"), f"{_place(line)}: ", *prose(line.text)),
        )
        for line in sorted(result.lines, key=lambda line: line.state == "kept")
    ]
    rows += [
        (words(Span(name, "dim")), prose(_named(findings)))
        for name, findings in (("accepted", result.accepted), ("as before", result.old))
        if findings
    ]
    rows += [(words(Span("expired", "warn")), prose(one)) for one in result.expired]
    yield Labelled(tuple(rows))


def _place(line: Line) -> str:
    return f" ({line.place})" if line.place else ""


def _named(findings: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(f"{one.rule} {one.name}" for one in findings))
    return ", ".join(names)


def as_json(results: Sequence[Gated], view: View) -> str:
    """Return the outcome as one strict JSON document (gate.schema.json)."""
    body = {
        "part": "gate",
        "passed": all(result.passed for result in results),
        "runs": [_run_record(result) for result in results],
    }
    return document(results[0].version, body)


def _run_record(result: Gated) -> dict[str, Any]:
    return {
        "log": result.log,
        "passed": result.passed,
        "error": result.error,
        "lines": result.lines,
        "new": finding_records(result.new),
        "accepted": finding_records(result.accepted),
        "old": finding_records(result.old),
        "expired": result.expired,
        "measured": result.measured,
        "verdict": result.report.verdict if result.report is not None else None,
    }


def junit(results: Sequence[Gated], view: View) -> str:
    """Return JUnit XML: a suite a run, a test case a line of the policy."""
    return suites([(result.log, (), _cases(result)) for result in results])


def _cases(result: Gated) -> list[str]:
    if result.error:
        return [case("log read", f"<error message={attribute(result.error)}/>", "stabdiag.gate")]
    made = []
    for line in result.lines:
        message = attribute(f"{line.text}{_place(line)}")
        body = {
            "kept": f"<system-out>{escape(printable(line.text))}</system-out>",
            "broken": f"<failure type={attribute(line.key)} message={message}/>",
            "not_checked": f"<error type={attribute(line.key)} message={message}/>",
        }[line.state]
        made.append(case(line.key, body, "stabdiag.gate"))
    return made


def github(results: Sequence[Gated], view: View) -> str:
    """Return one annotation for each line that is not kept, and one that says pass or fail."""
    lines = []
    for result in results:
        if result.error:
            lines.append(annotation("error", f"stabdiag gate: {result.log}", result.error))
        for line in result.lines:
            if line.state != "kept":
                title = f"stabdiag gate: {result.log}, {line.key}{_place(line)}"
                command = "error" if line.state == "broken" else "warning"
                lines.append(annotation(command, title, line.text))
        lines += [annotation("warning", "stabdiag gate: expired", one) for one in result.expired]
    passed = sum(result.passed for result in results)
    verdict = f"{passed} of {len(results)} runs through the gate"
    lines.append(annotation("notice", "stabdiag gate", verdict))
    return "\n".join(lines) + "\n"


GATE_FORMATS: Mapping[str, Callable[[Sequence[Gated], View], str]] = {
    "text": text,
    "json": as_json,
    "markdown": markdown,
    "junit": junit,
    "github": github,
}
