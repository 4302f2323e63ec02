"""JSON documents of all shapes that tools write, whole and cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stabdiag.errors import InputError
from tests.readers.tables import column, read_text_as, said

RECORDS = [{"step": 0, "loss": 2.5}, {"step": 1, "loss": float("nan")}, {"step": 2, "loss": 2.0}]
COLUMNS = {"step": [0, 1, 2], "loss": [2.5, float("nan"), 2.0]}


@pytest.mark.parametrize(
    "document",
    [
        RECORDS,
        COLUMNS,
        {"history": RECORDS},
        {"run": "a", "data": {"rows": RECORDS}},
        {"step": {"0": 0, "1": 1, "2": 2}, "loss": {"0": 2.5, "1": "NaN", "2": 2.0}},
        {"columns": ["step", "loss"], "index": [0, 1, 2], "data": [[0, 2.5], [1, "NaN"], [2, 2]]},
        {"schema": {"fields": []}, "data": RECORDS},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_shapes_of_documents(tmp_path: Path, document: object, indent: int | None) -> None:
    table = read_text_as(tmp_path, "a.json", json.dumps(document, indent=indent))
    assert table.names == ("step", "loss")
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert column(table, "loss") == [2.5, "<NaN>", 2.0]
    assert table.notes == ()


def test_objects_one_after_another_over_several_lines(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(record, indent=1) for record in RECORDS)
    table = read_text_as(tmp_path, "a.json", text)
    assert column(table, "loss") == [2.5, "<NaN>", 2.0]


def test_scalar_export(tmp_path: Path) -> None:
    text = json.dumps([[17.5, 0, 2.5], [18.5, 10, "NaN"], [19.5, 20, 2.0]])
    table = read_text_as(tmp_path, "run-a-tag-loss.json", text)
    assert table.format == "tensorboard"
    assert table.names == ("Wall time", "Step", "loss")
    assert column(table, "loss") == [2.5, "<NaN>", 2.0]


STATE = {
    "best_metric": None,
    "epoch": 2.0,
    "global_step": 20,
    "log_history": [
        {"epoch": 1.0, "grad_norm": 1.5, "learning_rate": 1e-4, "loss": 2.5, "step": 10},
        {"epoch": 1.0, "eval_loss": 2.75, "eval_runtime": 3.5, "step": 10},
        {"epoch": 2.0, "grad_norm": float("nan"), "learning_rate": 0.0, "loss": 0.0, "step": 20},
        {"epoch": 2.0, "train_loss": 1.25, "train_runtime": 9.5, "total_flos": 1e15, "step": 20},
    ],
    "logging_steps": 10,
    "max_steps": 20,
    "num_train_epochs": 2,
}


def test_trainer_state(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "trainer_state.json", json.dumps(STATE, indent=2))
    assert table.format == "trainer_state"
    assert table.row_kind == ("train", "eval", "train", "summary")
    assert column(table, "grad_norm") == [1.5, None, "<NaN>", None]
    assert table.facts["logging_steps"] == "10"
    assert table.facts["max_steps"] == "20"
    assert "best_metric" not in table.facts


@pytest.mark.parametrize("indent", [None, 2])
def test_cut_trainer_state_keeps_its_whole_records(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(STATE, indent=indent)
    table = read_text_as(tmp_path, "trainer_state.json", text[: text.index('"total_flos"')])
    assert table.format == "trainer_state"
    assert column(table, "loss") == [2.5, None, 0.0]
    assert table.row_kind == ("train", "eval", "train")
    assert "dropped: the document breaks off after its last whole record x1" in said(table)


def test_cut_list_keeps_its_whole_records(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.json", json.dumps(RECORDS)[:-5])
    assert column(table, "step") == [0.0, 1.0]
    assert "breaks off" in said(table)


def test_columns_of_other_lengths_are_left_out(tmp_path: Path) -> None:
    document = COLUMNS | {"val_loss": [3.0]}
    table = read_text_as(tmp_path, "a.json", json.dumps(document))
    assert table.names == ("step", "loss")
    assert "'val_loss' has 1 values where the others have 3: left out" in said(table)


def test_elements_that_are_no_records(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.json", json.dumps([{"s": 1}, {}, "x", {"s": 2}]))
    assert column(table, "s") == [1.0, 2.0]
    assert "an element that is no record x1 at [3]" in said(table)
    assert "an empty record {} x1 at [2]" in said(table)


def test_broken_json_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_text_as(tmp_path, "a.json", '{\n  "a": 1,\n  "b" 2\n}\n')
    assert "line 3, column 7" in caught.value.what


@pytest.mark.parametrize("text", ["[]", "[1, 2]", '["a"]', '{"a": ' * 100_000, "[" * 100_000])
def test_documents_without_records(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_text_as(tmp_path, "a.json", text)
