"""A corpus with planted sequences, its run, and the same corpus written in every kind of file."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import Command

BATCH = 8
STEPS = 120
ONSET = 90
SAMPLES = BATCH * STEPS
FIRST = ONSET * BATCH  # the first sample of the batch at the onset
TEXT = (
    "the model reads each word of a long text and learns what comes next while the loss falls "
    "slowly under a rate that was set before but no one knows why some batches make it rise again"
)
WORDS = TEXT.split()


def batch_of(command: Command, *arguments: Any) -> dict[str, Any]:
    """What `stabdiag batch` says of the batch, as JSON."""
    done = command("batch", *arguments, "--format", "json")
    assert (done.code, done.err) == (0, "")
    batch: dict[str, Any] = json.loads(done.out, parse_constant=pytest.fail)["batch"]
    return batch


@cache
def _sentences() -> tuple[str, ...]:
    rng = np.random.default_rng(5)
    return tuple(
        " ".join(WORDS[i] for i in rng.integers(len(WORDS), size=rng.integers(40, 120)).tolist())
        for _ in range(SAMPLES)
    )


def documents(plant: Mapping[int, str] | None = None) -> list[str]:
    """Sentences of words drawn at random; `plant` puts others into the onset's batch, by place."""
    texts = list(_sentences())
    for place, text in (plant or {}).items():
        texts[FIRST + place] = text
    return texts


def rows(ids: Callable[[int], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A falling loss that jumps at ONSET with its grad norm; `ids` are the indices of a step."""
    out = []
    for step in range(STEPS):
        ripple = 0.02 * math.sin(12.9898 * step)
        upset = 3.0 * 0.6 ** (step - ONSET) if step >= ONSET else 0.0
        out.append(
            {
                "step": step,
                "loss": 2 + 2 * math.exp(-step / 40) + ripple + upset,
                "grad_norm": 1 + 3 * ripple + 4 * upset,
                "lr": 1e-3,
                **ids(step),
            }
        )
    return out


def listed(step: int) -> dict[str, Any]:
    """The samples of a step as a list, in the order of the corpus."""
    return {"sample_ids": list(range(step * BATCH, (step + 1) * BATCH))}


def write_log(path: Path, ids: Callable[[int], Mapping[str, Any]] = listed) -> Path:
    """Write the run as JSON Lines."""
    return write_json_lines(path, rows(ids))


def write_json_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any]], group: int = 100) -> Path:
    pq.write_table(pa.table(dict(columns)), path, row_group_size=group)
    return path


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_corpus(folder: Path, kind: str, texts: Sequence[str]) -> Path:
    """The corpus in one kind of file, or a folder of shards."""
    if kind == "jsonl":
        return write_json_lines(folder / "c.jsonl", [{"text": t} for t in texts])
    if kind == "parquet":
        return write_parquet(folder / "c.parquet", {"text": texts, "unused": [1.0] * len(texts)})
    if kind == "csv":
        return write_csv(folder / "c.csv", {"name": range(len(texts)), "text": texts})
    if kind == "lines":
        path = folder / "c.txt"
        path.write_text("".join(t + "\n" for t in texts), encoding="utf-8")
        return path
    if kind == "blank":
        path = folder / "c.txt"
        halves = [f"{t[: len(t) // 2]}\n{t[len(t) // 2 :]}" for t in texts]
        path.write_text("\n\n".join(halves) + "\n", encoding="utf-8")
        return path
    shards = folder / "shards"
    shards.mkdir()
    for number, first in enumerate(range(0, len(texts), 100)):
        records = [{"text": t} for t in texts[first : first + 100]]
        write_json_lines(shards / f"part-{number}.jsonl", records)
    return shards
