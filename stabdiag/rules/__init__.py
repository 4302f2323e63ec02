"""The catalogue of rules: one record a rule, printed by every surface."""

from __future__ import annotations

from stabdiag.rules import (
    batch,
    comparing,
    initialization,
    inspection,
    layers,
    monitoring,
    numerics,
    timeline,
)
from stabdiag.rules.limits import Limits
from stabdiag.rules.record import Rule, Threshold

CATALOGUE: tuple[Rule, ...] = (
    *timeline.RULES,
    *batch.RULES,
    *inspection.RULES,
    *numerics.RULES,
    *layers.RULES,
    *initialization.RULES,
    *monitoring.RULES,
    *comparing.RULES,
)

__all__ = ["CATALOGUE", "Limits", "Rule", "Threshold"]
