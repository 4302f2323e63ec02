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
