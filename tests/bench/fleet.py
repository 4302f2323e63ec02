"""Runs a second that `stabdiag fleet` judges at 1 and 2 workers: `python -m tests.bench.fleet`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.__main__ import Case, generated
from tests.bench.cost import cost_of

RUNS = 300
ROWS, COLUMNS = 2_000, 13
WORKERS = (1, 2)
SURVEY = 100_000  # runs that the cost is stated for


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the same runs with 1 and 2 workers and print runs a second, and what a survey costs."""
    console = Console(highlight=False, width=80)
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("workers", "runs", "wall s", "runs/s", "CPU s a run", f"CPU h for {SURVEY:,}"):
        table.add_column(heading, justify="right", no_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder, "HOME": folder}
        tool = str(Path(sys.executable).parent / "stabdiag")
        runs = Path(folder, "runs")
        runs.mkdir()
        first = generated(Case("csv", ROWS, COLUMNS), runs)
        for number in range(1, RUNS):
            os.link(first, runs / f"run_{number}.csv")
        for workers in WORKERS:
            command = [tool, "fleet", str(runs), "--workers", str(workers), "--state", "none"]
            cost = cost_of(command, environment)
            each = cost.cpu_s / RUNS
            table.add_row(
                str(workers),
                str(RUNS),
                f"{cost.wall_s:.1f}",
                f"{RUNS / cost.wall_s:.1f}",
                f"{each:.3f}",
                f"{each * SURVEY / 3600:.1f}",
            )
    console.print(f"`stabdiag fleet` on {RUNS} CSV logs of {ROWS:,} x {COLUMNS}, nothing known.")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
