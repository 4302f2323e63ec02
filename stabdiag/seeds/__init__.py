"""Several seeds of one experiment: `stabdiag seeds`."""

from __future__ import annotations

from stabdiag.seeds.pattern import Trial, judge_seeds

__all__ = ["Trial", "judge_seeds"]
