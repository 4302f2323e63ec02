"""Each defect that a log of JSON Lines is known to have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stabdiag.errors import InputError
from stabdiag.readers import jsonl_fast
from stabdiag.readers.source import Block
from tests.readers.tables import column, read_text_as, said

ROWS = '{"step": 0, "loss": 2.5}\n{"step": 1, "loss": 2.25}\n{"step": 2, "loss": 2.0}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.jsonl", ROWS),
        ("crlf.jsonl", ROWS.replace("\n", "\r\n")),
        ("bom.jsonl", "\ufeff" + ROWS),
        ("no-newline-at-end.jsonl", ROWS[:-1]),
        ("blank-lines.jsonl", "\n" + ROWS.replace("\n", "\n\n\n")),
        ("indented.jsonl", ROWS.replace("{", "  {")),
        ("of-another-suffix.json", ROWS),
        ("text.txt", ROWS),
        ("quoted-numbers.jsonl", ROWS.replace("2.25", '"2.25"')),
        ("all-quoted.jsonl", ROWS.replace("2.5", '"2.5"').replace("2.25", '"2.25"')),
        ("twice.jsonl", ROWS.replace('"loss"', '"loss": 7, "loss"')),
        ("two-a-line.jsonl", ROWS.replace("}\n{", "}{", 1)),
    ],
)
def test_same_numbers_however_they_are_written(tmp_path: Path, name: str, text: str) -> None:
    table = read_text_as(tmp_path, name, text)
    assert table.format == "jsonl"
    assert table.names == ("step", "loss")
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert column(table, "loss") == [2.5, 2.25, 2.0]
    assert table.notes == ()


@pytest.mark.parametrize(
    ("token", "cell"),
    [
        ("NaN", "<NaN>"),
        ('"NaN"', "<NaN>"),
        ("nan", "<NaN>"),
        ("-NaN", "<NaN>"),
        ("Infinity", float("inf")),
        ('"Infinity"', float("inf")),
        ("inf", float("inf")),
        ("1e999", float("inf")),
        ("1" * 5000, float("inf")),
        ("-Infinity", float("-inf")),
        ('"-Infinity"', float("-inf")),
        ("-inf", float("-inf")),
        ("null", None),
        ("None", None),
        ('"None"', None),
        ("true", 1.0),
        ("False", 0.0),
        ("12345678901234567890", 12345678901234567890.0),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_tokens(tmp_path: Path, token: str, cell: object) -> None:
    text = ROWS + f'{{"step": 3, "loss": {token}}}\n' + '{"step": 4, "loss": 1.5}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "loss") == [2.5, 2.25, 2.0, cell, 1.5]
    assert table.notes == ()


def test_words_of_python_inside_strings_stay(tmp_path: Path) -> None:
    text = ROWS + '{"step": 3, "loss": nan, "note": "nan and \\"None\\" and inf"}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "loss")[3] == "<NaN>"
    assert column(table, "note") == [None, None, None, 'nan and "None" and inf']


def test_quoted_nan_among_numbers(tmp_path: Path) -> None:
    """As W&B writes it; the same words inside other text stay."""
    text = ROWS + '{"step": 3, "loss": "NaN", "lr": "-Infinity", "note": "x: \\"NaN\\""}\n' + ROWS
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "loss")[2:5] == [2.0, "<NaN>", 2.5]
    assert column(table, "lr")[3] == float("-inf")
    assert column(table, "note")[3] == 'x: "NaN"'


def test_nested_keys_are_joined(tmp_path: Path) -> None:
    text = '{"step": 1, "info": {"learner": {"loss": 2, "lr": null}, "n": 1}}\n{"step": 2}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert table.names == ("step", "info/learner/loss", "info/learner/lr", "info/n")
    assert column(table, "info/learner/loss") == [2.0, None]
    assert column(table, "info/learner/lr") == [None, None]


def test_null_where_others_have_an_object_is_no_column(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", '{"s": 1, "a": null}\n{"s": 2, "a": {"b": 3}}\n')
    assert table.names == ("s", "a/b")


def test_records_of_other_kinds(tmp_path: Path) -> None:
    text = ROWS + '{"epoch": 1, "val": 3}\n' + ROWS + '{"epoch": 2, "val": NaN}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert table.names == ("step", "loss", "epoch", "val")
    assert column(table, "val") == [None, None, None, 3.0, None, None, None, "<NaN>"]
    assert column(table, "loss") == [2.5, 2.25, 2.0, None, 2.5, 2.25, 2.0, None]


def test_rows_of_openmmlab_say_their_kind(tmp_path: Path) -> None:
    text = '{}\n{"mode": "train", "iter": 1}\n{"mode": "val", "iter": 64}\n'
    table = read_text_as(tmp_path, "a.log.json", text)
    assert table.row_kind == ("train", "val")
    assert table.line.tolist() == [2, 3]
    assert said(table) == "dropped: an empty record {} x1 at [1]"


def test_lists(tmp_path: Path) -> None:
    text = (
        '{"step": 1, "ids": [4, 5], "files": ["a", "b"], "both": [1, "x", null, true]}\n'
        '{"step": 2, "ids": [], "files": null, "both": [[1], {"a": 2}]}\n'
        '{"step": 3, "ids": [1.5, NaN]}\n'
    )
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert {table.kinds[name] for name in ("ids", "files", "both")} == {"list"}
    ids = table.load(["ids"])["ids"].lists
    assert ids is not None
    assert ids[:2] == ((4.0, 5.0), ())
    assert str(ids[2]) == "(1.5, nan)"
    assert column(table, "files") == [("a", "b"), None, None]
    assert column(table, "both") == [(1.0, "x", "", 1.0), ("[1]", '{"a": 2}'), None]


@pytest.mark.parametrize(("token", "cell"), [("1", 1.0), ("false", 0.0), ('"x"', "x")])
def test_null_in_a_list(tmp_path: Path, token: str, cell: object) -> None:
    text = ROWS * 9 + f'{{"step": 9, "ids": [null, {token}]}}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "ids")[-1] == ("", cell)


def test_histograms_and_media_are_left_out(tmp_path: Path) -> None:
    histogram = '{"_type": "histogram", "bins": [1, 2], "values": [3]}'
    text = ROWS + f'{{"step": 3, "loss": 1.5, "gradients/w": {histogram}}}\n' * 2
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert table.names == ("step", "loss")
    assert said(table) == (
        "dropped: objects with a `_type` (histograms, media) are no metrics x2 at [4, 5]"
    )


def test_cut_last_line(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", ROWS + '{"step": 3, "lo')
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert said(table) == "dropped: the last line, cut short x1 at [4]"


def test_broken_lines_in_the_middle(tmp_path: Path) -> None:
    text = ROWS + 'Traceback:\n{"step": 3, "loss"\n[1, 2]\n5\n' + ROWS
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert len(column(table, "step")) == 6
    assert table.line.tolist() == [1, 2, 3, 8, 9, 10]
    assert said(table) == "dropped: a line that is no JSON object x4 at [4, 5, 6, 7]"


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_deep_nesting_is_an_unreadable_line(tmp_path: Path, opening: str, closing: str) -> None:
    deep = '{"step": 9, "x": ' + opening * 100_000 + "1" + closing * 100_000 + "}\n"
    table = read_text_as(tmp_path, "a.jsonl", ROWS + deep + ROWS)
    assert len(column(table, "step")) == 6
    assert said(table) == "dropped: a line that is no JSON object x1 at [4]"


def test_nul_bytes_before_a_record(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", ROWS.replace('{"step": 1', '\0\0\0{"step": 1'))
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert said(table) == ("repaired: NUL bytes in a line: what they replaced is lost x1 at [2]")


def test_long_broken_line(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", ROWS + '{"a": ' + '\\"' * 1_500_000 + "\n" + ROWS)
    assert table.rows == 6


def test_words_in_a_column_of_numbers(tmp_path: Path) -> None:
    text = ROWS + '{"step": 3, "loss": "n.a."}\n'
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "loss") == [2.5, 2.25, 2.0, None]
    assert "'n.a.' is no number and counts as not logged x1 at [4]" in said(table)


def test_times_stay_as_written(tmp_path: Path) -> None:
    text = '{"t": "2024-01-02 03:04:05", "n": {"t": "2024-01-02"}, "l": ["2024-01-02"]}\n' * 2
    table = read_text_as(tmp_path, "a.jsonl", text)
    assert column(table, "t") == ["2024-01-02 03:04:05"] * 2
    assert column(table, "n/t") == ["2024-01-02"] * 2
    assert column(table, "l") == [("2024-01-02",)] * 2


def test_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", ROWS + '{"step": 3, "note": "\\ud800"}\n')
    assert column(table, "note")[3] == "?"


def test_unbounded_keys_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stabdiag.readers.jsonl_log._MOST_KEYS", 1000)
    text = "".join(f'{{"key{i}": {i}}}\n' for i in range(1200))
    with pytest.raises(InputError, match="more than 1000 different keys"):
        read_text_as(tmp_path, "a.jsonl", text)


def test_single_record(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.jsonl", '{"step": 1, "loss": 2, "ids": [1, 2]}')
    assert table.rows == 1
    assert column(table, "ids") == [(1.0, 2.0)]


def test_lines_longer_than_a_chunk_are_still_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_fast, "_CHUNK_BYTES", 100)
    records = [{f"layer{i}": i + step / 8 for i in range(200)} for step in range(5)]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    piece = jsonl_fast.fast_piece(Block(1, data), {})
    assert piece is not None
    assert piece.columns["layer199"].to_pylist() == [199 + step / 8 for step in range(5)]
