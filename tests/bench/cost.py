"""What one command costs: wall time, processor time and peak memory of the whole process."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

KIB = 1024


@dataclass(frozen=True)
class Cost:
    """Cost of one process with its children: seconds, seconds, bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Pair:
    """Median cost of a command and of the plain one; ratios are medians of the paired ratios."""

    ours: Cost
    plain: Cost
    wall_ratio: float
    cpu_ratio: float


class CommandFailedError(Exception):
    """A command that ended with another code than 0; its cost means nothing."""


def cost_of(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Run one command to its end and measure it; its output is thrown away.

    The kernel counts what the parent held at the start into the child's peak memory, so this
    module and what calls it keep the big libraries out.

    Raises:
        CommandFailedError: the command ended with another code than 0; with its last words.
    """
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(environment),
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise CommandFailedError(f"exit code {process.returncode}: {' '.join(last)}")
    return Cost(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * KIB)


def cost_of_pair(
    ours: Sequence[str], plain: Sequence[str], environment: Mapping[str, str], times: int
) -> Pair:
    """Run both commands by turns `times` times, after one turn each that warms the file cache."""
    cost_of(plain, environment)
    cost_of(ours, environment)
    turns = [(cost_of(ours, environment), cost_of(plain, environment)) for _ in range(times)]
    return Pair(
        ours=_median_cost([first for first, _ in turns]),
        plain=_median_cost([second for _, second in turns]),
        wall_ratio=median(first.wall_s / second.wall_s for first, second in turns),
        cpu_ratio=median(first.cpu_s / second.cpu_s for first, second in turns),
    )


def _median_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(
        median(cost.wall_s for cost in costs),
        median(cost.cpu_s for cost in costs),
        int(median(cost.peak_bytes for cost in costs)),
    )
