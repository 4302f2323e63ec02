"""From a report to an exit code: findings that fail a run, and what had to be checked."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stabdiag.errors import UsageError

if TYPE_CHECKING:  # `--help` needs the codes alone
    from stabdiag.findings import Finding, Report, Severity, StepResult

OK, FOUND, NOT_ANALYSED, NOT_CHECKED, FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 130

_NEAREST = 3  # series named beside one that is absent
STEP_WORDS = {
    1: ("timeline", "isolate"),
    2: ("batch", "data"),
    3: ("numerics", "numerical"),
    4: ("layers", "architecture", "bisect"),
    5: ("initialization", "init"),
}


def failing(findings: Sequence[Finding], limit: Severity | None) -> list[Finding]:
    """Return the findings at or above `limit`; None is never."""
    return [] if limit is None else [one for one in findings if one.severity >= limit]


def not_checked(report: Report, required: Sequence[str]) -> list[str]:
    """Return a sentence for each of `required` that the report could not check.

    A word is a workflow step (its number, or a word of its title) or else a series, by its
    canonical name or its column.

    Raises:
        UsageError: a number that is no workflow step.
    """
    sentences: list[str] = []
    for word in required:
        result = _workflow_step(report, word)
        if result is None:
            sentences.extend(_absent(report, word))
        elif result.status == "skipped":
            sentences.append(f"step {result.step}, {result.title}, was skipped: {result.reason}")
    return sentences


def _workflow_step(report: Report, word: str) -> StepResult | None:
    number = next((step for step, words in STEP_WORDS.items() if word.lower() in words), None)
    if word.isdecimal():
        number = int(word)
        if number not in STEP_WORDS:
            raise UsageError(
                f"--require {word}: there is no workflow step {word}",
                "The steps are 1 to 5: timeline, batch, numerics, layers, initialization.",
            )
    return next((result for result in report.workflow if result.step == number), None)


def _absent(report: Report, word: str) -> list[str]:
    series = report.run.series
    if any(word in (name, info.column) and info.points for name, info in series.items()):
        return []
    near = difflib.get_close_matches(word, series, n=_NEAREST, cutoff=0.0)
    return [f"there is no series {word} in the log; the nearest are {', '.join(near) or 'none'}"]
