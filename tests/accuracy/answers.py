"""An answer about one run, as it stands in the JSON report or as a baseline gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FAILED = "failed"  # no report came out; it is never right
NAMED_LAYERS = 3


@dataclass(frozen=True)
class Answer:
    """What is scored of one report.

    `cause` is a cause, "none", "inconclusive" or "failed" (then `error` says why). `probability`
    is that of `cause`. `layers` are in order of suspicion. `loud` counts the findings of severity
    warning or error.
    """

    cause: str
    probability: float | None = None
    onset_step: int | None = None
    layers: tuple[str, ...] = ()
    loud: int = 0
    error: str = ""


def answer_of(report: Mapping[str, Any]) -> Answer:
    """Take the answer from a JSON report, or from `{"error": text}` where there is none."""
    if "error" in report:
        return Answer(FAILED, error=str(report["error"]))
    verdict = report["verdict"]
    layers = tuple(verdict["layers"])
    if not layers:
        ranked = sorted(report["layers"], key=lambda entry: int(entry["rank"]))
        layers = tuple(entry["layer"] for entry in ranked[:NAMED_LAYERS])
    return Answer(
        cause=verdict["cause"],
        probability=float(verdict["probability"]),
        onset_step=verdict["onset_step"],
        layers=layers,
        loud=sum(finding["severity"] in ("warning", "error") for finding in report["findings"]),
    )
