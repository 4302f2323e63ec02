"""Lines are broken between words, long names at their joints, and nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stabdiag.reporters.wrapping import GLUE, breaks


def lines(text: str, width: int) -> list[str]:
    cuts = [0, *breaks(text, width), len(text)]
    return [text[left:right].rstrip() for left, right in pairwise(cuts)]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("", 10, [""]),
        ("short", 10, ["short"]),
        ("two words here", 9, ["two words", "here"]),
        ("two  words", 20, ["two  words"]),
        ("  indented text here", 12, ["  indented", "text here"]),
        ("a layers.3.attn.out_proj.weight b", 18, ["a", "layers.3.attn.out_", "proj.weight b"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        (f"run `a{GLUE}b{GLUE}c` now", 10, ["run", f"`a{GLUE}b{GLUE}c`", "now"]),
        (f"`stabdiag{GLUE}layers`", 12, [f"`stabdiag{GLUE}", "layers`"]),
        (f"`a{GLUE}/long/path/to.json`", 16, [f"`a{GLUE}", "/long/path/to.", "json`"]),
        ("字" * 7, 6, ["字" * 3, "字" * 3, "字"]),
    ],
)
def test_breaks(text: str, width: int, expected: list[str]) -> None:
    assert lines(text, width) == expected


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])), st.integers(2, 40))
def test_nothing_is_lost_and_every_line_fits(text: str, width: int) -> None:
    made = lines(text, width)
    assert "".join("".join(made).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in made)


@given(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1), st.integers(8, 40))
def test_a_word_that_fits_is_not_broken(words: list[str], width: int) -> None:
    made = " ".join(lines(" ".join(words), width))
    assert made.split() == words
