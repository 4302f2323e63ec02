"""Logs larger than a block, a budget or a part: nothing may depend on where they are divided."""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag.model import LogTable
from stabdiag.readers import read_log, source, spill
from tests.readers.tables import column, said


def small_blocks(patch: pytest.MonkeyPatch, size: int) -> None:
    for module in ("csv_log", "jsonl_log"):
        patch.setattr(f"stabdiag.readers.{module}.blocks", partial(source.blocks, size=size))
    patch.setattr("stabdiag.readers.compression.CHUNK_BYTES", max(1, size // 2))


def seen(table: LogTable) -> tuple[object, ...]:
    columns = {name: column(table, name) for name in table.names}
    return table.names, dict(table.kinds), table.line.tolist(), columns, said(table)


CSV_LINES = st.lists(
    st.sampled_from(
        [
            "1,2.5,x",
            "2,nan,",
            "3,,y",
            "4,inf,2024-01-01",
            "5,1.5",
            "# comment",
            "",
            "step,loss,word",
            "6,banana,z",
            '7,"1,000","two\nlines"',
            "8,1,2,3",
            "9,0.5,12",
            "step,loss,other",
            "a\0b,1,2",
        ]
    ),
    min_size=3,
    max_size=30,
)
JSON_LINES = st.lists(
    st.sampled_from(
        [
            '{"step": 1, "loss": 2.5}',
            '{"step": 2, "loss": NaN, "word": "x"}',
            '{"step": 3, "loss": "NaN", "word": "7"}',
            '{"loss": null, "in": {"a": 1}}',
            '{"in": null, "ids": [1, 2]}',
            '{"step": 4, "ids": ["a"], "word": 5}',
            '{"when": "2024-01-01"}',
            '{"when": 7}',
            "{}",
            "",
            "broken",
            '{"h": {"_type": "histogram", "bins": [1]}}',
        ]
    ),
    min_size=3,
    max_size=30,
)


@given(lines=CSV_LINES, size=st.integers(8, 80))
@settings(max_examples=60, deadline=None)
def test_tables_of_text_do_not_depend_on_blocks(lines: list[str], size: int) -> None:
    text = "step,loss,word\n0,3.5,w\n0,3.5,w\n0,3.5,w\n0,3.5,w\n" + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(text)
        whole = seen(read_log([path]))
        with pytest.MonkeyPatch.context() as patch:
            small_blocks(patch, size)
            assert seen(read_log([path]))[:4] == whole[:4]


@given(lines=JSON_LINES, size=st.integers(8, 80))
@settings(max_examples=60, deadline=None)
def test_json_lines_do_not_depend_on_blocks(lines: list[str], size: int) -> None:
    text = '{"step": 0}\n' * 12 + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text(text)
        whole = seen(read_log([path]))
        with pytest.MonkeyPatch.context() as patch:
            small_blocks(patch, size)
            assert seen(read_log([path])) == whole


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_numbers_beyond_the_budget_lie_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    draw = random.Random(0)
    words = ["", "nan", "inf", "-inf", "1.5", "2"]
    rows = [[i, draw.choice(words), draw.choice(words)] for i in range(500)]
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_text("step,a,b\n" + "".join(f"{i},{a},{b}\n" for i, a, b in rows))
    else:
        tokens = {"": "null", "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        path.write_text(
            "".join(
                f'{{"step": {i}, "a": {tokens.get(a, a)}, "b": {tokens.get(b, b)}}}\n'
                for i, a, b in rows
            )
        )
    whole = seen(read_log([path]))
    small_blocks(monkeypatch, 600)
    monkeypatch.setattr(spill.Spill.__init__, "__defaults__", (3000,))
    assert seen(read_log([path])) == whole


def test_long_log_with_odd_lines_far_apart(tmp_path: Path) -> None:
    """Blocks of 16 MiB, some clean, some not; one stray word, one broken row."""
    rows = [f"{i},{i / 7:.9f},{i % 13},0.123456789,{i}" for i in range(700_000)]
    rows[10] = "10,banana,10,0.123456789,10"
    rows[600_000] = "600000,nan,1,0.5,2,3"
    rows[650_000] = "# resumed"
    path = tmp_path / "a.csv"
    path.write_text("step,loss,a,b,c\n" + "\n".join(rows) + "\n")
    table = read_log([path])
    assert table.rows == 699_998
    loaded = table.load(["step", "loss"])
    assert loaded["loss"].logged.sum() == 699_997
    assert table.line[-1] == 700_001
    assert (loaded["step"].value[20:599_999] == table.line[20:599_999] - 2).all()
    assert "'banana' is no number and counts as not logged x1 at [12]" in said(table)
    assert "dropped: a row with more cells than the header x1 at [600002]" in said(table)
