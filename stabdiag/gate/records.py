"""The policy, and what came of it: frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from stabdiag.findings import Finding, Report, Severity

Kept = Literal["kept", "broken", "not_checked"]


@dataclass(frozen=True)
class Accepted:
    """A finding that is known: a rule, where it applies, why, and until when.

    `layer` None is any layer; `first_step` and `last_step` bound the step, None is open. `line` is
    its line in the policy's file.
    """

    rule: str
    layer: str | None = None
    first_step: int | None = None
    last_step: int | None = None
    reason: str = ""
    until: date | None = None
    line: int = 0


@dataclass(frozen=True)
class Policy:
    """What a run must keep to; None or empty where the policy asks nothing.

    `fail_on` None is never. `lines` has the line of each key in `source`, by the key's name.
    """

    source: str = ""
    fail_on: Severity | None = Severity.ERROR
    max_loss_spikes: int | None = None
    max_grad_spikes: int | None = None
    no_non_finite: bool = False
    max_param_growth: float | None = None
    max_final_loss: float | None = None
    min_last_step: int | None = None
    min_audit_score: int | None = None
    require: tuple[str, ...] = ()
    allow_causes: tuple[str, ...] = ()
    accept: tuple[Accepted, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """The numbers of a run that a policy bounds; None where the log can't tell."""

    loss_spikes: int | None
    grad_spikes: int | None
    non_finite: int | None
    param_growth: float | None
    final_loss: float | None
    last_step: int | None


@dataclass(frozen=True)
class Baseline:
    """An earlier run: its findings as (rule, layer, severity), its cause and numbers."""

    source: str
    findings: tuple[tuple[str, str | None, Severity], ...]
    cause: str
    measured: Measured


@dataclass(frozen=True)
class Line:
    """One line of the policy and what came of it; `place` is "file:line", "" for a default."""

    key: str
    place: str
    state: Kept
    text: str


@dataclass(frozen=True)
class Gated:
    """One run through the gate.

    `new` are the findings that fail it, `accepted` those that the policy knows, `old` those that
    the baseline has too. `expired` are the policy's acceptances whose date has passed. `error` is
    set where the log could not be read; `report` is None then.
    """

    log: str
    passed: bool
    lines: tuple[Line, ...]
    new: tuple[Finding, ...] = ()
    accepted: tuple[Finding, ...] = ()
    old: tuple[Finding, ...] = ()
    expired: tuple[str, ...] = ()
    measured: Measured | None = None
    report: Report | None = None
    error: str = ""
    version: str = ""

    @property
    def unchecked(self) -> bool:
        """Whether something that the policy asks could not be checked."""
        return any(line.state == "not_checked" for line in self.lines)
