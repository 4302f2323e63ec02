"""A sign of life on standard error while a long log is read and judged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

AFTER_SECONDS = 1.0  # what is over sooner needs no sign

Say = Callable[[str], None]


@contextmanager
def at_work(what: str, *, quiet: bool) -> Iterator[Say]:
    """Show in a terminal what is being done, once that takes long; yields what changes the words."""
    if quiet or not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status(escape(what))
    timer = Timer(AFTER_SECONDS, status.start)
    timer.start()
    try:
        yield lambda words: status.update(escape(words))
    finally:
        timer.cancel()
        timer.join()
        status.stop()
