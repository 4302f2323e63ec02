"""`stabdiag demo`: the samples in a folder, one analysed, and nothing of the user's overwritten."""

from __future__ import annotations

import shlex
import tomllib
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest

from stabdiag import samples
from stabdiag.samples import LOGS, sample_files
from tests.command_line import Command

ROOT = Path(__file__).resolve().parents[2]


def test_the_samples_are_written_and_one_is_analysed(command: Command, folder: Path) -> None:
    done = command("demo", "here")
    assert done.code == 0
    written = {p.relative_to("here").as_posix() for p in Path("here").rglob("*") if p.is_file()}
    assert written == set(sample_files())
    for name, source in sample_files().items():
        assert Path("here", name).read_bytes() == source.read_bytes()
    assert done.out == command("analyze", "here/nan_in_one_layer.csv").out


def test_what_it_names_next_works(command: Command, folder: Path) -> None:
    remarks = command("demo").remarks
    named = [line.partition("#")[0] for line in remarks if line.startswith("  stabdiag ")]
    assert len(named) > 3
    for line in named:
        assert command(*shlex.split(line)[1:]).code == 0


def test_a_second_demo_changes_nothing(command: Command, folder: Path) -> None:
    command("demo")
    before = {p: p.stat().st_mtime_ns for p in Path("stabdiag-demo").rglob("*")}
    assert command("demo", "--quiet").err == ""
    assert {p: p.stat().st_mtime_ns for p in Path("stabdiag-demo").rglob("*")} == before


def test_what_is_not_its_own_is_left_alone(command: Command, folder: Path) -> None:
    Path("mine").mkdir()
    Path("mine/healthy.csv").write_text("mine", encoding="utf-8")
    done = command("demo", "mine")
    assert (done.code, done.out) == (2, "")
    assert "mine/healthy.csv" in done.remarks[0]
    assert [p.name for p in Path("mine").iterdir()] == ["healthy.csv"]
    Path("taken").write_text("a file", encoding="utf-8")
    assert command("demo", "taken").code == 2


def test_the_wheel_holds_what_a_checkout_has() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = settings["tool"]["setuptools"]["data-files"]
    assert sorted(p.removeprefix("sample_logs/") for some in installed.values() for p in some) == (
        sorted(LOGS)
    )


def test_installed_samples_are_found_by_the_list_of_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Listed(PurePosixPath):
        def locate(self) -> Path:
            return tmp_path / self.name

    share = "../../../share/stabdiag/sample_logs"
    files = [Listed(f"{share}/healthy.csv"), Listed(f"{share}/bad_batch_data/batches.parquet")]
    monkeypatch.setattr(samples, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda name: [Listed("stabdiag/model.py"), *files])
    assert sample_files() == {
        "healthy.csv": tmp_path / "healthy.csv",
        "bad_batch_data/batches.parquet": tmp_path / "batches.parquet",
    }


def test_samples_that_were_not_installed_are_said(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(samples, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda name: [])
    done = command("demo")
    assert (done.code, len(done.remarks)) == (2, 2)
    assert not Path("stabdiag-demo").exists()
