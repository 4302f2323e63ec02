"""Whatever bytes a corpus or index holds: samples, or one clear error."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stabdiag.batches.features import Features, Masking, features_of
from stabdiag.batches.sources import open_corpus
from stabdiag.batches.sources.samples import CorpusOptions, Sample, Wanted
from stabdiag.batches.tokenizers import byte_tokenizer
from stabdiag.errors import InputError, StabdiagError

BYTES = byte_tokenizer()
WANTED = Wanted((0, 1, 5), frozenset({"a", "7"}))
OPTIONS = CorpusOptions(block_size=4, id_fields=("id", "idx"))


def a_parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": ["a", "b"] * 4, "text": ["some words", None] * 4}), out)
    return out.getvalue()


def an_array() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(40, dtype=np.uint16))
    return out.getvalue()


WHOLE = {
    "c.parquet": a_parquet(),
    "c.npy": an_array(),
    "c.jsonl": b'{"id": "a", "text": "words"}\n{"id": 7, "input_ids": [1, 2]}\n' * 3,
    "c.csv": b'id,text\na,"quoted ""words""\nover lines"\n7,plain\n' * 3,
    "c.txt": b"one\n\ntwo\nlines\n\nthree\n",
    "c.bin": struct.pack("<40H", *range(40)),
}


def take(sample: Sample) -> Features:
    return features_of(sample, BYTES, Masking())


def refusal(path: Path) -> StabdiagError | None:
    """The error that a corpus is refused with; None where it was read."""
    try:
        found, _ = open_corpus(path, OPTIONS).find(WANTED, take)
    except StabdiagError as err:
        return err
    assert found.by_place.keys() <= {0, 1, 5}
    assert len(found.by_place) <= found.size
    return None


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_corpus_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(WHOLE[name])
    assert refusal(path) is None


@pytest.mark.parametrize("name", WHOLE)
@given(cut=st.integers(0, 2000), at=st.integers(0, 2000), put=st.binary(max_size=8))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_damaged_corpus_gives_samples_or_a_clear_error(
    tmp_path: Path, name: str, cut: int, at: int, put: bytes
) -> None:
    data = WHOLE[name][:cut]
    path = tmp_path / name
    path.write_bytes(data[:at] + put + data[at + len(put) :])
    err = refusal(path)
    assert err is None or ("\n" not in err.what and err.todo)


def test_a_column_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"\x80id,text\n1,a\n")
    err = refusal(path)
    assert err is not None
    assert "not a readable CSV table" in err.what


def test_a_damaged_array_header(tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    path.write_bytes(an_array()[:55] + b"\0\0\0\0\0\0" + an_array()[61:128])
    err = refusal(path)
    assert err is not None
    assert "not a readable .npy" in err.what


def test_an_empty_file_or_shard(tmp_path: Path) -> None:
    empty = tmp_path / "c.jsonl"
    empty.write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        open_corpus(empty, OPTIONS)
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / "0.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="no file"):
        open_corpus(shards, OPTIONS)
    (shards / "1.jsonl").write_bytes(WHOLE["c.jsonl"])
    found, _ = open_corpus(shards, OPTIONS).find(WANTED, take)
    assert found.size == 6


def test_a_lone_carriage_return_in_the_header(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"\rid,text\n1,a\n")
    err = refusal(path)
    assert err is None or ("\n" not in err.what and err.todo)
