"""What a reporter is told about its reader: width, colour, alphabet; and the parts of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stabdiag.findings import Report, StepResult


@dataclass(frozen=True)
class View:
    """How a page may look: `width` in columns, `ascii_only` where the encoding holds no more."""

    width: int = 80
    color: bool = False
    ascii_only: bool = False


@dataclass(frozen=True)
class Part:
    """The share of a report that one command prints.

    `steps` are its workflow steps; `beside` adds the findings of no workflow step; `keys` are the
    JSON keys that come after run, workflow and findings.
    """

    steps: tuple[int, ...]
    keys: tuple[str, ...]
    beside: bool = False


PARTS: Mapping[str, Part] = {
    "timeline": Part((1,), ("episodes", "spike_score")),
    "numerics": Part((3,), ("episodes",)),
    "layers": Part((4,), ("layers", "layer_plan", "layer_moment", "heat_maps", "next_steps")),
    "audit": Part((), ("audit", "monitoring", "checks"), beside=True),
}


def workflow_of(report: Report, part: Part) -> tuple[StepResult, ...]:
    """Return the workflow steps that belong to `part`."""
    return tuple(result for result in report.workflow if result.step in part.steps)


def findings_of(report: Report, part: Part) -> tuple[int, ...]:
    """Return the indices of the findings that belong to `part`, in the order of the report."""
    indices = {index for result in workflow_of(report, part) for index in result.findings}
    if part.beside:
        placed = {index for result in report.workflow for index in result.findings}
        indices |= set(range(len(report.findings))) - placed
    return tuple(sorted(indices))
