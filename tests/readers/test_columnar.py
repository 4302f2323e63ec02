"""Parquet, Arrow and tables in memory: all types, columns on demand, damaged files."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import stabdiag
from stabdiag.errors import InputError
from stabdiag.readers import read_log, read_table
from tests.readers.tables import cells, column, said

NAN = float("nan")
UTC = dt.UTC

SAMPLE = Path(__file__).resolve().parents[2] / "sample_logs/bad_batch.parquet"


def written(folder: Path, table: pa.Table, **options: object) -> Path:
    path = folder / "a.parquet"
    pq.write_table(table, path, **options)
    return path


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1.5, None, NAN], pa.float64()), [1.5, None, "<NaN>"]),
        (pa.array([1.5, None, float("inf")], pa.float32()), [1.5, None, float("inf")]),
        (pa.array(np.array([1.5, 2, NAN], np.float16)), [1.5, 2.0, "<NaN>"]),
        (pa.array([1, None, -3], pa.int8()), [1.0, None, -3.0]),
        (pa.array([2**53, None, 3], pa.int64()), [2.0**53, None, 3.0]),
        (pa.array([2**64 - 1, None, 3], pa.uint64()), [2.0**64, None, 3.0]),
        (pa.array([True, None, False]), [1.0, None, 0.0]),
        (pa.array([Decimal("1.25"), None, Decimal("-3")], pa.decimal128(9, 2)), [1.25, None, -3.0]),
        (pa.array(["1.5", None, "nan"]), [1.5, None, "<NaN>"]),
        (pa.array(["1.5", "", "N/A"]), [1.5, None, None]),
        (pa.array(["a", None, "nan"]), ["a", None, "nan"]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array(["1", None, "2.5"]).dictionary_encode(), [1.0, None, 2.5]),
        (pa.array([b"a", None, b"\xff"]), ["a", None, "\ufffd"]),
        (pa.nulls(3), [None, None, None]),
        (pa.array([[1, 2], None, []]), [(1.0, 2.0), None, ()]),
        (pa.array([["a"], None, ["b", None]]), [("a",), None, ("b", "")]),
        (pa.array(["[1, 2]", None, "[3]"]), [(1.0, 2.0), None, (3.0,)]),
        (
            pa.array([dt.datetime(1970, 1, 2, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
            [86400.0, None, None],
        ),
        (pa.array([dt.date(1970, 1, 3), None, None]), [172800.0, None, None]),
        (pa.array([dt.time(0, 1, 0, 500_000), None, None]), [60.5, None, None]),
        (pa.array([dt.timedelta(minutes=2), None, None]), [120.0, None, None]),
    ],
)
def test_types(tmp_path: Path, array: pa.Array, expected: list[object]) -> None:
    table = pa.table({"step": [0, 1, 2], "a.b[0]/c d": array})
    read = read_log([written(tmp_path, table)])
    assert column(read, "a.b[0]/c d") == expected
    assert column(read_table(table), "a.b[0]/c d") == expected


def test_structs_are_taken_apart(tmp_path: Path) -> None:
    rows = [{"loss": 1.0, "in": {"lr": 2}}, None, {"loss": NAN, "in": None}]
    path = written(tmp_path, pa.table({"step": [0, 1, 2], "train": pa.array(rows)}))
    table = read_log([path])
    assert table.names == ("step", "train/loss", "train/in/lr")
    assert column(table, "train/loss") == [1.0, None, "<NaN>"]
    assert column(table, "train/in/lr") == [2.0, None, None]


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    """A name that begins another's, and many row groups, in the order that is asked for."""
    names = ["step", "layer", "layer.0", "layer.0.weight", "loss"]
    table = pa.table({name: np.arange(100.0) + 1000 * i for i, name in enumerate(names)})
    read = read_log([written(tmp_path, table, row_group_size=7)])
    assert read.names == tuple(names)
    wanted = ["loss", "layer", "layer.0.weight"]
    loaded = read.load(wanted)
    assert list(loaded) == wanted
    assert loaded["loss"].value.tolist() == table["loss"].to_pylist()
    assert loaded["layer"].value.tolist() == table["layer"].to_pylist()
    assert read.line.tolist() == list(range(1, 101))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([[1, 2], [0.5, 0.25], [9, 8]], names=["step", "loss", "loss"])
    read = read_log([written(tmp_path, table)])
    assert column(read, "loss") == [0.5, 0.25]
    assert column(read, "loss (2)") == [9.0, 8.0]
    assert "two columns are called 'loss'" in said(read)


def test_columns_without_metrics_are_named(tmp_path: Path) -> None:
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    read = read_log([written(tmp_path, pa.table({"step": [0, 1], "config": pairs}))])
    assert read.names == ("step",)
    assert "column 'config'" in said(read)


def test_stray_word_in_a_column_of_numbers(tmp_path: Path) -> None:
    table = pa.table({"step": [0, 1, 2], "loss": ["1.5", "banana", "2"]})
    read = read_log([written(tmp_path, table)])
    assert column(read, "loss") == [1.5, None, 2.0]
    assert "'banana' is no number and counts as not logged x1 at [2]" in said(read)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather(tmp_path: Path, compression: str) -> None:
    table = pa.table({"step": [0, 1], "loss": [NAN, None], "word": ["a", "b"]})
    feather.write_feather(table, tmp_path / "a.feather", compression=compression)
    read = read_log([tmp_path / "a.feather"])
    assert read.format == "arrow"
    assert column(read, "loss") == ["<NaN>", None]
    assert column(read, "word") == ["a", "b"]


def test_compressed_as_a_whole(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"step": [0, 1], "loss": [NAN, None]}))
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert column(read_log([packed]), "loss") == ["<NaN>", None]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"loss": pa.array([], pa.float64())}), "without rows"),
        (pa.table({}), "without columns"),
    ],
)
def test_empty_tables(tmp_path: Path, table: pa.Table, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_log([written(tmp_path, table)])


@pytest.mark.parametrize("keep", [4, 5, 100, 0.5, 0.99])
def test_cut_file(tmp_path: Path, keep: float) -> None:
    path = written(tmp_path, pa.table({"loss": np.arange(1000.0)}))
    data = path.read_bytes()
    path.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])
    with pytest.raises(InputError, match="not a whole Parquet file"):
        read_log([path])


def test_damaged_pages_are_found_when_they_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"loss": np.random.default_rng(0).random(5000)}))
    data = bytearray(path.read_bytes())
    data[4:3000] = b"\xff" * 2996
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_log([path]).load(["loss"])


def test_frame_of_pandas_tells_its_nan_apart() -> None:
    frame = pd.DataFrame(
        {
            "step": [0, 1, 2, 3, 4, 5],
            "loss": [2.0, 1.5, NAN, 1.0, NAN, NAN],  # no row with val_loss has one
            "grad_norm": [1.0, 2.0, 3.0, NAN, NAN, NAN],
            "val_loss": [NAN, NAN, 3.0, NAN, NAN, 4.0],
            "n": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
            "word": ["a", None, "b", "c", "d", NAN],
        }
    )
    table = read_table(frame)
    assert column(table, "val_loss") == [None, None, 3.0, None, None, 4.0]
    assert column(table, "grad_norm") == [1.0, 2.0, 3.0, "<NaN>", "<NaN>", "<NaN>"]
    assert column(table, "loss") == [2.0, 1.5, None, 1.0, "<NaN>", None]
    assert column(table, "n") == [1.0, None, 3.0, 4.0, 5.0, 6.0]
    assert column(table, "word") == ["a", None, "b", "c", "d", None]
    (note,) = table.notes
    assert "4 taken as logged, 6 as missing" in note.text
    whole = read_table(frame.dropna(axis=1))
    assert not whole.notes


class Stream:
    """A table of another library: all that it shows is the PyCapsule interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_what_gives_itself_as_an_arrow_stream_is_a_table() -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())
    )
    batches = [pa.record_batch({"step": [i, i + 1], "loss": [1.0, NAN]}) for i in (0, 2)]
    several = read_table(Stream(pa.Table.from_batches(batches)))
    assert column(several, "loss") == [1.0, "<NaN>", 1.0, "<NaN>"]
    table = read_table(Stream(pa.table({"step": [0, 1, 2], "loss": [1.5, None, NAN], "w": words})))
    assert column(table, "loss") == [1.5, None, "<NaN>"]
    assert column(table, "w") == ["a", "b", "a"]
    run = stabdiag.analyze(Stream(pq.read_table(SAMPLE)))
    assert run.verdict == stabdiag.analyze(str(SAMPLE)).verdict


def test_a_stream_of_no_table_is_said() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise ValueError("a series\nof numbers")

    with pytest.raises(InputError, match="a Broken that is no table: a series of numbers"):
        read_table(Broken())


def test_frame_with_a_named_index_and_levels() -> None:
    frame = pd.DataFrame({("train", "loss"): [1.0, 2.0], ("val", "loss"): [3.0, 4.0]})
    frame.index = pd.Index([10, 20], name="step")
    table = read_table(frame)
    assert cells(table, "train/loss") == [1.0, 2.0]
    assert any(cells(table, name) == [10.0, 20.0] for name in table.names if "step" in name)


def test_frame_of_mixed_objects() -> None:
    frame = pd.DataFrame({"a": [1, "nan", None, 2.5], "ids": [[1, 2], [3], None, []]})
    table = read_table(frame)
    assert column(table, "a") == [1.0, "<NaN>", None, 2.5]
    assert column(table, "ids") == [(1.0, 2.0), (3.0,), None, ()]


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match="a dict is no table"):
        read_table({"loss": [1, 2]})
