"""What the verdict rests on: logging, checks, notes on the log, thresholds in force."""

from __future__ import annotations

from stabdiag.findings import Report
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.html.blocks_html import inline
from stabdiag.reporters.html.document import folded, section, table, text
from stabdiag.reporters.numbers import number

_CHECK = {"passed": ("good", "✓"), "failed": ("bad", "✕"), "not_made": ("warn", "–")}
_ORDER = ("failed", "not_made", "passed")
_ROWS = 20  # places in the log that a note lists


def basis(report: Report) -> list[str]:
    """Return the last sections of a page."""
    return [*_logging(report), *_checks(report), *_notes(report), *_thresholds(report)]


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
    return section(
        "logging",
        "What was logged",
        [table(header, rows, right=(2,), stacked=True)] if rows else [],
    )


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


def _notes(report: Report) -> list[str]:
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
