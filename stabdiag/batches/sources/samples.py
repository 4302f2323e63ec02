"""What is asked of a corpus, and one sample of it as it is stored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from stabdiag.model import I64

T = TypeVar("T")
Documents = Literal["lines", "blank"]


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is read; None lets its content decide, which is then said.

    `documents` splits plain text at line ends or at blank lines. `block_size` is the number of
    tokens of a sample of a token file, `dtype` its type; with `token_offsets` the ids are token
    positions. `field` names the text or tokens of a record, `id_fields` those that may be its id.
    """

    documents: Documents | None = None
    block_size: int | None = None
    dtype: str | None = None
    token_offsets: bool = False
    field: str | None = None
    id_fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One sequence as the corpus holds it: text, or tokens [n], with targets [n] where it has any.

    `real` [n] is False where the corpus' own mask says padding.
    """

    text: str | None = None
    tokens: I64 | None = None
    targets: I64 | None = None
    real: I64 | None = None


@dataclass(frozen=True)
class Wanted:
    """Samples by 0-based place in the corpus (sorted), and by the value of an id field."""

    places: tuple[int, ...] = ()
    names: frozenset[str] = frozenset()

    def within(self, first: int, stop: int) -> tuple[int, ...]:
        """The wanted places from `first` to before `stop`."""
        return self.places[bisect_left(self.places, first) : bisect_left(self.places, stop)]


@dataclass(frozen=True)
class Shard(Generic[T]):
    """One file to look through; its first sample has the place `first` in the corpus."""

    path: Path
    first: int
    wanted: Wanted
    options: CorpusOptions
    take: Callable[[Sample], T]


@dataclass
class Scan(Generic[T]):
    """What a pass over a shard found, and how many samples it holds.

    `by_name` keeps (place, sample) in order: one id may stand for a whole batch of records.
    """

    size: int = 0
    by_place: dict[int, T] = field(default_factory=dict)
    by_name: dict[str, list[tuple[int, T]]] = field(default_factory=dict)

    def add(self, place: int, sample: T, *, placed: bool, name: str | None) -> None:
        """Keep a sample under its place, its name, or both."""
        if placed:
            self.by_place[place] = sample
        if name is not None:
            self.by_name.setdefault(name, []).append((place, sample))


@dataclass(frozen=True)
class Kind:
    """A kind of corpus: its name in words, what one sample of it is, and the pass over a file."""

    name: str
    sample: str
    scan: Callable[[Shard[Any]], Scan[Any]]


Record = Mapping[str, Any]
