"""Which log is meant where none was named."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabdiag.cli.logs import last_analysed, logs_in, meant_logs, remember
from stabdiag.config import Config
from stabdiag.errors import UsageError


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("step,loss\n0,1\n", encoding="utf-8")
    return path


def meant(folder: Path, config: Config | None = None) -> tuple[tuple[Path, ...], list[str]]:
    said: list[str] = []
    return meant_logs(None, config or Config(), folder, said.append), said


def test_the_order_of_precedence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(folder / "lone.csv")
    assert meant(folder) == ((Path("lone.csv"),), ["log: lone.csv (the one log in this folder)"])
    touch(folder / "last/run.jsonl")
    remember([Path("last/run.jsonl")], folder)
    last = folder / "last/run.jsonl"
    logs, said = meant(folder)
    assert logs == (Path("last/run.jsonl"),)
    assert said == ["log: last/run.jsonl (last analysed from this folder)"]
    config = Config(source="stabdiag.toml", log=("c.csv",))
    assert meant(folder, config) == ((Path("c.csv"),), ["log: c.csv (from stabdiag.toml)"])
    monkeypatch.setenv("STABDIAG_LOG", "v.csv")
    assert meant(folder, config) == ((Path("v.csv"),), ["log: v.csv (from STABDIAG_LOG)"])
    said = []
    assert meant_logs([last], config, folder, said.append) == (last,)
    assert said == []


def test_none_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="there is none in this folder"):
        meant(folder)


def test_several_are_an_error_that_lists_them(folder: Path) -> None:
    for name in ("b.parquet", "a.jsonl", "c.csv.gz"):
        touch(folder / name)
    with pytest.raises(UsageError) as caught:
        meant(folder)
    assert "3 that could be meant" in caught.value.what
    assert "a.jsonl, b.parquet, c.csv.gz" in caught.value.todo


def test_very_many_are_not_all_listed(folder: Path) -> None:
    for place in range(30):
        touch(folder / f"{place:02}.csv")
    with pytest.raises(UsageError) as caught:
        meant(folder)
    assert caught.value.todo.endswith("09.csv and 20 more.")


def test_files_that_are_no_logs_are_passed_over(folder: Path) -> None:
    for name in (".hidden.csv", "requirements.txt", "README.txt", "package.json", "a.py", "b.pt"):
        touch(folder / name)
    (folder / "folder.csv").mkdir()
    assert logs_in(folder) == []


def test_a_log_that_is_gone_is_not_meant(folder: Path) -> None:
    log = touch(folder / "run.csv")
    remember([log], folder)
    assert last_analysed(folder) == (Path("run.csv"),)
    log.unlink()
    assert last_analysed(folder) == ()


def test_each_folder_has_its_own_memory(folder: Path, tmp_path: Path) -> None:
    remember([touch(folder / "run.csv")], folder)
    assert last_analysed(tmp_path) == ()


def test_a_log_elsewhere_is_kept_whole(folder: Path, tmp_path: Path) -> None:
    log = touch(tmp_path / "elsewhere/run.csv")
    remember([log], folder)
    assert last_analysed(folder) == (log,)


def test_standard_input_is_not_remembered(folder: Path) -> None:
    remember([Path("-")], folder)
    assert last_analysed(folder) == ()


def test_a_broken_memory_is_no_memory(folder: Path, tmp_path: Path) -> None:
    remember([touch(folder / "run.csv")], folder)
    kept = next((tmp_path / "cache").rglob("*.json"))
    for text in ("", "[]", "{}", '{"logs": 3}', '{"logs": [3]}'):
        kept.write_text(text, encoding="utf-8")
        assert last_analysed(folder) == ()


def test_a_cache_that_cannot_be_written_is_silent(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    remember([touch(folder / "run.csv")], folder)
    assert last_analysed(folder) == ()
