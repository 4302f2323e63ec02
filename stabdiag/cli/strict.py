"""What --strict asks: that nothing of the log was dropped, repaired or guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stabdiag.errors import InputError
from stabdiag.model import NOT_AS_WRITTEN

_SHOWN_ROWS = 5  # file lines named


def insist(notes: Sequence[Mapping[str, Any]], logs: Sequence[Path]) -> None:
    """Accept a log that was read as it stands; `notes` are those of its report.

    Raises:
        InputError: a note says that something was dropped, repaired or guessed; the first is told
            with its place, the others are counted.
    """
    against = [note for note in notes if note["kind"] in NOT_AS_WRITTEN]
    if not against:
        return
    first = against[0]
    more = f"; and {len(against) - 1} more of the kind" if len(against) > 1 else ""
    raise InputError(
        f"{', '.join(map(str, logs))}{_place(first['rows'])}: {first['kind']}: {first['text']}"
        f"{more} (--strict)",
        "Correct the log, or leave out --strict: the report's notes on the log say the rest.",
    )


def _place(rows: Sequence[int]) -> str:
    if not rows:
        return ""
    shown = ", ".join(map(str, rows[:_SHOWN_ROWS]))
    return (
        f", line{'s' if len(rows) > 1 else ''} {shown}{', ...' if len(rows) > _SHOWN_ROWS else ''}"
    )
