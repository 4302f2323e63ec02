"""A corpus is never held in memory: the peak does not grow with its size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SAMPLE_BYTES = 1500
SAMPLES = 32_000  # 48 MB
ALLOWED_MB = 24  # above the libraries and a first, small corpus
PEAK = """
import json, resource, sys
from pathlib import Path
from stabdiag.batches.features import Masking, features_of
from stabdiag.batches.sources import open_corpus
from stabdiag.batches.sources.samples import CorpusOptions, Wanted
from stabdiag.batches.tokenizers import byte_tokenizer

def peak(path):
    corpus = open_corpus(Path(path), CorpusOptions(block_size=512))
    take = lambda sample: features_of(sample, byte_tokenizer(), Masking())
    found, _ = corpus.find(Wanted((3, 700)), take)
    assert len(found.by_place) == 2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, found.size

small, _ = peak(sys.argv[1])
large, size = peak(sys.argv[2])
print(json.dumps({"mb": (large - small) / 1024, "size": size}))
"""


def write(path: Path, samples: int) -> Path:
    letters = np.random.default_rng(0).integers(97, 123, (16, SAMPLE_BYTES), dtype=np.uint8)
    texts = [bytes(row).decode() for row in letters]
    if path.suffix == ".parquet":
        schema = pa.schema([("text", pa.string())])
        with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
            for _ in range(0, samples, 4000):
                part = (texts * 250)[: min(samples, 4000)]
                writer.write_table(pa.table({"text": part}), row_group_size=4000)
    elif path.suffix == ".bin":
        np.tile(letters.astype(np.uint16).reshape(-1), samples // 16).tofile(path)
    elif path.suffix == ".csv":
        rows = "".join(f'1,"{text}"\n' for text in texts)
        path.write_text("n,text\n" + rows * (samples // 16), encoding="utf-8")
    else:
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        path.write_text(lines * (samples // 16), encoding="utf-8")
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read by `resource`")
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "bin"])
def test_the_peak_does_not_grow_with_the_corpus(tmp_path: Path, kind: str) -> None:
    small = write(tmp_path / f"small.{kind}", 4000)
    large = write(tmp_path / f"large.{kind}", SAMPLES)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(small), str(large)],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(done.stdout)
    assert large.stat().st_size > 40e6 or kind == "parquet"
    assert seen["size"] >= SAMPLES
    assert seen["mb"] < ALLOWED_MB, seen
