"""Every page compared whole with its golden file; `make golden` writes them anew."""

from __future__ import annotations

import pytest

from tests.golden.pages import FOLDER, GOLDENS


@pytest.mark.parametrize("name", sorted(GOLDENS))
def test_page_is_as_reviewed(name: str, rewrite_golden: bool) -> None:
    path = FOLDER / name
    if rewrite_golden:
        path.write_text(GOLDENS[name](), encoding="utf-8")
    assert GOLDENS[name]() == path.read_text(encoding="utf-8"), "`make golden`, and read the diff"


def test_no_golden_is_left_over() -> None:
    kept = {path.name for path in FOLDER.iterdir() if path.suffix not in {".py", ""}}
    assert kept == set(GOLDENS)
