"""The record of one rule: id, name, wording and thresholds, which every surface prints."""

from __future__ import annotations

from dataclasses import dataclass

from stabdiag.findings import Severity


@dataclass(frozen=True)
class Threshold:
    """A limit that a rule compares with; settable as "RULE.name" in the configuration.

    `above` and `below` bound what it may be set to (both exclusive).
    """

    name: str
    value: float
    unit: str
    why: str  # reason and source
    above: float = 0.0
    below: float = float("inf")


@dataclass(frozen=True)
class Rule:
    """One rule of the catalogue.

    `severity` is the usual one; a step may lower it for a mild case. `needs` are canonical series
    without which the rule is skipped. `sources` name papers, reports or measurements.
    `command` judges by it: `analyze` and its parts, or another that needs more than one log.
    """

    id: str
    name: str
    workflow_step: int  # 1..5; 0 for what is beside the five steps (monitoring, the log itself)
    severity: Severity
    needs: tuple[str, ...]
    what: str
    why_bad: str
    advice: str
    thresholds: tuple[Threshold, ...] = ()
    example: str = ""
    sources: tuple[str, ...] = ()
    command: str = "analyze"
