"""A pool of local processes in which the death of one worker costs no other log's result."""

from __future__ import annotations

import math
import multiprocessing as mp
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeVar

from stabdiag.fleet.runner import Lost

T = TypeVar("T")

_TRIES = 2  # a death may be another's fault: memory that a neighbour took
_LONGEST_WAIT_S = 3600.0  # the system's own limit is about a month
_PATIENCE_S = 5.0  # for a worker that was told to end


@dataclass(frozen=True)
class Pool:
    """Local workers; `limit_s` is the longest time for one log, None for no limit."""

    workers: int
    limit_s: float | None = None

    def __call__(
        self, work: Callable[[str], T], logs: Sequence[str]
    ) -> Iterator[tuple[str, T | Lost]]:
        """Yield (log, its result) as results come; see `Runner`."""
        waiting = deque(logs)
        deaths: Counter[str] = Counter()
        crew = [_Worker(work) for _ in range(min(self.workers, len(logs)))]
        try:
            while waiting or any(worker.log is not None for worker in crew):
                for worker in crew:
                    if worker.log is None and waiting:
                        worker.take(waiting.popleft())
                for worker in self._answered(crew):
                    if worker.begins():
                        continue
                    log, result = worker.answer()
                    if isinstance(result, Lost):
                        crew[crew.index(worker)] = _Worker(work)
                        deaths[log] += 1
                        if deaths[log] < _TRIES and not worker.late:
                            waiting.append(log)
                            continue
                    yield log, result
        finally:
            for worker in crew:
                worker.end()

    def _answered(self, crew: Sequence[_Worker]) -> list[_Worker]:
        """Wait until a busy worker has answered, died, or passed its time."""
        busy = [worker for worker in crew if worker.log is not None]
        patience = None
        if self.limit_s is not None:
            oldest = min(worker.since for worker in busy)
            patience = max(0.0, min(oldest + self.limit_s - time.monotonic(), _LONGEST_WAIT_S))
        ready = set(wait([worker.pipe for worker in busy], timeout=patience))
        answered = [worker for worker in busy if worker.pipe in ready]
        if self.limit_s is not None:
            now = time.monotonic()
            for worker in busy:
                if worker not in answered and now - worker.since >= self.limit_s:
                    worker.stop(f"took longer than {self.limit_s:g} s")
                    answered.append(worker)
        return answered


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, work: Callable[[str], T]) -> None:
        context = mp.get_context("spawn")  # a fork beside the threads of Arrow may hang
        self.pipe, far = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(far, work), daemon=True)
        with _no_interrupt():
            self.process.start()
        far.close()  # else the death of the worker would not end the pipe
        self.log: str | None = None
        self.since = math.inf  # until it has started: that takes longer than most logs
        self.late = ""

    def take(self, log: str) -> None:
        self.log = log
        if self.since < math.inf:
            self.since = time.monotonic()
        with suppress(OSError):  # a worker that is dead already says so by its pipe
            self.pipe.send(log)

    def begins(self) -> bool:
        """Whether what it said is that it has started: the time for its first log begins."""
        if self.since < math.inf or self.late:
            return False
        with suppress(EOFError, OSError):  # its death is its answer
            self.pipe.recv()
            self.since = time.monotonic()
            return True
        return False

    def answer(self) -> tuple[str, T | Lost]:
        """Return the log at hand with its result; `Lost` where the process is gone."""
        log, self.log = self.log, None
        assert log is not None
        if self.late:
            return log, Lost(self.late)
        try:
            return log, self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_PATIENCE_S)
            return log, Lost(f"its worker {_death(self.process.exitcode)}")

    def stop(self, reason: str) -> None:
        self.late = reason
        self.process.kill()

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(_PATIENCE_S)


def _death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (": out of memory, perhaps" if name == "SIGKILL" else "")


def _serve(pipe: Connection, work: Callable[[str], T]) -> None:
    """Answer each log with its result until the pipe is closed."""
    import pyarrow as pa

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the crew
    pa.set_cpu_count(1)  # a process a core: threads of their own would only get in the way
    pa.set_io_thread_count(1)
    import_module("stabdiag.opened")  # what judging needs, before the time for a log runs
    import_module("stabdiag.diagnose")
    with suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            pipe.send(work(pipe.recv()))


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even before they can say so themselves."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
