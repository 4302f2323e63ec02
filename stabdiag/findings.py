"""The result: frozen records from evidence to Report. Reporters read these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from stabdiag.drawings import ChartSeries, CloseUp, HeatMap, LrPhase

CAUSES = (
    "optimizer",
    "data",
    "overflow",
    "initialization",
    "weight_decay",
    "architecture",
    "state_corruption",
    "vanishing",
)
NO_CAUSE = ("none", "inconclusive")

Status = Literal["found", "clear", "skipped"]
Health = Literal["healthy", "unstable", "diverged", "inconclusive"]
Recovery = Literal["fast", "slow", "partial", "none"]
HandbookRule = Literal["optimizer", "data_or_overflow", "undecidable"]


class Severity(IntEnum):
    """How much a finding matters; ordered."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """The name in lower case, as reports print it."""
        return self.name.lower()


SEVERITIES = {severity.word: severity for severity in Severity}
# From which severity a command fails, by the word that asks for it.
FAIL_ON: Mapping[str, Severity | None] = {**SEVERITIES, "never": None}


@dataclass(frozen=True)
class Evidence:
    """One observation for (weight > 0) or against (weight < 0) one cause, in nats."""

    cause: str
    sign: str  # the row of the weight table that it comes from
    text: str
    weight: float
    steps: tuple[int, ...] = ()
    series: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """What one rule reports. `data` holds the numbers behind `message`, JSON-ready."""

    rule: str
    name: str
    severity: Severity
    step: int | None
    last_step: int | None
    layer: str | None
    message: str
    data: Mapping[str, Any]
    advice: str


@dataclass(frozen=True)
class Episode:
    """What belongs together: a loss spike with the grad-norm spikes and non-finite values around it."""

    kind: str
    onset_step: int
    peak_step: int
    end_step: int | None
    grad_onset_step: int | None
    loss_onset_step: int | None
    lead_steps: int | None
    lead_uncertainty: int | None
    recovered: bool
    recovery: Recovery
    steps_lost: int
    handbook_rule: HandbookRule
    handbook_reason: str
    cause: str
    probability: float
    score: float | None
    ratio: float | None
    batch: Mapping[str, Any]
    layers: tuple[str, ...]


@dataclass(frozen=True)
class StepResult:
    """One of the five workflow steps. `looked_at` says what was checked, also when clear."""

    step: int
    title: str
    status: Status
    reason: str
    looked_at: tuple[str, ...]
    findings: tuple[int, ...]  # indices into Report.findings


@dataclass(frozen=True)
class LayerRank:
    """One layer in the ranking of step 4; ratios are dimensionless, None where not logged.

    `consistent` is the share of the logged points at which the ratio to its peers passes the limit
    of such a layer, `tenfold` the share at which it is at least the handbook's 10; `share` the usual
    share of the global norm's square; `order` the layer's place in the model. `small`: a bias or a
    norm's scale, which may lead the list in a healthy run.
    """

    layer: str
    role: str
    depth: int | None
    ratio_to_median: float | None
    ratio_to_peers: float | None
    param_growth: float | None
    onset_step: int | None
    peak_score: float | None
    rank: int
    why: str
    consistent: float | None = None
    share: float | None = None
    order: int | None = None
    tenfold: float | None = None
    small: bool = False


@dataclass(frozen=True)
class LayerMoment:
    """The layers at one logged step, the largest first, [L] each.

    `value` is the `metric`, `share` its share of the global norm's square, `ratio` that to the
    median layer then, `usual` what that ratio usually is. `step` is the last logged one at or
    before `asked`.
    """

    asked: int
    step: int
    metric: str
    layers: tuple[str, ...]
    value: tuple[float, ...]
    share: tuple[float | None, ...]
    ratio: tuple[float | None, ...]
    usual: tuple[float | None, ...]


@dataclass(frozen=True)
class PlanMove:
    """One run of the bisection: what to do, and what each outcome tells."""

    do: str
    tells: str


@dataclass(frozen=True)
class LayerPlan:
    """How to bisect the model.

    `block` is the smallest contiguous part (empty: the log names none), `runs` what a bisection by
    halves takes, `outline` a reproduction to paste, line by line.
    """

    block: tuple[str, ...]
    reason: str
    moves: tuple[PlanMove, ...]
    runs: int
    outline: tuple[str, ...]


@dataclass(frozen=True)
class SeriesInfo:
    """What the report says of one series; `cadence` in steps."""

    column: str
    points: int
    cadence: int
    non_finite: int


@dataclass(frozen=True)
class RunInfo:
    """What the report says of the run and its log; `notes` are the reader's, JSON-ready.

    `rows` are those that were looked at; of a very long log others were left out.
    """

    name: str
    files: tuple[str, ...]
    format: str
    rows: int
    rows_left_out: int
    axis: str
    first_step: int | None
    last_step: int | None
    series: Mapping[str, SeriesInfo]
    layers: int
    segments: tuple[tuple[int, int], ...]
    siblings: tuple[str, ...]
    notes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Root:
    """The root cause where it is apart from the proximate one (e.g. a lost scheduler state)."""

    cause: str
    step: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """The answer; `settle` names what extra logging would have made it surer."""

    health: Health
    cause: str
    probability: float
    onset_step: int | None
    layers: tuple[str, ...]
    summary: str
    settle: tuple[str, ...]
    root: Root | None
    handbook: str  # where the handbook's rule reads otherwise, why; else ""


@dataclass(frozen=True)
class CauseRank:
    """One cause with its probability and the evidence that moved it."""

    cause: str
    probability: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class MonitorItem:
    """One line of the minimum monitoring: what is logged and what a gap makes undecidable."""

    metric: str
    status: str  # ok | sparse | missing | post_clip | averaged | partial | short | not_finite
    cadence: int | None
    advice: str


@dataclass(frozen=True)
class AuditItem:
    """One metric that a run should log: what is asked, what was found, `points` of `of` for it.

    `cost` says what the gap makes undecidable; "" where there is none.
    """

    metric: str
    asked: str
    found: str
    status: str
    points: float
    of: float
    cost: str


@dataclass(frozen=True)
class Audit:
    """How well the run was logged: `score` of 100, and the lines that close the gaps.

    `framework` is the one that the log looks like it is from: "pytorch", "hf" or "lightning";
    `lines` has the code for each, empty where nothing is missing.
    """

    score: int
    framework: str
    items: tuple[AuditItem, ...]
    lines: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Check:
    """One check that a healthy verdict rests on: passed, failed or not made (with the reason)."""

    name: str
    status: Literal["passed", "failed", "not_made"]
    text: str


@dataclass(frozen=True)
class Report:
    """The whole diagnosis; every renderer shows this record and computes nothing."""

    version: str
    run: RunInfo
    verdict: Verdict
    causes: tuple[CauseRank, ...]
    episodes: tuple[Episode, ...]
    workflow: tuple[StepResult, ...]
    findings: tuple[Finding, ...]
    layers: tuple[LayerRank, ...]
    monitoring: tuple[MonitorItem, ...]
    checks: tuple[Check, ...]
    next_steps: tuple[str, ...]  # what to do now, most useful first; commands where one fits
    spike_score: Mapping[str, Any]  # OLMo 2 headline: share of points >= 7 sd, with its caveat
    thresholds: Mapping[str, float]  # every limit in force, by "RULE.name"
    charts: tuple[ChartSeries, ...] = field(default=())
    lr_phases: tuple[LrPhase, ...] = ()
    audit: Audit | None = None
    layer_plan: LayerPlan | None = None  # None where there is nothing to bisect
    layer_moment: LayerMoment | None = None  # where a step was asked for
    heat_maps: tuple[HeatMap, ...] = ()
    close_up: CloseUp | None = None  # None where no episode stands out, or it fills the run

    @property
    def main_episode(self) -> Episode | None:
        """The episode that the verdict is about: the one that begins at its onset."""
        onset = self.verdict.onset_step
        return next((episode for episode in self.episodes if episode.onset_step == onset), None)

    def _repr_html_(self) -> str:
        """The view of a notebook; imported here, since a record knows no reporter."""
        from importlib import import_module

        notebook = import_module("stabdiag.reporters.html.notebook")
        return str(notebook.fragment(self))
