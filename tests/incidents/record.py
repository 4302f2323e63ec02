"""What a reported incident is here: the text of its log, and what a report of it must say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Incident:
    """One synthetic log made after a public report.

    `cause` is what the report found, `acceptable` what an honest reader could say as well, `wrong`
    what the log refutes. `onset` is the first step of the trouble within `tolerance`; None where
    there is none. `must_not` are statements that would be plainly false.
    """

    file: str
    source: str
    text: str
    cause: str
    health: str
    reason: str
    acceptable: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    onset: int | None = None
    tolerance: int = 0
    layer: str | None = None
    must_not: tuple[str, ...] = ()

    def expectation(self) -> dict[str, Any]:
        """Return the record that stands for this log in `expected.json`."""
        return {
            "source": self.source,
            "expected_cause": self.cause,
            "acceptable": list(self.acceptable),
            "wrong": list(self.wrong),
            "health": self.health,
            "onset_step": self.onset,
            "onset_tolerance": self.tolerance,
            "layer": self.layer,
            "reason": self.reason,
            "must_not": list(self.must_not),
        }
