"""Every way in which a log names the data of a step leads to the same samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.batches.corpora import (
    BATCH,
    FIRST,
    ONSET,
    SAMPLES,
    STEPS,
    batch_of,
    documents,
    listed,
    rows,
    write_corpus,
    write_csv,
    write_json_lines,
    write_log,
    write_parquet,
)
from tests.command_line import Command

PLANTED = "spam eggs " * 60
LARGE = 2**60 + 1  # beyond what float64 holds exactly
Ids = Callable[[int], Mapping[str, Any]]


def a_range(first: str, last: str, *, included: bool) -> Ids:
    return lambda step: {first: step * BATCH, last: (step + 1) * BATCH - included}


WAYS: Mapping[str, tuple[Ids, tuple[Any, ...]]] = {
    "a list": (listed, ()),
    "a list in words": (lambda s: {"indices": str(listed(s)["sample_ids"])}, ()),
    "numbers in a text": (
        lambda s: {"sample_ids": " ".join(map(str, listed(s)["sample_ids"]))},
        (),
    ),
    "half-open range": (a_range("data_start", "data_end", included=False), ()),
    "closed range": (a_range("first_index", "last_index", included=True), ()),
    "closed range in words": (
        lambda s: {"sample_ids": f"{s * BATCH}-{(s + 1) * BATCH - 1}"},
        (),
    ),
    "slice in words": (lambda s: {"batch_ids": f"{s * BATCH}:{(s + 1) * BATCH}"}, ()),
    "start alone": (lambda s: {"data_start": s * BATCH}, ("--batch-size", BATCH)),
    "number of the batch": (lambda s: {"batch_id": s}, ("--batch-size", BATCH)),
    "samples consumed": (lambda s: {"consumed_samples": (s + 1) * BATCH}, ()),
    "samples consumed, size given": (
        lambda s: {"consumed_samples": (s + 1) * BATCH},
        ("--batch-size", BATCH),
    ),
}


@pytest.fixture
def corpus(folder: Path) -> Path:
    return write_corpus(folder, "jsonl", documents({5: PLANTED}))


@pytest.mark.parametrize("way", WAYS)
def test_the_planted_sample_is_retrieved(
    command: Command, folder: Path, corpus: Path, way: str
) -> None:
    ids, flags = WAYS[way]
    log = write_log(folder / "run.jsonl", ids)
    batch = batch_of(command, log, "--data", corpus, *flags)
    assert batch["sequences"][0]["id"] == str(FIRST + 5)
    assert batch["sequences"][0]["reasons"]
    assert sorted(one["id"] for one in batch["sequences"]) == sorted(
        map(str, listed(ONSET)["sample_ids"])
    )


def test_a_cadence_above_one_counts_samples_by_the_size_given(
    command: Command, folder: Path, corpus: Path
) -> None:
    every = [row for row in rows(WAYS["samples consumed"][0]) if row["step"] % 2 == 0]
    log = write_json_lines(folder / "run.jsonl", every)
    asked = command("batch", log, "--data", corpus)
    assert asked.code == 2
    assert "--batch-size" in asked.remarks[1]
    batch = batch_of(command, log, "--data", corpus, "--batch-size", BATCH)
    assert batch["sequences"][0]["id"] == str(FIRST + 5)


@pytest.mark.parametrize("name", [lambda i: f"doc/{i} of the corpus", lambda i: LARGE + i])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_records_are_found_by_their_own_ids(
    command: Command, folder: Path, name: Callable[[int], Any], kind: str
) -> None:
    """Words with spaces, and whole numbers that differ in their last digits alone."""

    def ids(step: int) -> dict[str, Any]:
        return {"sample_ids": [name(i) for i in listed(step)["sample_ids"]]}

    texts = documents({5: PLANTED})
    order = np.random.default_rng(1).permutation(SAMPLES).tolist()
    own = [name(i) for i in order]
    shuffled = [texts[i] for i in order]
    if kind == "jsonl":
        records = [{"id": i, "text": t} for i, t in zip(own, shuffled, strict=True)]
        corpus = write_json_lines(folder / "c.jsonl", records)
        log = write_log(folder / "run.jsonl", ids)
    else:
        corpus = write_parquet(folder / "c.parquet", {"id": own, "text": shuffled})
        log = folder / "run.parquet"
        pq.write_table(pa.Table.from_pylist(rows(ids)), log)
    batch = batch_of(command, log, "--data", corpus)
    assert batch["sequences"][0]["id"] == str(name(FIRST + 5))
    assert "a record's own id" in batch["data"]["described"]


def test_ids_that_could_be_places_or_names_are_refused(command: Command, folder: Path) -> None:
    texts = documents({5: PLANTED})
    records = [{"id": SAMPLES - 1 - i, "text": t} for i, t in enumerate(texts)]
    corpus = write_json_lines(folder / "c.jsonl", records)
    log = write_log(folder / "run.jsonl")
    done = command("batch", log, "--data", corpus)
    assert done.code == 2
    assert "--id-field none" in done.remarks[1]
    assert batch_of(command, log, "--data", corpus, "--id-field", "none")["sequences"][0][
        "id"
    ] == str(FIRST + 5)
    named = batch_of(command, log, "--data", corpus, "--id-field", "id")
    assert named["status"] == "clear"  # these are other samples


def test_an_id_field_that_repeats_the_places_is_no_riddle(command: Command, folder: Path) -> None:
    records = [{"id": i, "text": t} for i, t in enumerate(documents({5: PLANTED}))]
    corpus = write_json_lines(folder / "c.jsonl", records)
    log = write_log(folder / "run.jsonl")
    assert batch_of(command, log, "--data", corpus)["sequences"][0]["id"] == str(FIRST + 5)


def test_a_batch_id_names_all_records_that_bear_it(command: Command, folder: Path) -> None:
    records = [{"batch_id": i // BATCH, "text": t} for i, t in enumerate(documents({5: PLANTED}))]
    corpus = write_json_lines(folder / "c.jsonl", records)
    log = write_log(folder / "run.jsonl", lambda step: {"batch_id": step})
    batch = batch_of(command, log, "--data", corpus)
    assert batch["size"] == BATCH
    assert batch["sequences"][0]["id"] == f"{ONSET}[5]"
    nameless = write_corpus(folder, "lines", documents())
    done = command("batch", log, "--data", nameless)
    assert done.code == 2
    assert "--batch-size" in done.remarks[1]


def test_a_shard_and_an_offset(command: Command, folder: Path) -> None:
    """Twelve batches a shard; `shard_id` is the number in its file's name."""

    def ids(step: int) -> dict[str, Any]:
        return {"shard_id": step * BATCH // 96, "shard_offset": step * BATCH % 96}

    shards = folder / "shards"
    shards.mkdir()
    texts = documents({5: PLANTED})
    for number in range(10):
        records = [{"text": t} for t in texts[96 * number : 96 * number + 96]]
        write_json_lines(shards / f"shard-{number:03d}.jsonl", records)
    log = write_log(folder / "run.jsonl", ids)
    batch = batch_of(command, log, "--data", shards, "--batch-size", BATCH)
    assert batch["sequences"][0]["id"] == f"{(FIRST + 5) // 96}:{(FIRST + 5) % 96}"
    assert command("batch", log, "--data", shards).code == 2
    (shards / "shard-007.jsonl").unlink()
    assert "shard '7'" in command("batch", log, "--data", shards, "--batch-size", BATCH).err


def test_the_order_of_a_shuffled_loader(command: Command, folder: Path) -> None:
    """The n-th sample drawn is that of numpy's permutation; epochs draw anew."""
    size = SAMPLES // 2  # two epochs
    second = np.random.default_rng(8).permutation(size)  # seed 7, epoch 1
    texts = documents()[:size]
    texts[int(second[FIRST + 5 - size])] = PLANTED
    corpus = write_corpus(folder, "jsonl", texts)
    log = write_log(folder / "run.jsonl", lambda s: {"batch_id": s, "data_seed": 7})
    flags = ("--data", corpus, "--batch-size", BATCH, "--order", "numpy")
    first = batch_of(command, log, *flags)["sequences"][0]
    assert first["id"] == str(int(second[FIRST + 5 - size]))
    assert first["reasons"]
    assert batch_of(command, log, *flags, "--seed", 3)["sequences"][0]["id"] != first["id"]
    assert command("batch", log, *flags[:-1], "random").code == 2


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_short_last_batch_of_an_epoch(command: Command, folder: Path, drop_last: bool) -> None:
    """Of 300 samples it is the 38th; left out, the next epoch begins there."""
    orders = [np.random.default_rng(epoch).permutation(300).tolist() for epoch in (0, 1)]
    corpus = write_corpus(folder, "jsonl", documents()[:300])
    log = write_log(folder / "run.jsonl", lambda s: {"batch_id": s})
    flags: tuple[Any, ...] = ("--data", corpus, "--batch-size", BATCH, "--order", "numpy")
    seen = batch_of(command, log, *flags, "--step", 37, *(("--drop-last",) if drop_last else ()))
    expected = orders[1][:BATCH] if drop_last else orders[0][37 * BATCH :]
    assert {int(one["id"]) for one in seen["sequences"]} == set(expected)
    assert any("an epoch is 37.5 batches" in note for note in seen["notes"])


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "npy", "one a row"])
@pytest.mark.parametrize("by", ["step", "batch_id"])
def test_a_separate_index(command: Command, folder: Path, corpus: Path, kind: str, by: str) -> None:
    order = list(range(STEPS))[::-1] if by == "batch_id" else list(range(STEPS))
    logged: Ids = (lambda s: {"batch_id": order[s]}) if by == "batch_id" else (lambda s: {})
    log = write_log(folder / "run.jsonl", logged)
    lists = [listed(order[key])["sample_ids"] for key in range(STEPS)]
    index = folder / f"index.{kind}"
    columns: dict[str, Any] = {by: range(STEPS), "sample_ids": lists}
    if kind == "jsonl":
        write_json_lines(
            index, [dict(zip(columns, r, strict=True)) for r in zip(*columns.values(), strict=True)]
        )
    elif kind == "csv":
        write_csv(index, columns)
    elif kind == "parquet":
        write_parquet(index, {by: list(range(STEPS)), "sample_ids": lists})
    elif kind == "npy":
        with index.open("wb") as file:
            np.save(file, np.array(lists))
    else:
        pairs = [(key, i) for key, own in enumerate(lists) for i in own]
        write_csv(index, {by: [k for k, _ in pairs], "sample_id": [i for _, i in pairs]})
    batch = batch_of(command, log, "--data", corpus, "--index", index)
    assert batch["sequences"][0]["id"] == str(FIRST + 5)
    assert index.name in batch["indices"]


def test_an_index_that_is_none(command: Command, folder: Path, corpus: Path) -> None:
    log = write_log(folder / "run.jsonl")
    wrong = write_csv(folder / "w.csv", {"step": range(5), "length": range(5)})
    for index in (folder / "gone.csv", wrong):
        done = command("batch", log, "--data", corpus, "--index", index)
        assert (done.code, len(done.remarks)) == (2, 2)
        assert index.name in done.remarks[0]
    by_batch = write_csv(folder / "b.csv", {"batch_id": range(5), "sample_id": range(5)})
    assert "no batch id" in command("batch", log, "--index", by_batch).remarks[0]


def plain_log(folder: Path, kind: str, first: int) -> Path:
    """A log whose steps name one sample each, numbered from `first`, some steps without."""
    records = rows(lambda s: {"sample_id": None if s % 10 == 9 else first + s})
    columns = {k: [r[k] for r in records] for k in records[0]}
    if kind == "csv":
        return write_csv(folder / "run.csv", columns)
    if kind == "parquet":
        return write_parquet(folder / "run.parquet", columns)
    if kind == "json":
        path = folder / "run.json"
        path.write_text(json.dumps({"log_history": records}), encoding="utf-8")
        return path
    path = write_json_lines(folder / "run.jsonl", records)
    if kind == "odd jsonl":  # not read by Arrow
        path.write_text(path.read_text().replace('"lr": 0.001', '"lr": nan', 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "jsonl", "odd jsonl"])
@pytest.mark.parametrize("first", [LARGE, 2**53 - ONSET, -LARGE, 12])
def test_single_numbers_keep_all_their_digits(
    command: Command, folder: Path, kind: str, first: int
) -> None:
    log = plain_log(folder, kind, first)
    assert batch_of(command, log)["ids"] == [str(first + ONSET)]


def test_single_numbers_of_shards_keep_all_their_digits(command: Command, folder: Path) -> None:
    records = rows(lambda s: {"sample_id": LARGE + s if s > 50 else s})
    parts = [
        write_json_lines(folder / f"{i}.jsonl", some)
        for i, some in enumerate((records[:50], records[50:]))
    ]
    assert batch_of(command, *parts)["ids"] == [str(LARGE + ONSET)]


@pytest.mark.parametrize("text", [f"{2**64 + ONSET}", "1.2e18", f"{LARGE}.0"])
def test_a_single_number_that_lost_its_last_digits_is_refused(
    command: Command, folder: Path, corpus: Path, text: str
) -> None:
    log = write_log(folder / "run.jsonl", lambda s: {"sample_id": 77})
    log.write_text(log.read_text().replace('"sample_id": 77', f'"sample_id": {text}'))
    done = command("batch", log, "--data", corpus)
    assert (done.code, len(done.remarks)) == (2, 2)
    assert "2^53" in done.remarks[0]


def test_numbers_in_lists_keep_all_their_digits(command: Command, folder: Path) -> None:
    in_lists = write_log(folder / "lists.jsonl", lambda s: {"sample_id": [LARGE + s]})
    assert batch_of(command, in_lists)["ids"] == [str(LARGE + ONSET)]
    csv = write_csv(
        folder / "lists.csv",
        {
            k: [r[k] for r in rows(lambda s: {"sample_ids": f"{LARGE + s} {LARGE - s}"})]
            for k in ("step", "loss", "grad_norm", "sample_ids")
        },
    )
    assert batch_of(command, csv)["ids"] == [str(LARGE + ONSET), str(LARGE - ONSET)]
