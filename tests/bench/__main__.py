"""Time `stabdiag analyze` beside the plain library read: `python -m tests.bench [--quick]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.cost import CommandFailedError, Pair, cost_of_pair

MIB = 1024 * 1024
QUICK = 20  # --quick divides the rows by this

PLAIN_READS = {
    "parquet": "import pyarrow.parquet as p; p.read_table({path!r})",
    "csv": "import pyarrow.csv as p; p.read_csv({path!r})",
    "jsonl": "import pyarrow.json as p; p.read_json({path!r})",
    "trainer_state": "import json; json.load(open({path!r}, encoding='utf-8'))",
}
PLAIN_HELP = "import typer, rich.console"


@dataclass(frozen=True)
class Case:
    """One generated log; `limit` is the allowed multiple of the plain read's wall time."""

    kind: str
    rows: int
    columns: int
    limit: float | None = 2.0

    @property
    def name(self) -> str:
        size = f"{self.rows:,}" + (f" x {self.columns}" if self.kind != "trainer_state" else "")
        return f"{self.kind} {size}"


CASES = (
    Case("csv", 2_000, 13, limit=None),  # start-up outweighs the read
    Case("parquet", 1_000_000, 13),
    Case("parquet", 100_000, 405),
    Case("parquet", 2_000, 10_005, limit=None),  # ten thousand layers
    Case("csv", 1_000_000, 13),
    Case("csv", 20_000, 205),
    Case("jsonl", 500_000, 10),
    Case("jsonl", 20_000, 205),
    Case("trainer_state", 100_000, 5, limit=None),  # no library call reads it into columns
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every case and print the table; 1 where a limit is broken or a case failed."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    console.width = min(max(console.width, 80), 100)
    table = Table(box=box.SIMPLE, pad_edge=False, collapse_padding=True)
    table.add_column("log", no_wrap=True)
    for heading in ("MB", "wall s", "plain", "x", "CPU s", "x", "peak", "plain"):
        table.add_column(heading, justify="right", no_wrap=True)
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder, "HOME": folder}
        tool = str(Path(sys.executable).parent / "stabdiag")
        plain_help = [sys.executable, "-c", PLAIN_HELP]
        if fnmatchcase("--help", options.only):
            pair = cost_of_pair([tool, "--help"], plain_help, environment, options.times)
            table.add_row("--help", "", *_cells(pair))
        for full in CASES:
            case = shortened(full) if options.quick else full
            if not fnmatchcase(case.name, options.only):
                continue
            path = generated(case, Path(folder))
            ours = [tool, "analyze", str(path)]
            plain = [sys.executable, "-c", PLAIN_READS[case.kind].format(path=str(path))]
            size = f"{path.stat().st_size / MIB:.0f}"
            try:
                pair = cost_of_pair(ours, plain, environment, options.times)
            except CommandFailedError as err:
                table.add_row(case.name, size, "failed")
                broken.append(f"{case.name}: not measured, {err}")
                continue
            finally:
                path.unlink()
            table.add_row(case.name, size, *_cells(pair))
            if case.limit is not None and pair.wall_ratio > case.limit:
                broken.append(
                    f"{case.name}: {pair.wall_ratio:.2f} x the plain read, limit {case.limit}"
                )
    console.print(f"Whole process by turns with the plain one; medians of {options.times}; MB.")
    console.print(table)
    console.print(f"plain: the library's read of the file; for --help: {PLAIN_HELP}")
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


def shortened(case: Case) -> Case:
    """Return the case with fewer rows and no limit: the start-up outweighs a short read."""
    return replace(case, rows=max(2_000, case.rows // QUICK), limit=None)


def generated(case: Case, folder: Path) -> Path:
    """Write the case's log in a process of its own, so that this one stays small."""
    suffix = "json" if case.kind == "trainer_state" else case.kind
    path = folder / f"{case.kind}_{case.rows}_{case.columns}.{suffix}"
    size = [str(case.rows), str(case.columns)]
    subprocess.run(
        [sys.executable, "-m", "tests.bench.logs", case.kind, *size, str(path)], check=True
    )
    return path


def _cells(pair: Pair) -> tuple[str, ...]:
    return (
        f"{pair.ours.wall_s:.2f}",
        f"{pair.plain.wall_s:.2f}",
        f"{pair.wall_ratio:.2f}",
        f"{pair.ours.cpu_s:.2f}",
        f"{pair.cpu_ratio:.2f}",
        f"{pair.ours.peak_bytes / MIB:.0f}",
        f"{pair.plain.peak_bytes / MIB:.0f}",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Time and memory of `stabdiag analyze` beside the plain library read.",
    )
    parser.add_argument("--quick", action="store_true", help=f"a {QUICK}th of the rows")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="turns (5)")
    parser.add_argument("--only", default="*", metavar="GLOB", help='cases, e.g. "csv*"')
    return parser


if __name__ == "__main__":
    sys.exit(main())
