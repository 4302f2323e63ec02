"""The report as Markdown: for a pull request, an issue or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stabdiag.findings import Report
from stabdiag.reporters.blocks import (
    Blank,
    Block,
    Drawing,
    Heading,
    Items,
    Labelled,
    Paragraph,
    Span,
    Table,
    Words,
    words,
)
from stabdiag.reporters.first_screen import cause_name, first_screen
from stabdiag.reporters.numbers import nats
from stabdiag.reporters.sections import reason_of
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

# Characters that Markdown or HTML would read as more than themselves.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&@])")


def render(report: Report, view: View) -> str:
    """Return the report as GitHub-flavoured Markdown; `view` does not matter to it.

    The first screen stands open, what it rests on is folded; all together stay below 60 lines, as a
    comment that nobody scrolls past. What did not fit is said.
    """
    return as_markdown(first_screen(report)) + _folded(report)


_SHOWN_FINDINGS, _SHOWN_EVIDENCE, _SHOWN_LAYERS = 4, 4, 3


def _folded(report: Report) -> str:
    """What the verdict rests on, as tables under a fold; each ends where it would grow long."""
    tables = [_steps(report), _findings(report), _evidence(report), _layers(report)]
    return "\n".join(
        (
            "",
            "<details><summary>The five steps, findings, evidence, layers</summary>",
            "",
            as_markdown([table for table in tables if table.rows]),
            "</details>",
            "",
        )
    )


def _steps(report: Report) -> Table:
    rows = tuple(
        (words(f"{r.step} {r.title}"), words(Span(r.status, "strong")), words(reason_of(report, r)))
        for r in report.workflow
    )
    return Table(("step", "status", "what"), rows)


def _findings(report: Report) -> Table:
    worst = sorted(report.findings, key=lambda one: -one.severity)
    rows = [
        (
            words(Span(one.severity.word, "strong")),
            words(f"{one.rule} {one.name}"),
            words("-" if one.step is None else str(one.step)),
            words(one.message),
        )
        for one in worst[:_SHOWN_FINDINGS]
    ]
    if len(worst) > _SHOWN_FINDINGS:
        rows.append((words(), words(f"{len(worst) - _SHOWN_FINDINGS} more"), words(), words()))
    return Table(("severity", "finding", "step", "what"), tuple(rows), right=(2,))


def _evidence(report: Report) -> Table:
    rank = next((r for r in report.causes if r.cause == report.verdict.cause), None)
    pieces = sorted(rank.evidence, key=lambda piece: -abs(piece.weight)) if rank else []
    rows = tuple((words(nats(p.weight)), words(p.text)) for p in pieces[:_SHOWN_EVIDENCE])
    name = cause_name(report.verdict.cause)
    return Table(("weight", f"evidence for and against: {name}"), rows, right=(0,))


def _layers(report: Report) -> Table:
    rows = tuple(
        (words(one.layer), words(one.role.replace("_", " ")), words(one.why or "-"))
        for one in report.layers[:_SHOWN_LAYERS]
    )
    return Table(("layer", "role", "why it ranks first"), rows)


def as_markdown(blocks: Iterable[Block]) -> str:
    """Return `blocks` as Markdown paragraphs; text of the log is escaped."""
    made = (_block(block) for block in blocks)
    return "\n\n".join(text for text in made if text) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(title):
            return f"## {_escaped(title)}"
        case Paragraph(text):
            return _inline(text)
        case Labelled(rows):
            return _labelled(rows)
        case Items(rows):
            return "\n".join(f"{place}. {_inline(row)}" for place, row in enumerate(rows, start=1))
        case Table():
            return _table(block)
        case Drawing(lines):
            return "\n".join(["```text", *lines, "```"]) if lines else ""
        case Blank():
            return ""


def _labelled(rows: Sequence[tuple[Words, Words]]) -> str:
    """A list; what has no label of its own belongs to the item above."""
    if len(rows) == 1:
        return _row(*rows[0])
    return "\n".join(
        f"- {_row(label, text)}" if _plain(label) or place == 0 else f"  - {_inline(text)}"
        for place, (label, text) in enumerate(rows)
    )


def _row(label: Words, text: Words) -> str:
    name = _plain(label)
    return f"**{_escaped(name)}** {_inline(text)}" if name else _inline(text)


def _table(table: Table) -> str:
    rule = ["---:" if place in table.right else "---" for place in range(len(table.header))]
    rows = [[_escaped(name) for name in table.header], rule]
    rows += [[_inline(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _inline(spans: Words) -> str:
    return "".join(map(_span, spans)).strip()


def _span(span: Span) -> str:
    if span.tone == "command":
        return _code(span.text.strip("`"))
    text = _escaped(span.text)
    bare = text.strip()
    if span.tone in ("strong", "bad", "warn", "good") and bare:
        return text.replace(bare, f"**{bare}**")
    return text


def _code(text: str) -> str:
    safe = printable(text).replace("|", "\\|")
    fence = "``" if "`" in safe else "`"
    return f"{fence}{safe}{fence}"


def _plain(spans: Words) -> str:
    return "".join(span.text for span in spans).strip()


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text))
