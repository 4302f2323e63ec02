"""What must hold for every table and for any bytes at all."""

from __future__ import annotations

import gzip
import json
import math
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stabdiag.errors import StabdiagError
from stabdiag.model import LogTable
from stabdiag.readers import read_log
from tests.readers.tables import Cell, cells, column, spelled

NUMBERS = st.one_of(
    st.none(),
    st.floats(width=64),
    st.integers(-(2**70), 2**70).map(float),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308]),
)
WORDS = st.one_of(st.none(), st.text("abcxyzäß,;'\"\\ #[{}]", max_size=8).map(lambda s: f"w{s}w"))
NAMES = st.text("abLoss/_. -0", min_size=1, max_size=12).map(lambda s: f"m{s}m")


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Cell]]:
    """Draw a table: a full column of steps, columns of numbers, columns of words."""
    rows = draw(st.integers(1, 12))
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    table: dict[str, list[Cell]] = {"step": [float(i) for i in range(rows)]}
    for name in names:
        kind = draw(st.sampled_from([NUMBERS, NUMBERS, WORDS]))
        table[name] = draw(st.lists(kind, min_size=rows, max_size=rows))
    return table


def number_as(text: str, nan: str, inf: str) -> str:
    return {"nan": nan, "inf": inf, "-inf": f"-{inf}"}.get(text, text)


def delimited(table: dict[str, list[Cell]], delimiter: str, before: str = "") -> bytes:
    def cell(value: Cell) -> str:
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return "" if value is None else number_as(repr(value), "nan", "inf")

    lines = [delimiter.join(f'"{name}"' for name in table)]
    lines += [delimiter.join(map(cell, row)) for row in zip(*table.values(), strict=True)]
    return (before + "\n".join(lines) + "\n").encode()


def records(table: dict[str, list[Cell]]) -> list[dict[str, Cell]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def json_lines(table: dict[str, list[Cell]], absent: bool) -> bytes:
    rows = records(table)
    if absent:
        rows = [{k: v for k, v in row.items() if v is not None} for row in rows]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def arrow_table(table: dict[str, list[Cell]]) -> pa.Table:
    def array(values: list[Cell]) -> pa.Array:
        text = any(isinstance(v, str) for v in values)
        return pa.array(values, pa.string() if text else pa.float64())

    return pa.table({name: array(values) for name, values in table.items()})


def check(path: Path, table: dict[str, list[Cell]], all_names: bool = True) -> None:
    read = read_log([path])
    if all_names:
        assert sorted(read.names) == sorted(table)
    for name, values in table.items():
        if name in read.names:
            assert column(read, name) == spelled(values), name
        else:
            assert all(v is None for v in values)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_one_table_reads_the_same_from_every_format(table: dict[str, list[Cell]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        for delimiter in (",", "\t", ";"):
            path.write_bytes(delimited(table, delimiter))
            check(path, table)
        path.write_bytes(gzip.compress(delimited(table, ",")))
        check(path, table)
        path.write_bytes(json_lines(table, absent=False))
        check(path, table)
        path.write_bytes(json_lines(table, absent=True))
        check(path, table, all_names=False)
        path.write_bytes(json.dumps(records(table), indent=1).encode())
        check(path, table)
        path.write_bytes(json.dumps(table).encode())
        check(path, table)
        pq.write_table(arrow_table(table), path)
        check(path, table)
        feather.write_feather(arrow_table(table), path)
        check(path, table)


def same(one: LogTable, other: LogTable, *, ordered: bool = True) -> bool:
    names = (one.names, other.names) if ordered else (set(one.names), set(other.names))
    return names[0] == names[1] and all(
        column(one, name) == column(other, name) for name in one.names
    )


ODD_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                '{"a": NaN, "b": "NaN"}',
                '{"a": {"b": 1, "c": null}, "d": [1, 2]}',
                '{"a": 1, "a": 2}',
                '{"a": true, "b": 2.5, "c": "x"}',
                '{"a": "2024-01-01", "b": -Infinity}',
                '{"d": [], "e": [["x"]], "f": [null, 1.5]}',
                '{"a": 1e999, "b": 123456789012345678901234567890}',
                '{"a": 1} {"a": 2}',
                '{"a": Inf, "b": None}',
                '{"a": 1,}',
                '{"a": "\\ud800"}',
                "",
                "   ",
                "5",
            ]
        ),
        st.dictionaries(
            st.sampled_from(["a", "b", "a/b", "c", ""]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
                lambda inner: (
                    st.dictionaries(st.sampled_from("bcx"), inner, max_size=2)
                    | st.lists(inner, max_size=3)
                ),
                max_leaves=5,
            ),
            min_size=1,
            max_size=4,
        ).map(json.dumps),
    ),
    min_size=1,
    max_size=12,
)


@given(ODD_LINES)
@example(['{"a": [9223372036854775808]}'])
@example(['{"a": {}, "b": null}', '{"a": {"b": 1, "c": null}}'])
@example(['{"a": null, "a/b": null}', '{"a": {"c": null}}'])
@settings(max_examples=200, deadline=None)
def test_json_lines_read_the_same_fast_and_line_by_line(lines: list[str]) -> None:
    """An empty record in a block makes the reader look at each line of it.

    An empty object has no column of its own, so it is not said where later ones under it stand.
    """
    text = '{"step": 1}\n' * 20 + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        fast, careful = Path(folder) / "fast.jsonl", Path(folder) / "careful.jsonl"
        fast.write_text(text)
        careful.write_text(text + "{}\n")
        assert same(read_log([fast]), read_log([careful]), ordered="{}" not in text)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_tables_of_text_read_the_same_fast_and_row_by_row(table: dict[str, list[Cell]]) -> None:
    """A comment in a block makes the reader look at each row of it."""
    with tempfile.TemporaryDirectory() as folder:
        fast, careful = Path(folder) / "fast.csv", Path(folder) / "careful.csv"
        fast.write_bytes(delimited(table, ","))
        careful.write_bytes(delimited(table, ",") + b"# the end\n")
        assert same(read_log([fast]), read_log([careful]))


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"step": [0, 1, 2], "loss": [1.0, None, math.nan], "w": ["a", "b", None]})
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


SEEDS = [
    b"step,loss\n0,2.5\n1,nan\n2,inf\n",
    b'"Step","a - loss","b"\n"0","1",""\n"1","","2"\n',
    b'{"step": 0, "loss": 2.5}\n{"step": 1, "loss": NaN, "x": {"y": [1, "a"]}}\n',
    b'[{"step": 0, "loss": 2.5}, {"step": 1, "loss": NaN}]',
    b'{"log_history": [{"step": 1, "loss": 2.0}, {"step": 2, "eval_loss": NaN}], "max_steps": 2}',
    b"Wall time,Step,Value\r\n17.5,0,2.5\r\n18.5,10,NaN\r\n",
    b"step loss\n1 2\n2 3\n",
    b"iter 0: loss 10.9, time 5ms, mfu 1%\niter 1: loss nan, time 5ms, mfu 1%\n",
    parquet_bytes(),
    gzip.compress(b"step,loss\n0,2.5\n1,nan\n2,inf\n" * 9),
    "step,loss\n0,2.5\n1,nan\n".encode("utf-16"),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a small log with some bytes changed, cut out, repeated or put in."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["change", "cut", "repeat", "put"]))
        if kind == "cut":
            del data[at : at + length]
        elif kind == "repeat":
            data[at:at] = data[at : at + length] * draw(st.integers(1, 20))
        else:
            new = draw(st.binary(max_size=4) | st.sampled_from([b'"', b"{", b"\n", b"\0", b",,"]))
            data[at : at + (len(new) if kind == "change" else 0)] = new
    return bytes(data)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet", "txt", "gz"])
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode), damaged()))
@settings(
    max_examples=150,
    deadline=timedelta(seconds=5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_bytes_give_a_table_or_a_clear_error(suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{suffix}"
        path.write_bytes(data)
        try:
            table = read_log([path])
            loaded = table.load(table.names)
        except StabdiagError as err:
            refused = err
        else:
            refused = None
        if refused is not None:
            assert "\n" not in refused.what
            assert refused.todo
            return
        assert set(table.kinds) == set(table.names)
        assert len(table.line) == table.rows
        for name in table.names:
            assert len(loaded[name].value) == len(loaded[name].logged) == table.rows
            assert len(cells(table, name)) == table.rows
