"""Write the batches of a run as a corpus, a record for each sequence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from configuration import RunConfig
from corpus import PAD
from loop import Fault, draw_batch


def write_batches(config: RunConfig, fault: Fault, steps: Iterable[int], path: Path) -> None:
    """Write the sequences of some steps: `batch_idx` as in the log, and `text`.

    The model reads bytes; each is written as the character of that number (Latin-1). Padding is
    left out.
    """
    numbers: list[int] = []
    texts: list[str] = []
    for step in steps:
        batch = draw_batch(config, fault, step, step)
        lengths = (batch.targets != PAD).sum(axis=1)
        for row, length in zip(batch.inputs, lengths, strict=True):
            numbers.append(step)
            texts.append(bytes(row[:length].tolist()).decode("latin-1"))
    table = pa.table({"batch_idx": pa.array(numbers, pa.int32()), "text": texts})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=19, use_dictionary=False)
