"""Make a labelled bench of training logs: healthy runs, and runs with one fault put in.

    python sample_logs/record/make_bench.py --out DIR [--runs N] [--workers N]

Writes DIR/bNNN.csv|jsonl|parquet and one line a run in DIR/labels.jsonl. Runs already labelled
are kept, so an interrupted call can be repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from torch_check import require_torch

require_torch()

import torch  # noqa: E402
from cases import Case, cases  # noqa: E402
from labels import label_of  # noqa: E402
from loop import train  # noqa: E402
from write_log import write_log  # noqa: E402


def make_run(number: int, folder: Path) -> dict[str, object]:
    """Train, log and label the run of that number."""
    torch.set_num_threads(1)
    *_, case = cases(number)
    record = train(case.config, case.fault)
    twin = train(case.config) if case.fault.timed else None
    name = f"{file_stem(case)}.{case.style.format}"
    write_log(record, case.config, case.style, folder / name)
    return label_of(case, record, twin, name)


def file_stem(case: Case) -> str:
    """Return the name of a run's file without its ending."""
    return f"b{case.number:03d}"


def _finished(path: Path) -> set[str]:
    if not path.exists():
        return set()
    return {json.loads(line)["file"].partition(".")[0] for line in path.read_text().splitlines()}


def _wanted(folder: Path, runs: int) -> Iterable[int]:
    done = _finished(folder / "labels.jsonl")
    return [case.number for case in cases(runs) if file_stem(case) not in done]


def main() -> None:
    """Read the command line and make the bench."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=240)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.workers, mp_context=context) as pool,
        (options.out / "labels.jsonl").open("a", encoding="utf-8") as labels,
    ):
        pending = [
            pool.submit(make_run, number, options.out)
            for number in _wanted(options.out, options.runs)
        ]
        for run in as_completed(pending):
            labels.write(json.dumps(run.result()) + "\n")
            labels.flush()


if __name__ == "__main__":
    main()
