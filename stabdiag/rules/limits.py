"""The thresholds in force: the catalogue's, with the user's own in their place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from stabdiag.errors import UsageError
from stabdiag.rules.record import Rule


class Limits:
    """Look-up of "RULE.name"; every step compares with these and with no literal."""

    def __init__(self, rules: Iterable[Rule], overrides: Mapping[str, float]) -> None:
        """Take the catalogue's limits, then the overrides.

        Raises:
            UsageError: an override names no threshold (the message names the nearest), or its
                value is out of bounds.
        """
        bounds = {f"{r.id}.{t.name}": t for r in rules for t in r.thresholds}
        self._values = {key: float(t.value) for key, t in bounds.items()}
        for key, value in overrides.items():
            if key not in self._values:
                near = difflib.get_close_matches(key, self._values, n=1, cutoff=0.0)
                raise UsageError(
                    f"there is no threshold {key!r}",
                    f"the nearest is {near[0]!r}; `stabdiag explain {near[0].split('.')[0]}` "
                    "shows a rule's thresholds",
                )
            bound = bounds[key]
            if not bound.above < float(value) < bound.below:  # also for NaN
                raise UsageError(
                    f"the threshold {key} can't be {value:g}",
                    f"it must be above {bound.above:g}"
                    + (f" and below {bound.below:g}" if bound.below < float("inf") else ""),
                )
            self._values[key] = float(value)

    def __call__(self, rule: Rule, name: str) -> float:
        """The limit `name` of `rule`."""
        return self._values[f"{rule.id}.{name}"]

    def all(self) -> dict[str, float]:
        """Every limit in force, by "RULE.name"."""
        return dict(self._values)
