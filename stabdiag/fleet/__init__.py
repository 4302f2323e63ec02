"""Many finished runs at once: one row a run, sorted by who needs a look."""

from __future__ import annotations

from stabdiag.fleet.rows import Fleet, FleetRow
from stabdiag.fleet.survey import survey

__all__ = ["Fleet", "FleetRow", "survey"]
