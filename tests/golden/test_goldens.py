"""Every page compared whole with its golden file; `make golden` writes them anew."""

from __future__ import annotations

import pytest

from tests.golden.pages import FOLDER, GOLDENS
from tests.golden.picture import ROOT, picture, shown, without_spaces, words_of

PICTURE = FOLDER / "analyze.svg"


@pytest.mark.parametrize("name", sorted(GOLDENS))
def test_page_is_as_reviewed(name: str, rewrite_golden: bool) -> None:
    path = FOLDER / name
    if rewrite_golden:
        path.write_text(GOLDENS[name](), encoding="utf-8")
    assert GOLDENS[name]() == path.read_text(encoding="utf-8"), "`make golden`, and read the diff"


def test_no_golden_is_left_over() -> None:
    kept = {path.name for path in FOLDER.iterdir() if path.suffix not in {".py", ""}}
    assert kept == {*GOLDENS, PICTURE.name}


def test_the_picture_of_the_readme_is_what_the_tool_shows(rewrite_golden: bool) -> None:
    if rewrite_golden:
        PICTURE.write_text(picture(), encoding="utf-8")
    drawn = PICTURE.read_text(encoding="utf-8")
    # The words, not the bytes: how rich draws them may change from release to release.
    assert words_of(drawn) == without_spaces(shown(color=False))
    assert words_of(picture()) == words_of(drawn)
    assert len(drawn) < 150_000
    assert "url(" not in drawn.replace("url(#", "")
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text("utf-8")
