"""A planted sequence is found first in every kind of corpus; what can't be read is said."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabdiag.batches.sources import open_corpus
from stabdiag.batches.sources.samples import CorpusOptions, Sample, Wanted
from tests.batches.corpora import (
    BATCH,
    FIRST,
    ONSET,
    SAMPLES,
    STEPS,
    batch_of,
    documents,
    listed,
    write_corpus,
    write_csv,
    write_json_lines,
    write_log,
    write_parquet,
)
from tests.command_line import Command

BLOCK = 64
REPEATED = "spam eggs " * 60


def tokens(planted: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Zipf-like tokens, SAMPLES blocks; the third of the onset's batch repeats two rare ones."""
    rng = np.random.default_rng(2)
    ids = np.minimum(rng.zipf(1.5, (SAMPLES, BLOCK)), 40_000)
    if planted:
        ids[FIRST + 2] = np.tile([49_000, 49_001], BLOCK // 2)
    return ids


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "lines", "blank", "shards"])
def test_a_planted_text_is_first(command: Command, folder: Path, kind: str) -> None:
    log = write_log(folder / "run.jsonl")
    corpus = write_corpus(folder, kind, documents({5: REPEATED}))
    batch = batch_of(command, log, "--data", corpus)
    assert batch["step"] == ONSET
    assert batch["status"] == "found"
    assert batch["data"]["sequences"] == SAMPLES
    assert batch["ids"] == [str(i) for i in listed(ONSET)["sample_ids"]]
    first, second = batch["sequences"][:2]
    assert first["id"] == str(FIRST + 5)
    assert any("occurred before in it" in reason for reason in first["reasons"])
    assert first["excerpt"].startswith("spam eggs spam eggs")
    assert second["reasons"] == []


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("t.npy", ()),
        ("t-flat.npy", ("--block-size", BLOCK)),
        ("t.bin", ("--block-size", BLOCK)),
        ("t-32.bin", ("--block-size", BLOCK)),
        ("t-64.bin", ("--block-size", BLOCK, "--dtype", "int64")),
        ("llm-c.bin", ("--block-size", BLOCK)),
        ("megatron.bin", ()),
    ],
)
def test_a_planted_block_of_tokens_is_first(
    command: Command, folder: Path, name: str, flags: tuple[Any, ...]
) -> None:
    log = write_log(folder / "run.jsonl")
    ids = tokens(planted=True)
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, ids.astype(np.uint16) if name == "t.npy" else ids.reshape(-1))
    elif name == "llm-c.bin":
        header = np.zeros(256, dtype="<i4")
        header[:3] = 20240520, 1, ids.size
        path.write_bytes(header.tobytes() + ids.astype("<u2").tobytes())
    elif name == "megatron.bin":
        path.write_bytes(ids.astype("<u2").tobytes())
        write_megatron_index(path.with_suffix(".idx"), SAMPLES, BLOCK)
    else:
        kind = {"t.bin": "<u2", "t-32.bin": "<u4", "t-64.bin": "<i8"}[name]
        path.write_bytes(ids.astype(kind).tobytes())
    batch = batch_of(command, log, "--data", path, *flags)
    first, second = batch["sequences"][:2]
    assert (first["id"], first["length"]) == (str(FIRST + 2), BLOCK)
    assert first["excerpt"].startswith("ids 49000 49001 ")
    assert any("rare or absent" in reason for reason in first["reasons"])
    assert second["reasons"] == []
    assert batch["data"]["unit"] == "token"
    assert any("--tokenizer" in line for line in batch["not_measured"])


def write_megatron_index(path: Path, count: int, length: int) -> None:
    lengths = np.full(count, length, dtype="<i4")
    starts = (np.arange(count, dtype="<i8") * length * 2).astype("<i8")
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, count, count + 1)
    path.write_bytes(head + lengths.tobytes() + starts.tobytes() + np.arange(count + 1).tobytes())


def test_token_offsets_begin_anywhere(command: Command, folder: Path) -> None:
    ids = tokens(planted=False)
    start = FIRST * BLOCK + 7
    flat = ids.reshape(-1)
    flat[start : start + BLOCK] = np.tile([49_000, 49_001], BLOCK // 2)
    flat.astype("<u2").tofile(folder / "t.bin")

    def offsets(step: int) -> dict[str, Any]:
        return {"sample_ids": [(step * BATCH + k) * BLOCK + 7 for k in range(BATCH)]}

    log = write_log(folder / "run.jsonl", offsets)
    flags = ("--data", "t.bin", "--block-size", BLOCK)
    batch = batch_of(command, log, *flags, "--token-offsets")
    assert batch["sequences"][0]["id"] == str(start)
    beyond = command("batch", log, *flags)
    assert beyond.code == 2
    assert f"beyond its {SAMPLES} samples" in beyond.remarks[0]


def test_places_across_shards_and_in_their_natural_order(folder: Path) -> None:
    shards = folder / "s"
    shards.mkdir()
    for number in range(12):
        write_json_lines(shards / f"s{number}.jsonl", [{"text": f"{number}-{k}"} for k in range(3)])
    corpus = open_corpus(shards, CorpusOptions())
    found, local = corpus.find(
        Wanted((0, 5, 35)), lambda sample: sample.text, [("s2.jsonl", 1), ("11", 0), ("9", 9)]
    )
    assert found.by_place[0] == "0-0"
    assert found.by_place[5] == "1-2"
    assert found.by_place[35] == "11-2"
    assert local == {("s2.jsonl", 1): "2-1", ("11", 0): "11-0"}
    assert found.size == 36


def test_only_row_groups_with_a_wanted_row_are_decoded(folder: Path) -> None:
    """Damage in another row group stays unseen, so that group was not read."""
    texts = [f"{i} " + "x" * 1000 for i in range(40)]
    path = write_parquet(folder / "c.parquet", {"text": texts}, group=10)
    import pyarrow.parquet as pq

    at = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[at : at + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    found, _ = open_corpus(path, CorpusOptions()).find(
        Wanted((25,)), lambda sample: (sample.text or "")[:3]
    )
    assert found.by_place == {25: "25 "}


def test_records_of_many_shapes(folder: Path) -> None:
    def only(record: dict[str, Any], **options: Any) -> Sample:
        path = write_json_lines(folder / "one.jsonl", [record])
        corpus = open_corpus(path, CorpusOptions(**options))
        return corpus.find(Wanted((0,)), lambda sample: sample)[0].by_place[0]

    assert only({"prompt": "a", "completion": "b"}).text == "a\nb"
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    assert only({"messages": chat}).text == "hi\nho"
    assert only({"text": None}).text == ""
    assert only({"text": "\ud800"}).text == "\ud800"
    assert only({"mine": "text"}, field="mine").text == "text"
    tokenized = only({"input_ids": [1, 2, 3], "labels": [-100, 2, 3], "attention_mask": [1, 1, 0]})
    assert tokenized.tokens is not None
    assert tokenized.tokens.tolist() == [1, 2, 3]
    assert tokenized.targets is not None
    assert tokenized.real is not None


def test_blank_lines_of_json_count_for_nothing_and_bad_bytes_are_replaced(folder: Path) -> None:
    path = folder / "c.jsonl"
    path.write_bytes(b'{"text": "a"}\n\n  \n{"text": "b\xff"}\r\n{"text": "c"}')
    found, _ = open_corpus(path, CorpusOptions()).find(Wanted((0, 1, 2)), lambda s: s.text)
    assert found.by_place == {0: "a", 1: "b\ufffd", 2: "c"}


def test_quoted_cells_hold_line_ends_and_any_bytes(folder: Path) -> None:
    path = folder / "c.csv"
    path.write_bytes(b'id,text\n7,"two\nlines, one cell"\n8,plain\xff\n')
    found, _ = open_corpus(path, CorpusOptions(id_fields=("id",))).find(
        Wanted((0,), frozenset({"8"})), lambda s: s.text
    )
    assert found.by_place == {0: "two\nlines, one cell"}
    assert found.by_name == {"8": [(1, "plain\ufffd")]}
    assert found.size == 2


def refused(command: Command, folder: Path, path: Path, *flags: Any) -> str:
    log = write_log(folder / "run.jsonl")
    done = command("batch", log, "--data", path, *flags)
    assert (done.code, done.out) == (2, "")
    assert len(done.remarks) == 2
    assert path.stem in done.remarks[0] or flags
    return done.err


def test_what_can_not_be_read_is_said_in_a_line(command: Command, folder: Path) -> None:
    assert "no such file" in refused(command, folder, folder / "gone.jsonl")
    short = write_json_lines(folder / "short.jsonl", [{"text": "a"}] * 100)
    assert "beyond its 100 samples" in refused(command, folder, short)
    wordless = write_json_lines(folder / "n.jsonl", [{"n": 1}] * SAMPLES)
    assert "--field NAME" in refused(command, folder, wordless)
    array = folder / "a.json"
    array.write_text('[{"text": "a"}]')
    assert "one JSON array" in refused(command, folder, array)
    floats = folder / "f.npy"
    np.save(floats, np.zeros((SAMPLES, 4)))
    assert "not token ids" in refused(command, folder, floats)
    flat = folder / "t.bin"
    flat.write_bytes(bytes(4001))
    assert "--block-size" in refused(command, folder, flat, "--dtype", "uint8")
    assert "no whole number of uint16 tokens" in refused(command, folder, flat)
    assert "none of" in refused(command, folder, flat, "--dtype", "float32")
    torn = folder / "torn.parquet"
    torn.write_bytes(b"PAR1 and nothing more")
    assert "not a readable Parquet file" in refused(command, folder, torn)
    mixed = folder / "mixed"
    mixed.mkdir()
    write_json_lines(mixed / "a.jsonl", [{"text": "a"}])
    write_csv(mixed / "b.csv", {"text": ["a"]})
    assert "several kinds" in refused(command, folder, mixed)
    index = folder / "m.idx"
    index.write_bytes(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 10**9, 1))
    (folder / "m.bin").write_bytes(bytes(64))
    assert "cut short" in refused(command, folder, folder / "m.bin")


def test_a_damaged_line_is_named(command: Command, folder: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents())
    lines = corpus.read_text(encoding="utf-8").splitlines()
    lines[FIRST] = '{"text": "cut'
    corpus.write_text("\n".join(lines), encoding="utf-8")
    assert f"sample {FIRST}" in refused(command, folder, corpus)


def test_a_compressed_corpus_is_streamed(command: Command, folder: Path) -> None:
    import gzip

    plain = write_corpus(folder, "jsonl", documents({5: REPEATED}))
    packed = folder / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    log = write_log(folder / "run.jsonl")
    batch = batch_of(command, log, "--data", packed)
    assert batch["sequences"][0]["id"] == str(FIRST + 5)
    assert batch["data"]["sequences"] == STEPS * BATCH
