"""Several files of one run: folders of one-metric files, and shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabdiag.errors import InputError
from stabdiag.readers import read_log
from tests.readers.tables import column, said


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def export(*points: tuple[float, int, str]) -> str:
    return "Wall time,Step,Value\n" + "".join(f"{w},{s},{v}\n" for w, s, v in points)


def test_scalar_exports_of_tensorboard(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "run-a-tag-loss.csv": export((10, 0, "2.5"), (11, 10, "nan"), (12, 20, "2")),
            "run-a-tag-grad_norm.csv": export((10.5, 0, "1"), (12.5, 20, "inf"), (13, 30, "3")),
            "run-a-tag-val.json": "[[11, 10, 7.5], [12.5, 20, 7]]",
            "notes.txt": "nothing\n",
        },
    )
    table = read_log([tmp_path])
    assert table.names == ("step", "Wall time", "grad_norm", "loss", "val")
    assert column(table, "step") == [0.0, 10.0, 20.0, 30.0]
    assert column(table, "Wall time") == [10.0, 11.0, 12.0, 13.0]
    assert column(table, "loss") == [2.5, "<NaN>", 2.0, None]
    assert column(table, "grad_norm") == [1.0, None, float("inf"), 3.0]
    assert column(table, "val") == [None, 7.5, 7.0, None]
    assert table.detection == "folder: 3 files of one metric each, joined on step"


def test_metric_files_of_mlflow(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "metrics/train/loss": "1000 2.5 0\n2000 nan 1\n3000 2.0 2\n",
            "metrics/train/grad_norm": "1000 1 0\n2500 3 1\n",
            "metrics/lr": "1500 0.1 0\n2500 0.2 1\n",
            "params/lr": "0.1",
            "meta.yaml": "artifact_uri: x\nstart_time: 5\n",
        },
    )
    table = read_log([tmp_path])
    assert table.names == ("step", "Wall time", "lr", "train/grad_norm", "train/loss")
    assert column(table, "train/loss") == [2.5, "<NaN>", 2.0]
    assert column(table, "Wall time") == [1.0, 2.0, 3.0]


def test_plots_of_dvclive(tmp_path: Path) -> None:
    put(
        tmp_path / "dvclive",
        {
            "plots/metrics/train/loss.tsv": "step\tloss\n0\t2.5\n1\t2.25\n",
            "plots/metrics/val/loss.tsv": "step\tloss\n1\t3.5\n",
            "report.md": "# Report\n",
        },
    )
    table = read_log([tmp_path / "dvclive"])
    assert table.names == ("step", "train/loss", "val/loss")
    assert column(table, "val/loss") == [None, 3.5]


def test_restart_in_a_folder_keeps_its_rows(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "loss.tsv": "step\tloss\n0\t4\n1\t3\n2\t2\n1\t3.5\n2\t2.5\n3\t1\n",
            "lr.tsv": "step\tlr\n0\t.1\n2\t.3\n1\t.2\n3\t.4\n",
        },
    )
    table = read_log([tmp_path])
    assert column(table, "step") == [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]
    assert column(table, "loss") == [4.0, 3.0, 2.0, 3.5, 2.5, 1.0]
    assert column(table, "lr") == [0.1, None, 0.3, 0.2, None, 0.4]


def test_values_at_one_step_keep_their_order(tmp_path: Path) -> None:
    put(
        tmp_path, {"loss.tsv": "step\tloss\n0\t4\n0\t3\n1\t2\n", "lr.tsv": "step\tlr\n0\t7\n1\t8\n"}
    )
    table = read_log([tmp_path])
    assert column(table, "loss") == [4.0, 3.0, 2.0]
    assert column(table, "lr") == [7.0, None, 8.0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "a folder without a log"),
        ({"model.bin": "x"}, "a folder without a log"),
        ({"a/metrics.csv": "step,a,b\n0,1,2\n", "b.jsonl": "{}"}, "in it: a/metrics.csv, b.jsonl"),
        (
            {"metrics.csv": "step,a,b\n0,1,2\n", "lr.tsv": "step\tlr\n0\t1\n1\t2\n"},
            "in it: lr.tsv, metrics.csv",
        ),
        ({".hidden/metrics.csv": "step,a,b\n0,1,2\n"}, "a folder without a log"),
    ],
)
def test_other_folders_are_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_log([put(tmp_path, files)])


def test_shards_are_joined_in_the_given_order(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "b.csv": "step,loss,note\n0,2,x\n1,nan,\n",
            "a.jsonl": '{"step": 2, "loss": 1, "lr": 0.5}\nbroken\n{"step": 3, "loss": null}\n',
        },
    )
    table = read_log([tmp_path / "b.csv", tmp_path / "a.jsonl"])
    assert table.names == ("step", "loss", "note", "lr")
    assert table.format == "csv+jsonl"
    assert table.rows == 4
    assert column(table, "step") == [0.0, 1.0, 2.0, 3.0]
    assert column(table, "loss") == [2.0, "<NaN>", 1.0, None]
    assert column(table, "note") == ["x", None, None, None]
    assert column(table, "lr") == [None, None, 0.5, None]
    assert table.line.tolist() == [2, 3, 1, 3]
    assert "a.jsonl: a line that is no JSON object x1 at [2]" in said(table)


def test_shards_that_disagree_about_a_column(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.csv": "step,loss,tag,ids\n0,2,7,3\n1,3,8,4\n",
            "b.csv": "step,loss,tag,ids\n2,big,x,1 2\n3,,y,2 3\n4,,z,3 4\n",
            "c.csv": "step,loss,tag,ids\n5,,,\n",
        },
    )
    table = read_log([tmp_path / name for name in ("a.csv", "b.csv", "c.csv")])
    assert column(table, "loss") == [2.0, 3.0, None, None, None, None]
    assert column(table, "tag") == ["7", "8", "x", "y", "z", None]
    assert column(table, "ids") == [None, None, (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), None]
    assert "column 'loss' holds other than numbers in some files: not logged there x1" in said(
        table
    )


def test_row_kinds_of_shards(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.json": '{"log_history": [{"loss": 1, "step": 1}, {"eval_loss": 2, "step": 1}]}',
            "b.jsonl": '{"step": 2, "loss": 3}\n{"step": 3, "loss": 3}\n',
        },
    )
    table = read_log([tmp_path / "a.json", tmp_path / "b.jsonl"])
    assert table.row_kind == ("train", "eval", "", "")
