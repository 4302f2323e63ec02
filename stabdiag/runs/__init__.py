"""From a table to a Run: row kinds, restarts, hidden NaN, series and layer blocks."""

from stabdiag.runs.build import build_run
from stabdiag.runs.selection import RunSummary, list_runs

__all__ = ["RunSummary", "build_run", "list_runs"]
