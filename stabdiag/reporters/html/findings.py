"""The five steps and the findings, each finding with a place to link to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stabdiag.findings import Finding, Report, StepResult
from stabdiag.reporters.blocks import prose
from stabdiag.reporters.html.blocks_html import inline
from stabdiag.reporters.html.document import section, table, text
from stabdiag.reporters.html.places import layer, place
from stabdiag.reporters.numbers import count, number, strict_json
from stabdiag.reporters.sections import STATUS_TONES, reason_of

_MOST = 400  # findings that a page lists
_SIGNS = {"error": "✕", "warning": "!", "info": "i"}
_STATUS_SIGNS = {"found": "✕", "clear": "✓", "skipped": "–"}


def steps(report: Report, results: Sequence[StepResult]) -> list[str]:
    """Return the workflow steps: status, reason, findings, and what was looked at."""
    rows = [
        [
            str(one.step),
            f"<strong>{text(one.title)}</strong>",
            _badge(STATUS_TONES[one.status], _STATUS_SIGNS[one.status], one.status),
            inline(prose(reason_of(report, one))) + _links(report, one.findings),
            text(", ".join(one.looked_at)),
        ]
        for one in results
    ]
    header = ("step", "question", "status", "answer", "looked at")
    title = "The five steps" if len(results) == 5 else "The step"
    return section("steps", title, [table(header, rows, stacked=True)] if rows else [])


def findings(report: Report, indices: Sequence[int]) -> list[str]:
    """Return the findings with these indices, the most severe first."""
    ordered = sorted(indices, key=lambda index: -report.findings[index].severity)
    body = [line for index in ordered[:_MOST] for line in _finding(report, index)]
    if len(ordered) > _MOST:
        more = f"and {count(len(ordered) - _MOST, 'finding')} more, in the JSON report"
        body.append(f'<p class="dim">{more}</p>')
    return section("findings", "Findings", body or ["<p>None.</p>"])


def _finding(report: Report, index: int) -> list[str]:
    one = report.findings[index]
    word = one.severity.word
    tone = {"error": "bad", "warning": "warn"}.get(word, "info")
    where = f" · {layer(one.layer)}" if one.layer else ""
    when = f" · {place(report, one.step, one.last_step)}" if one.step is not None else ""
    return [
        f'<article class="finding {tone}" id="finding-{index}">',
        f"<h3>{_badge(tone, _SIGNS[word], word)} {text(one.rule)} {text(one.name)}"
        f'<span class="where">{when}{where}</span></h3>',
        f"<p>{inline(prose(one.message))}</p>",
        f'<p><span class="dim">Do:</span> {inline(prose(one.advice))}</p>' * bool(one.advice),
        _numbers(one),
        "</article>",
    ]


def _numbers(one: Finding) -> str:
    rows = "".join(
        f"<div><dt>{text(str(name).replace('_', ' '))}</dt><dd>{text(_value(value))}</dd></div>"
        for name, value in one.data.items()
    )
    return f"<details><summary>Numbers</summary><dl>{rows}</dl></details>" if rows else ""


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, list | tuple) and all(isinstance(v, float | int | str) for v in value):
        return ", ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(strict_json(value))


def _links(report: Report, indices: Sequence[int]) -> str:
    """Rules found in a step, each linked to the first finding of it."""
    first: dict[str, int] = {}
    for index in indices:
        first.setdefault(report.findings[index].rule, index)
    links = [f'<a href="#finding-{index}">{text(rule)}</a>' for rule, index in first.items()]
    return f' <span class="rules">{", ".join(links)}</span>' if links else ""


def _badge(tone: str, sign: str, word: str) -> str:
    return f'<span class="badge {tone}"><span aria-hidden="true">{sign}</span> {text(word)}</span>'
