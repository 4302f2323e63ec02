"""What changed from one report of a growing log to the next, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from stabdiag.findings import Finding, Report, Severity
from stabdiag.reporters.untrusted import printable

_Key = tuple[str, int, int | None, str | None]


def changes(before: Report | None, now: Report) -> tuple[str, ...]:
    """Return the new verdict, and what was found and is no longer found; () for no change."""
    return tuple(map(printable, _changes(before, now)))


def verdict_line(now: Report, *, step: bool = True) -> str:
    """Return the verdict as it stands, with the last step where `step` asks for it."""
    line = printable(f"{now.verdict.health.upper()}: {now.verdict.summary}")
    return f"step {_step(now)}: {line}" if step else line


def _step(now: Report) -> int | str:
    return "-" if now.run.last_step is None else now.run.last_step


def _changes(before: Report | None, now: Report) -> Iterator[str]:
    step = _step(now)
    if before is None or _verdict(before) != _verdict(now):
        yield verdict_line(now)
    old = {} if before is None else _serious(before)
    new = _serious(now)
    for key, found in new.items():
        if key not in old:
            yield f"step {step}: + {found.rule} {found.severity.word}{_where(found)}: {found.message}"
    for key, found in old.items():
        if key not in new:
            yield f"step {step}: - {found.rule}{_where(found)} is no longer found"


def _verdict(report: Report) -> tuple[object, ...]:
    return (report.verdict.health, report.verdict.cause, report.verdict.onset_step)


def _serious(report: Report) -> dict[_Key, Finding]:
    """Warnings and errors, in their order."""
    return {
        (one.rule, int(one.severity), one.step, one.layer): one
        for one in report.findings
        if one.severity >= Severity.WARNING
    }


def _where(found: Finding) -> str:
    return "" if found.step is None else f" at step {found.step}"
