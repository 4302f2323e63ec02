"""An existing Dask cluster as the runner: its workers read from shared or object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stabdiag.errors import UsageError
from stabdiag.fleet.runner import Lost

T = TypeVar("T")

_AT_ONCE = 5_000  # tasks given to the scheduler at a time, which holds about a kB for each


@dataclass(frozen=True)
class Cluster:
    """The cluster whose scheduler is at `address`, such as tcp://host:8786."""

    address: str
    connect_s: float = 10.0

    def __call__(
        self, work: Callable[[str], T], logs: Sequence[str]
    ) -> Iterator[tuple[str, T | Lost]]:
        """Yield (log, its result) as results come; see `Runner`.

        A task whose worker died goes to another one by itself; one that kills several workers is
        given up, and only it.

        Raises:
            UsageError: dask.distributed is not installed, or no scheduler answers at the address.
        """
        try:
            from distributed import Client, as_completed
        except ImportError as err:
            raise UsageError(
                "--cluster needs dask.distributed", "pip install 'stabdiag[dask]'"
            ) from err
        try:
            client = Client(self.address, timeout=self.connect_s, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as err:
            raise UsageError(
                f"--cluster {self.address}: no scheduler answers there: {_line(err)}",
                "Start one with `dask scheduler`, or leave out --cluster to use local processes.",
            ) from err
        with client:
            for start in range(0, len(logs), _AT_ONCE):
                part = logs[start : start + _AT_ONCE]
                futures = client.map(work, part, pure=False)
                log_of = dict(zip((future.key for future in futures), part, strict=True))
                for future in as_completed(futures, loop=client.loop):
                    # Whatever a worker raised came over the wire: of any class, and not ours.
                    error = future.exception()
                    result = future.result() if error is None else Lost(_line(error))
                    yield log_of[future.key], result


def _line(err: BaseException) -> str:
    text = " ".join(str(err).split())
    return f"{type(err).__name__}: {text}"[:300]
