"""Counting what a reader drops, repairs or guesses, so that each kind is said once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from stabdiag.model import Note

MAX_NOTED_ROWS = 20
NoteKind = Literal["dropped", "repaired", "guessed", "ending"]


@dataclass
class Tally:
    """Notes in the making: the count and the first lines of each kind of trouble."""

    counts: dict[tuple[NoteKind, str], int] = field(default_factory=dict)
    lines: dict[tuple[NoteKind, str], list[int]] = field(default_factory=dict)

    def add(
        self, kind: NoteKind, text: str, lines: Sequence[int], count: int | None = None
    ) -> None:
        """Count one more case; `lines` are 1-based, `count` is theirs unless given."""
        if (count := len(lines) if count is None else count) == 0:
            return
        key = (kind, text)
        self.counts[key] = self.counts.get(key, 0) + count
        kept = self.lines.setdefault(key, [])
        kept.extend(int(line) for line in lines[: MAX_NOTED_ROWS - len(kept)])

    def notes(self) -> tuple[Note, ...]:
        """Return the notes in the order of the first line of each kind of trouble."""
        return tuple(
            Note(kind, text, self.counts[kind, text], tuple(lines))
            for (kind, text), lines in sorted(self.lines.items(), key=lambda kept: kept[1][:1])
        )
