"""From a report to an exit code: findings that fail a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `--help` needs the codes alone
    from stabdiag.findings import Finding, Severity

OK, FOUND, NOT_ANALYSED, NOT_CHECKED, FAULT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def failing(findings: Sequence[Finding], limit: Severity | None) -> list[Finding]:
    """Return the findings at or above `limit`; None is never."""
    return [] if limit is None else [one for one in findings if one.severity >= limit]
