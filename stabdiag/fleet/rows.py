"""The result: one row a run, and the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from stabdiag.findings import Report

RowStatus = Literal["analysed", "unreadable", "fault", "lost"]
HEALTHS = ("diverged", "unstable", "inconclusive", "healthy")  # by who needs a look
_SEVERITIES = ("error", "warning", "info", "")


@dataclass(frozen=True)
class FleetRow:
    """One run of a fleet.

    `status` is "analysed"; "unreadable" where the log can't be read or is none (`error` says why),
    "fault" where the tool itself failed on it or lacks a package for it, "lost" where its worker
    died or took too long. What follows `error` is empty or None unless the run was analysed.
    `findings` are rule ids, the most severe first; `severity` is that of the first of them, "" for
    none. `unchecked` says what was required and could not be checked.
    """

    log: str
    run: str
    status: RowStatus
    error: str = ""
    health: str = ""
    cause: str = ""
    probability: float | None = None
    onset_step: int | None = None
    layers: tuple[str, ...] = ()
    severity: str = ""
    findings: tuple[str, ...] = ()
    rows: int | None = None
    last_step: int | None = None
    summary: str = ""
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fleet:
    """All rows in the order of `ordered`; `left_out` are files found that hold no metric log.

    `known` is the number of logs whose rows were kept from an earlier survey.
    """

    version: str
    rows: tuple[FleetRow, ...]
    left_out: tuple[str, ...]
    known: int

    def count(self, health: str) -> int:
        """Number of analysed runs of that health."""
        return sum(row.status == "analysed" and row.health == health for row in self.rows)

    @property
    def unread(self) -> int:
        """Number of logs that could not be judged."""
        return sum(row.status != "analysed" for row in self.rows)


def row_of(log: str, report: Report, unchecked: Sequence[str] = ()) -> FleetRow:
    """Return the row of one diagnosed run."""
    findings = sorted(report.findings, key=lambda one: (-one.severity, one.rule))
    verdict = report.verdict
    return FleetRow(
        log=log,
        run=report.run.name if report.run.siblings else "",
        status="analysed",
        health=verdict.health,
        cause=verdict.cause,
        probability=verdict.probability,
        onset_step=verdict.onset_step,
        layers=verdict.layers,
        severity=findings[0].severity.word if findings else "",
        findings=tuple(dict.fromkeys(one.rule for one in findings)),
        rows=report.run.rows,
        last_step=report.run.last_step,
        summary=verdict.summary,
        unchecked=tuple(unchecked),
    )


def ordered(rows: Iterable[FleetRow]) -> tuple[FleetRow, ...]:
    """Sort by who needs a look.

    Diverged runs, unstable ones, logs that were not judged, inconclusive runs, healthy ones; among
    equals the more severe finding, then the surer verdict, then the name.
    """
    return tuple(sorted(rows, key=_need))


def _need(row: FleetRow) -> tuple[float, int, float, str, str]:
    if row.status != "analysed":
        return (1.5, 0, 0.0, row.log, row.run)  # between unstable and inconclusive
    return (
        float(HEALTHS.index(row.health)),
        _SEVERITIES.index(row.severity),
        -(row.probability or 0.0),
        row.log,
        row.run,
    )
