"""Work on two cores at once: numpy, Arrow and files let go of the interpreter meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import TypeVar

THREADS = 2  # each holds arrays of its own: more would cost memory that grows with the cores

Given = TypeVar("Given")
Made = TypeVar("Made")


def each(function: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """Yield `function` of each item, in order; what is raised is raised here.

    Items are drawn one after another by the caller's thread while earlier ones are worked on, and
    at most `THREADS` are held. A single item needs no thread.
    """
    source = iter(items)
    first = list(islice(source, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for item in chain(first, source):
            # numpy's errstate is a matter of the context, which a thread does not inherit
            waiting.append(pool.submit(copy_context().run, function, item))
            if len(waiting) == THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def ahead(items: Iterable[Given]) -> Iterator[Given]:
    """Yield the items; the next is drawn by another thread while the caller works on this one."""
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(list, islice(source, 1))
        while item := waiting.result():
            waiting = pool.submit(list, islice(source, 1))
            yield item[0]
