"""What runs a piece of work on many logs, and what it says of one that it lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Lost:
    """No result: the worker died, or took too long; `reason` says which."""

    reason: str


class Runner(Protocol):
    """Applies `work` to each log, in any order; each log comes back exactly once."""

    def __call__(
        self, work: Callable[[str], T], logs: Sequence[str]
    ) -> Iterator[tuple[str, T | Lost]]:
        """Yield (log, its result) as results come."""
        ...


def in_threads(work: Callable[[str], T], logs: Sequence[str]) -> Iterator[tuple[str, T]]:
    """Run work that waits for the disk, such as hashing; see `Runner`."""
    with ThreadPoolExecutor(4) as pool:
        yield from zip(logs, pool.map(work, logs), strict=True)
