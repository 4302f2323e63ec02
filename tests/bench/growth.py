"""How time and memory grow with the points and the layers: `python -m tests.bench.growth`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.__main__ import MIB, Case, generated
from tests.bench.cost import cost_of

# Points grow ten thousandfold, then layers. Some ten GB of disk are needed.
CASES = (
    Case("parquet", 10_000, 13),
    Case("parquet", 100_000, 13),
    Case("parquet", 1_000_000, 13),
    Case("parquet", 2_000_000, 13),
    Case("parquet", 10_000_000, 13),
    Case("parquet", 100_000_000, 13),
    Case("csv", 10_000, 13),
    Case("csv", 100_000, 13),
    Case("csv", 1_000_000, 13),
    Case("csv", 10_000_000, 13),
    Case("parquet", 20_000, 25),
    Case("parquet", 20_000, 205),
    Case("parquet", 20_000, 2_005),
    Case("parquet", 2_000, 10_005),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each case once and print the table."""
    console = Console(highlight=False, width=80)
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("log", no_wrap=True)
    for heading in ("MB", "wall s", "CPU s", "peak MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder, "HOME": folder}
        tool = str(Path(sys.executable).parent / "stabdiag")
        for case in CASES:
            path = generated(case, Path(folder))
            cost = cost_of([tool, "analyze", str(path)], environment)
            table.add_row(
                case.name,
                f"{path.stat().st_size / MIB:.0f}",
                f"{cost.wall_s:.1f}",
                f"{cost.cpu_s:.1f}",
                f"{cost.peak_bytes / MIB:.0f}",
            )
            path.unlink()
    console.print("Whole process of `stabdiag analyze`, once each.")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
