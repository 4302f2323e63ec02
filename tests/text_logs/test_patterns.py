"""Every format reads its own example lines, and no other format claims them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from stabdiag.model import LogTable
from stabdiag.readers.text_log import looks_like_text_log, read_text
from stabdiag.readers.text_patterns import GENERIC, PATTERNS
from stabdiag.readers.text_patterns.collect import collect
from stabdiag.readers.text_patterns.record import Example, Pattern

CASES = [
    pytest.param(pattern, example, id=f"{pattern.name}-{number}")
    for pattern in (*PATTERNS, GENERIC)
    for number, example in enumerate(pattern.examples)
]


def cells(table: LogTable, row: int) -> dict[str, float | None]:
    """The fields of one row; None where missing."""
    columns = table.load(table.names)
    return {
        name: float(column.value[row]) if column.logged[row] else None
        for name, column in columns.items()
    }


def same(seen: float | None, wanted: float | None) -> bool:
    if seen is None or wanted is None:
        return seen is wanted
    return seen == wanted or (math.isnan(seen) and math.isnan(wanted))


@pytest.mark.parametrize(("pattern", "example"), CASES)
def test_example_lines_give_their_rows(pattern: Pattern, example: Example) -> None:
    table = read_text(Path("train.log"), example.lines + "\n")
    assert table.format == pattern.name
    assert table.row_kind is not None
    assert table.rows == len(example.rows)
    for row, (kind, step, fields) in enumerate(example.rows):
        seen = cells(table, row)
        assert table.row_kind[row] == kind
        assert seen[pattern.step_name] == step
        for name, wanted in fields.items():
            assert same(seen.get(name), wanted), (name, seen.get(name), wanted)


@pytest.mark.parametrize(("pattern", "example"), CASES)
def test_example_lines_belong_to_one_format(pattern: Pattern, example: Example) -> None:
    for other in PATTERNS:
        if other is not pattern:
            (found,) = collect(example.lines, (other,)).found
            assert len(found.rows) == 0, other.name


@pytest.mark.parametrize(("pattern", "example"), CASES)
def test_example_lines_are_detected(pattern: Pattern, example: Example) -> None:
    assert looks_like_text_log(example.lines)


def test_names_are_unique() -> None:
    names = [pattern.name for pattern in PATTERNS]
    assert len(set(names)) == len(names)
