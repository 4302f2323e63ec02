"""What a user can set for an analysis, with the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """Options of one analysis.

    `spike_threshold` is in robust standard deviations; None lets it follow from the run's length.
    `window` is the number of past points of the baseline. `first_step`/`last_step` restrict the
    analysis. `column_map` is canonical name -> column. `thresholds` overrides "RULE.name" limits.
    `layers_at` is a step at which the layers are asked for beside their ranking.
    """

    spike_threshold: float | None = None
    window: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    run: str | None = None
    column_map: Mapping[str, str] = field(default_factory=dict)
    step_column: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    layers_at: int | None = None
