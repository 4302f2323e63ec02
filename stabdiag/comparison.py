"""What `stabdiag compare` and `stabdiag seeds` found: frozen records for the reporters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stabdiag.findings import RunInfo, Verdict

Judgement = Literal["better", "worse", "changed", "same", "unknown"]
Outcome = Literal["identical", "same", "better", "worse", "mixed", "unknown"]
SeedsOutcome = Literal["systematic", "stochastic", "data_tied", "healthy"]


@dataclass(frozen=True)
class Change:
    """One thing that two runs are compared in; values None where not logged or not a number.

    "changed" is a difference that is neither good nor bad in itself.
    """

    name: str
    base: float | None
    candidate: float | None
    judgement: Judgement
    text: str


@dataclass(frozen=True)
class Parting:
    """Where two runs part: between two logged steps, for good; `exact` where they were equal before."""

    first_step: int
    last_step: int
    exact: bool


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side over their common steps.

    `noise` says which noise the differences were held against; `severity` is "error", "warning",
    "info" or "" for a gate. `new_findings` and `gone_findings` are rule ids of warning or error.
    """

    version: str
    base: RunInfo
    candidate: RunInfo
    verdicts: tuple[Verdict, Verdict]
    outcome: Outcome
    severity: str
    summary: str
    steps: tuple[int, int] | None
    parting: Parting | None
    noise: str
    changes: tuple[Change, ...]
    new_findings: tuple[str, ...]
    gone_findings: tuple[str, ...]
    notes: tuple[str, ...]
    thresholds: Mapping[str, float]


@dataclass(frozen=True)
class Seed:
    """One seed's run within the steps looked at; `later` is what the verdict says beyond them."""

    log: str
    run: str
    verdict: Verdict
    kind: str  # of the episode at the onset; "" for none
    first_step: int | None
    last_step: int | None
    batch: str  # ids of the batch at the onset as text; "" where not logged
    later: str


@dataclass(frozen=True)
class Seeds:
    """Several seeds of one experiment: `failed` of `runs`, with its 95 % interval (Wilson)."""

    version: str
    outcome: SeedsOutcome
    summary: str
    runs: tuple[Seed, ...]
    failed: int
    interval: tuple[float, float]
    shows: str  # what so many seeds can show
    next_steps: tuple[str, ...]
    notes: tuple[str, ...]
    thresholds: Mapping[str, float]
