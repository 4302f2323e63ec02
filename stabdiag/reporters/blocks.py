"""The pieces that a page is made of, between a Report and its layout in a terminal or Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "dim", "good", "warn", "bad", "command"]


@dataclass(frozen=True)
class Span:
    """A run of characters in one tone; `text` is as it came, the layout makes it harmless.

    What is `whole` is not broken between its words where it fits on a line; commands never are.
    """

    text: str
    tone: Tone = "plain"
    whole: bool = False


Words = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    title: str


@dataclass(frozen=True)
class Paragraph:
    """Words that flow to the full width."""

    words: Words


@dataclass(frozen=True)
class Blank:
    """An empty line."""


@dataclass(frozen=True)
class Labelled:
    """Rows of a label and its text, the texts below one another."""

    rows: tuple[tuple[Words, Words], ...]


@dataclass(frozen=True)
class Items:
    """A numbered list."""

    rows: tuple[Words, ...]


@dataclass(frozen=True)
class Table:
    """Columns under names; `right` are the indices of the columns of numbers.

    A column of text may be wrapped, but to no less than `narrowest` columns of the terminal; those
    of `short` hold names, which are cut in the middle instead, before any other is narrowed.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    right: tuple[int, ...] = ()
    narrowest: int = 18
    short: tuple[int, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """Lines kept as they are, such as a chart."""

    lines: tuple[str, ...]


Block = Heading | Paragraph | Blank | Labelled | Items | Table | Drawing


def words(*parts: str | Span) -> Words:
    """Return spans of `parts`, each a string in the plain tone or a Span."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def prose(text: str, tone: Tone = "plain") -> Words:
    """Return `text` with what stands between backticks, marks included, as a command."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # an odd mark out: no pairs to trust
        return (Span(text, tone),)
    return tuple(
        Span(f"`{piece}`", "command") if place % 2 else Span(piece, tone)
        for place, piece in enumerate(pieces)
        if piece or place % 2
    )
