"""Which logs a place holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stabdiag.fleet.find import find


def test_a_folder_that_can_not_be_read_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "run.csv").write_text("step,loss\n0,1\n", encoding="utf-8")
    scandir = os.scandir

    def refused(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    logs = [Path(one.log).name for one in find([str(tmp_path)]) if one.sure]
    assert logs == ["run.csv", "closed"]


def log_in(folder: Path, name: str = "run.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("step,loss\n0,1\n", encoding="utf-8")
    return folder / name


def test_folders_behind_links_are_searched_once(tmp_path: Path) -> None:
    log_in(tmp_path / "elsewhere")
    log_in(tmp_path / "runs")
    (tmp_path / "runs" / "linked").symlink_to("../elsewhere")
    (tmp_path / "runs" / "linked again").symlink_to("../elsewhere")
    (tmp_path / "elsewhere" / "round").symlink_to("..")
    found = [str(Path(one.log).relative_to(tmp_path)) for one in find([str(tmp_path / "runs")])]
    assert found == ["runs/run.csv", "runs/linked/run.csv"]


def test_a_log_named_in_several_ways_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert [one.log for one in find(["a", "./a/run.csv", str(tmp_path / "a")])] == ["a/run.csv"]


def test_a_pipe_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    log_in(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "gone.csv").symlink_to("nowhere")
    assert [Path(one.log).name for one in find([str(tmp_path)])] == ["gone.csv", "run.csv"]
