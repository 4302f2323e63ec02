"""Work for the runners' tests: importable by the workers, which are other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def named(log: str) -> str:
    """Answer with the log's name in capitals."""
    return log.upper()


def deadly(log: str) -> str:
    """Kill the worker on a log called "dead", every time; answer on any other."""
    if log == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    return named(log)


def deadly_once(log: str) -> str:
    """Kill the worker the first time that it meets a log; the file beside it remembers."""
    met = Path(f"{log}.met")
    if not met.exists():
        met.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return named(log)


def slow(log: str) -> str:
    """Take very long on a log called "slow"."""
    if log == "slow":
        time.sleep(600)
    return named(log)


def noted(log: str) -> tuple[str, int]:
    """Take a moment, and answer with the process that did it."""
    time.sleep(0.05)
    return log, os.getpid()
