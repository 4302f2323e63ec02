"""What `stabdiag batch` found: frozen records, from the data indices to the ranked sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stabdiag.findings import Finding, RunInfo, Status


@dataclass(frozen=True)
class Statistic:
    """A batch statistic of the log at `step`: its value, what was usual, how far off in robust sd."""

    name: str
    step: int
    value: float
    usual: float
    score: float


@dataclass(frozen=True)
class Measure:
    """One measure of a sequence or batch beside the ordinary ones.

    `usual` is their median; `score` how far off in robust standard deviations. None where it could
    not be measured or judged. `unusual` says that it is beyond the limit and beyond them all.
    """

    name: str
    value: float | None
    usual: float | None
    score: float | None
    unusual: bool


@dataclass(frozen=True)
class RankedSequence:
    """One sequence of the batch, the most unusual first.

    `length` is in the unit of `DataInfo.unit`. `reasons` say in which way it is unusual; empty
    where it is not. `excerpt` is one line of the corpus as it came: untrusted text.
    """

    rank: int
    id: str
    length: int
    score: float | None
    reasons: tuple[str, ...]
    measures: tuple[Measure, ...]
    excerpt: str


@dataclass(frozen=True)
class DataInfo:
    """The corpus that the sequences are from, and in what they are counted."""

    name: str
    kind: str
    described: str  # what a sample is, and how its id was understood
    sequences: int | None  # in the whole corpus; None where it was not read to its end
    unit: str  # "token", or "byte" where there is no tokenizer


@dataclass(frozen=True)
class BatchInspection:
    """Step 2 for one batch: retrieved, compared with ordinary batches, its sequences ranked.

    `why` says why this step. `indices` says how the log's data indices were understood, "" where
    there are none. `ids` are those of the batch (at most MOST_IDS of `size`, which
    is 0 where the log names the batch as a whole). `data` is None where
    no corpus was named. `not_measured` says what could not be looked at, and why.
    """

    version: str
    run: RunInfo
    step: int | None
    why: str
    indices: str
    ids: tuple[str, ...]
    size: int
    data: DataInfo | None
    ordinary_steps: tuple[int, ...]
    ordinary_sequences: int
    status: Status
    reason: str
    statistics: tuple[Statistic, ...]
    measures: tuple[Measure, ...]
    sequences: tuple[RankedSequence, ...]
    not_measured: tuple[str, ...]
    findings: tuple[Finding, ...]
    to_log: tuple[str, ...]
    next_steps: tuple[str, ...]
    notes: tuple[str, ...]
    thresholds: Mapping[str, float]


MOST_IDS = 4096  # of a batch, in a report
