"""What the verdict rests on: logging, checks, notes on the log, thresholds in force."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.html.blocks_html import inline
from stabdiag.reporters.html.document import folded, section, table, text
from stabdiag.reporters.numbers import number
from stabdiag.reporters.part_pages import FRAMEWORKS

_CHECK = {"passed": ("good", "✓"), "failed": ("bad", "✕"), "not_made": ("warn", "–")}
_ORDER = ("failed", "not_made", "passed")
_ROWS = 20  # places in the log that a note lists


def basis(report: Report) -> list[str]:
    """Return the last sections of a page."""
    return [*_logging(report), *_checks(report), *notes(report), *_thresholds(report)]


def _logging(report: Report) -> list[str]:
    rows = [
        [
            text(one.metric),
            _word("good" if one.status == "ok" else "warn", one.status.replace("_", " ")),
            "" if one.cadence is None else number(one.cadence),
            inline(prose(one.advice)),
        ]
        for one in sorted(report.monitoring, key=lambda one: one.status == "ok")
    ]
    header = ("metric", "status", "cadence", "what to do")
    body = [table(header, rows, right=(2,), stacked=True)] if rows else []
    return section("logging", "What was logged", [*body, *_audit(report)])


def _audit(report: Report) -> list[str]:
    """How well that is, in points, and the lines that would close the gaps."""
    audit = report.audit
    if audit is None:
        return []
    rows = [
        [
            text(one.metric),
            _word("warn" if one.cost else "good", one.status.replace("_", " ")),
            text(one.asked),
            text(one.found),
            f"{number(one.points)} of {number(one.of)}",
            inline(prose(one.cost)),
        ]
        for one in audit.items
    ]
    header = ("metric", "status", "asked", "found", "points", "what the gap costs")
    shown = [table(header, rows, right=(4,), stacked=True)]
    for framework, lines in audit.lines.items():
        if lines:
            code = "\n".join(map(text, lines))
            shown.append(f"<h3>Lines to add, {text(FRAMEWORKS[framework])}</h3><pre>{code}</pre>")
    return folded(f"How well it was logged: {audit.score} of 100 points", shown)


def _checks(report: Report) -> list[str]:
    rows = [
        [
            text(one.name),
            _word(_CHECK[one.status][0], one.status.replace("_", " "), _CHECK[one.status][1]),
            inline(prose(one.text)),
        ]
        for one in sorted(report.checks, key=lambda one: _ORDER.index(one.status))
    ]
    header = ("check", "status", "what was seen")
    return section("checks", "Checks behind the verdict", [table(header, rows)] if rows else [])


def notes(report: Report) -> list[str]:
    """Return what was dropped, repaired or guessed on the way in."""
    rows = []
    for note in report.run.notes:
        lines = [str(row) for row in note.get("rows", ())]
        more = ", …" if len(lines) > _ROWS else ""
        rows.append(
            [
                _word("warn", str(note["kind"])),
                text(str(note["text"])),
                number(note.get("count")),
                text(", ".join(lines[:_ROWS]) + more),
            ]
        )
    header = ("what", "of the log", "count", "lines")
    return section("notes", "Notes on the log", [table(header, rows, right=(2,))] if rows else [])


def _thresholds(report: Report) -> list[str]:
    rows = [[text(name), text(number(v, 6))] for name, v in sorted(report.thresholds.items())]
    listed = table(("threshold", "value"), rows, right=(1,))
    body = folded(f"All {len(rows)}, as set for this analysis", [listed]) if rows else []
    return section("thresholds", "Thresholds in force", body)


def _word(tone: str, word: str, sign: str = "") -> str:
    mark = f'<span aria-hidden="true">{sign}</span> ' if sign else ""
    return f'<span class="{tone}">{mark}{text(word)}</span>'
