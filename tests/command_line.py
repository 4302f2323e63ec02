"""A command line in an empty folder with a cache of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stabdiag.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind; `remarks` are the lines on standard error."""

    code: int
    out: str
    err: str

    @property
    def remarks(self) -> list[str]:
        return self.err.splitlines()


Command = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; the nearest configuration is no higher than it."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".git").mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("STABDIAG_LOG", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return work


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run one command line as the installed script does, within this process."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
