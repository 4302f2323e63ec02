"""The format is known by content, the choice is said, and what can't be a log is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stabdiag.errors import InputError
from stabdiag.readers.detect import detect
from stabdiag.readers.registry import READERS
from stabdiag.readers.source import open_source


def detected(folder: Path, text: str, name: str = "log") -> tuple[str, str]:
    path = folder / name
    path.write_text(text)
    reader, reason = detect(open_source(path))
    return reader.name, reason


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("step,loss\n0,1\n1,2\n", "csv"),
        ("0 10.9\n1 10.8\n2 10.7\n", "csv"),
        ('{"a": 1}\n{"a": 2}\n', "json lines"),
        ('banner\n{"a": 1}\n{"a": 2}\n', "json lines"),
        ('{"a": 1}', "json lines"),
        ('{"log_history": [{"loss": 1}]}', "json"),
        ('{\n  "a": [1, 2],\n  "b": [3, 4]\n}\n', "json"),
        ('[{"a": 1}]', "json"),
        ("[[1, 2, 3.5]]", "json"),
        ("{'loss': 1.5, 'epoch': 0.1}\n{'loss': 1.25, 'epoch': 0.2}\n", "text"),
        ("iter 0: loss 10.9, time 5.00ms, mfu 1.00%\n" * 3, "text"),
        ("0 train 10.9\n0 val 10.8\n1 train 10.7\n", "text"),
        ("[2024-01-01 10:00:00] step 1 loss 2\n", "text"),
        ("[0]: iteration 5, loss 2.0\n", "text"),
        ("[1, 2] are my numbers\n", "text"),
        ('{"lr": 0.1}\nepoch 1 loss 2\nepoch 2 loss 1\nepoch 3 loss 1\n', "text"),
        ("step: 1, loss: 2.0\nstep: 2, loss: 3.0\n", "text"),
        ("| loss | 2.5 |\n| step | 10 |\n", "text"),
        ("Loading data, please wait\nepoch 1, loss 2.0\nepoch 2, loss 1.0\n", "text"),
    ],
)
def test_known_by_content(tmp_path: Path, text: str, name: str) -> None:
    found, reason = detected(tmp_path, text)
    assert found == name
    assert reason


def test_suffix_counts_only_where_content_says_nothing(tmp_path: Path) -> None:
    words = "name,colour\nanna,red\n"
    assert detected(tmp_path, words, "a.csv") == ("csv", "its suffix")
    assert detected(tmp_path, words, "a.log")[0] == "text"
    console = "iter 0: loss 10.9, time 5.00ms, mfu 1.00%\n" * 3
    assert detected(tmp_path, console, "a.csv")[0] == "text"


def test_every_format_is_one_line_of_the_registry() -> None:
    assert [reader.name for reader in READERS] == [
        "parquet",
        "arrow",
        "tensorboard events",
        "json lines",
        "json",
        "csv",
        "text",
    ]


def zip_bytes(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "z", "w") as archive:
        archive.writestr("a", "b")
    return (folder / "z").read_bytes()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("wandb", "a W&B transaction log"),
        ("zip", "a zip archive"),
        ("pickle", "a Python pickle"),
        ("nul", "nothing but NUL bytes"),
        ("noise", "binary data of an unknown kind"),
    ],
)
def test_what_is_no_log_is_refused_by_name(tmp_path: Path, kind: str, words: str) -> None:
    data = {
        "wandb": b":W&B\xbe\xe1\0" * 9,
        "zip": zip_bytes(tmp_path),
        "pickle": pickle.dumps({"loss": [1.0]}),
        "nul": b"\0" * 5000,
        "noise": bytes(range(256)) * 20,
    }[kind]
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(InputError, match=words) as caught:
        detect(open_source(tmp_path / "log"))
    assert caught.value.todo


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "step,loss,word,ids\n0,1,x,1 2\n1,banana,y,3 4\n2,3,7,\n3,1,,\n# end\n"),
        ("a.jsonl", '{"a": 1, "w": "x", "i": [1, "y"]}\n{}\n{"a": NaN}\nbroken\n{"a": null}\n'),
        ("a.json", '[{"a": 1, "w": "x"}, {"a": null}]'),
    ],
)
def test_what_a_log_does_not_need_is_not_loaded(tmp_path: Path, name: str, text: str) -> None:
    """To import pandas takes longer than to read most logs; pyarrow does so in many calls."""
    (tmp_path / name).write_text(text)
    code = (
        "import sys; from stabdiag.readers import read_log\n"
        f"table = read_log(['{name}']); table.load(table.names)\n"
        "print(sorted({'pandas', 'pyarrow.parquet'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
