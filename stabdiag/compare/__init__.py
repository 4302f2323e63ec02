"""Two runs side by side: `stabdiag compare`."""

from __future__ import annotations

from stabdiag.compare.side_by_side import Side, compare

__all__ = ["Side", "compare"]
