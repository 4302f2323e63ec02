"""What a step returns: what it looked at, what it found, and the signs for the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.rules.record import Rule


@dataclass(frozen=True)
class Outcome:
    """Result of one step. `skipped` is the reason where nothing could be checked, else "".

    `headline` is what was found, where the first serious finding is not the best sentence for it.
    """

    step: int
    title: str
    looked_at: tuple[str, ...]
    findings: tuple[Finding, ...]
    signs: tuple[Sign, ...]
    skipped: str = ""
    headline: str = ""


def finding(
    rule: Rule,
    message: str,
    *,
    step: int | None = None,
    last_step: int | None = None,
    layer: str | None = None,
    severity: Severity | None = None,
    data: Mapping[str, Any] | None = None,
    advice: str | None = None,
) -> Finding:
    """A finding of `rule` with its usual severity and advice unless said otherwise."""
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity if severity is None else severity,
        step=step,
        last_step=last_step,
        layer=layer,
        message=message,
        data=dict(data or {}),
        advice=rule.advice if advice is None else advice,
    )


def share_text(share: float) -> str:
    """A share of something in words that a reader can take in: percent, or times from 10 on."""
    return f"{share:.0%} of" if share < 10 else f"{share:.3g} times"


def ramp(value: float, low: float, high: float) -> float:
    """0 at `low` and below, 1 at `high` and above, linear between: the strength of a sign."""
    if not value > low:  # also for NaN
        return 0.0
    return 1.0 if value >= high else (value - low) / (high - low)
