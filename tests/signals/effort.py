"""How hard the property tests try: the same examples every time, whatever else the machine does."""

from __future__ import annotations

from hypothesis import settings

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
