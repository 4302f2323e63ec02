"""What had to be checked in a run, and whether it was."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from stabdiag.errors import UsageError
from stabdiag.findings import Report, StepResult

_NEAREST = 3  # series named beside one that is absent
STEP_WORDS = {
    1: ("timeline", "isolate"),
    2: ("batch", "data"),
    3: ("numerics", "numerical"),
    4: ("layers", "architecture", "bisect"),
    5: ("initialization", "init"),
}


def known_steps(required: Sequence[str]) -> None:
    """Refuse what no log can meet.

    Raises:
        UsageError: a number that is no workflow step.
    """
    for word in required:
        if word.isdecimal() and int(word) not in STEP_WORDS:
            raise UsageError(
                f"--require {word}: there is no workflow step {word}",
                "The steps are 1 to 5: timeline, batch, numerics, layers, initialization.",
            )


def not_checked(report: Report, required: Sequence[str]) -> list[str]:
    """Return a sentence for each of `required` that the report could not check.

    A word is a workflow step (its number, or a word of its title) or else a series, by its
    canonical name or its column.

    Raises:
        UsageError: a number that is no workflow step.
    """
    known_steps(required)
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
    return next((result for result in report.workflow if result.step == number), None)


def _absent(report: Report, word: str) -> list[str]:
    series = report.run.series
    if any(word in (name, info.column) and info.points for name, info in series.items()):
        return []
    near = difflib.get_close_matches(word, series, n=_NEAREST, cutoff=0.0)
    return [f"there is no series {word} in the log; the nearest are {', '.join(near) or 'none'}"]
