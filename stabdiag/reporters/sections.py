"""The sections below the first screen: steps, findings, evidence, layers, logging, checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stabdiag.findings import (
    CauseRank,
    Evidence,
    Finding,
    MonitorItem,
    Report,
    Severity,
    Status,
    StepResult,
)
from stabdiag.reporters.blocks import (
    Block,
    Heading,
    Labelled,
    Paragraph,
    Span,
    Tone,
    Words,
    prose,
    words,
)
from stabdiag.reporters.first_screen import LEAST_SHOWN, cause_name
from stabdiag.reporters.numbers import nats, number, percent, steps

STATUS_TONES: Mapping[Status, Tone] = {"found": "bad", "clear": "good", "skipped": "warn"}
_SEVERITY_TONES: Mapping[Severity, Tone] = {
    Severity.ERROR: "bad",
    Severity.WARNING: "warn",
    Severity.INFO: "dim",
}
_SHOWN_CAUSES = 3
_SHOWN_OF_RULE = 3
_SHOWN_ROWS = 5  # file lines named in a note


def steps_section(report: Report, results: Sequence[StepResult]) -> tuple[Block, ...]:
    """Return the workflow steps with status, reason and what was looked at."""
    rows: list[tuple[Words, Words]] = []
    for result in results:
        status = Span(f"{result.status.upper():8}", STATUS_TONES[result.status])
        rules = list(dict.fromkeys(report.findings[index].rule for index in result.findings))
        names = f" [{', '.join(rules)}]" if rules else ""
        text = words(Span(result.title, "strong"), ": ", *prose(reason_of(report, result)), names)
        rows.append((words(f"{result.step} ", status), text))
        if result.looked_at:
            rows.append((words(), words(Span(f"looked at: {', '.join(result.looked_at)}", "dim"))))
    return (Labelled(tuple(rows)),) if rows else ()


def reason_of(report: Report, result: StepResult) -> str:
    """The reason of a status; in words where it only repeats what was looked at."""
    if result.reason and result.reason != "; ".join(result.looked_at):
        return result.reason
    found = list(dict.fromkeys(report.findings[index].name for index in result.findings))
    if not found:
        return "nothing found"
    return ", ".join(found) if result.status == "found" else f"nothing serious ({', '.join(found)})"


def findings_section(findings: Iterable[Finding]) -> tuple[Block, ...]:
    """Return the findings, the most severe first; of one rule no more than a few in full."""
    ordered = sorted(findings, key=lambda finding: -finding.severity)
    if not ordered:
        return (Paragraph(words(" none")),)
    rows: list[tuple[Words, Words]] = []
    for severity, rule in dict.fromkeys((one.severity, one.rule) for one in ordered):
        alike = [one for one in ordered if (one.severity, one.rule) == (severity, rule)]
        for finding in alike[:_SHOWN_OF_RULE]:
            rows.extend(_finding_rows(finding))
        more = len(alike) - _SHOWN_OF_RULE
        if more > 0:
            text = f"and {more} more of {rule}; `--format json` lists them all"
            rows.append((words(), prose(text, "dim")))
    return (Labelled(tuple(rows)),)


def _finding_rows(finding: Finding) -> Iterator[tuple[Words, Words]]:
    label = Span(finding.severity.word.upper(), _SEVERITY_TONES[finding.severity])
    place = f"{steps(finding.step, finding.last_step)}, " if finding.step is not None else ""
    layer = f"{finding.layer}, " if finding.layer else ""
    name = Span(f"{finding.rule} {finding.name}", "strong")
    yield words(label), words(name, f", {place}{layer}".rstrip(", "))
    yield words(), prose(finding.message)
    if finding.advice:
        yield words(), words(Span("do: ", "dim"), *prose(finding.advice))


def evidence_section(causes: Sequence[CauseRank]) -> tuple[Block, ...]:
    """Return the ledger of the likeliest causes: what speaks for and against each."""
    shown = [rank for rank in causes if rank.evidence][:_SHOWN_CAUSES]
    blocks: list[Block] = []
    for rank in shown:
        title = Span(f"{cause_name(rank.cause)}, {percent(rank.probability)}", "strong")
        ordered = sorted(rank.evidence, key=lambda piece: -piece.weight)
        blocks.append(Paragraph(words(" ", title)))
        blocks.append(Labelled(tuple(_piece(piece) for piece in ordered)))
    others = [rank for rank in causes if rank not in shown]
    if others:
        lead = Span("others" if shown else "no evidence moved any", "dim")
        blocks.append(Labelled(((words(lead), _others(others)),)))
    return tuple(blocks)


def _others(ranks: Sequence[CauseRank]) -> Words:
    """The causes that are not shown in full, those below one percent by name alone."""
    named = [rank for rank in ranks if rank.probability >= LEAST_SHOWN]
    texts = [f"{cause_name(rank.cause)} {percent(rank.probability)}" for rank in named]
    rest = ", ".join(cause_name(rank.cause) for rank in ranks if rank not in named)
    if rest:
        texts.append(f"below 1 %: {rest}")
    parts = [Span(f"{text}; ", "dim", whole=True) for text in texts[:-1]]
    return words(*parts, Span(texts[-1], "dim"))


def _piece(piece: Evidence) -> tuple[Words, Words]:
    weight = Span(f"{nats(piece.weight):>6}", "good" if piece.weight > 0 else "warn")
    return words(weight), words(piece.text, Span(_source(piece.steps, piece.series), "dim"))


def _source(at: Sequence[int], series: Sequence[str]) -> str:
    """Where a piece of evidence was read: its steps and series in brackets."""
    place = steps(min(at), max(at)) if at else ""
    text = "; ".join(part for part in (place, ", ".join(series)) if part)
    return f" ({text})" if text else ""


def monitoring_section(items: Sequence[MonitorItem]) -> tuple[Block, ...]:
    """Return what the run should log: the gaps with their price, then what is in order."""
    gaps = tuple(
        (
            words(Span(item.status.replace("_", " ").upper(), "warn")),
            words(Span(item.metric, "strong"), f"{_every(item.cadence)}: ", *prose(item.advice)),
        )
        for item in items
        if item.status != "ok"
    )
    fine = [f"{item.metric}{_every(item.cadence)}" for item in items if item.status == "ok"]
    rows = gaps
    if fine:
        rows += ((words(Span("OK", "good")), words(", ".join(fine))),)
    return (Labelled(rows),) if rows else ()


def _every(cadence: int | None) -> str:
    if cadence is None:
        return ""
    return " every step" if cadence == 1 else f" every {number(cadence)} steps"


def checks_section(report: Report) -> tuple[Block, ...]:
    """Return the checks behind the verdict: failed and not made ones in words, passed ones too."""
    order = {"failed": 0, "not_made": 1, "passed": 2}
    tones: dict[str, Tone] = {"failed": "bad", "not_made": "warn", "passed": "good"}
    rows = tuple(
        (
            words(Span(check.status.replace("_", " ").upper(), tones[check.status])),
            words(check.name, ": ", *prose(check.text)),
        )
        for check in sorted(report.checks, key=lambda check: order[check.status])
    )
    return (Labelled(rows),) if rows else ()


def notes_section(report: Report) -> tuple[Block, ...]:
    """Return what was dropped, repaired or guessed on the way in."""
    rows = []
    for note in report.run.notes:
        lines = [str(row) for row in note.get("rows", ())]
        more = ", ..." if len(lines) > _SHOWN_ROWS else ""
        noun = "line" if len(lines) == 1 else "lines"
        place = f" ({noun} {', '.join(lines[:_SHOWN_ROWS])}{more})" if lines else ""
        rows.append((words(Span(str(note["kind"]), "warn")), words(f"{note['text']}{place}")))
    return (Labelled(tuple(rows)),) if rows else ()


def section(title: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return `blocks` under a heading, or nothing where there are none."""
    return (Heading(title), *blocks) if blocks else ()
