"""Charts in characters: extremes are seen, NaN is marked, gaps stay empty, lines fit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag.drawings import ChartSeries
from stabdiag.reporters.chart import HIGH as HEIGHT
from stabdiag.reporters.chart import MARGIN, Marks, charts


def events(**marks: int) -> Marks:
    return Marks("events", tuple(marks.items()))


def chart(step: list[int], value: list[float], width: int = 60, **marks: int) -> list[str]:
    series = ChartSeries("loss", tuple(step), tuple(value))
    return list(charts([series], [events(**marks)], width, ascii_only=False))


def test_one_high_point_among_thousands_reaches_the_top() -> None:
    value = [1.0] * 5000
    value[2500] = 40.0
    lines = chart(list(range(5000)), value)
    top = lines[1]
    assert top.strip().startswith("40 ")
    assert top.count("█") == 1
    plot = 60 - MARGIN - 1
    assert top.index("█") == MARGIN + 2500 * plot // 5000


def test_points_that_are_not_finite_are_marked_under_their_column() -> None:
    lines = chart([0, 1, 2, 3], [1.0, 2.0, math.nan, math.inf], 30)
    floor = lines[HEIGHT + 1]
    assert floor.count("x") == 2
    assert lines[-1].strip() == "x: NaN or Inf logged here"


def test_a_log_scale_only_where_all_is_positive() -> None:
    assert chart([0, 1], [1.0, 2.0])[0] == "loss (log scale)"
    assert chart([0, 1], [0.0, 2.0])[0] == "loss"
    assert chart([0, 1], [-3.0, 2.0])[0] == "loss"


def test_a_long_stretch_without_points_stays_empty() -> None:
    step = [*range(0, 20), *range(80, 100)]
    lines = chart(step, [1.0] * 20 + [2.0] * 20, 63)
    bottom = lines[HEIGHT]
    assert "   " * 5 in bottom[MARGIN:]


def test_coarse_points_are_held_until_the_next() -> None:
    lines = chart([0, 10, 20, 30], [1.0, 2.0, 3.0, 4.0], 60)
    bottom = lines[HEIGHT][MARGIN : MARGIN + 35]
    assert " " not in bottom


def test_marks_stand_under_their_columns_and_never_overlap() -> None:
    step = list(range(100))
    lines = charts(
        [ChartSeries("loss", tuple(step), tuple(map(float, step)))],
        [events(**{"1": 0, "2": 50, "3": 50, "10": 99})],
        113,
        ascii_only=True,
    )
    marks = next(line for line in lines if line.strip().startswith("events"))
    assert marks[MARGIN] == "1"
    assert marks[MARGIN + 50 : MARGIN + 52] in {"2+", "+ "}
    assert marks.endswith("10")


def test_nothing_to_draw_draws_nothing() -> None:
    assert charts([], [], 80, ascii_only=False) == ()
    empty = ChartSeries("loss", (), ())
    assert charts([empty], [events(**{"1": 3})], 80, ascii_only=False) == ()


def test_a_series_that_was_never_finite_says_so() -> None:
    lines = chart([0, 1], [math.nan, math.nan])
    assert lines[0] == "loss: no finite value"


@given(
    st.lists(st.floats(), min_size=1, max_size=60),
    st.integers(0, 10**12),
    st.integers(1, 10**6),
    st.integers(40, 120),
    st.booleans(),
)
@settings(deadline=None)
def test_any_series_fits(
    values: list[float], first: int, stride: int, width: int, ascii_only: bool
) -> None:
    step = tuple(first + stride * place for place in range(len(values)))
    series = ChartSeries("loss", step, tuple(values))
    at = tuple((str(place + 1), at) for place, at in enumerate(step[::7]))
    marks = [Marks("events", at), Marks("lr", at, spans=True)]
    for line in charts([series, series], marks, width, ascii_only):
        assert len(line) <= width
        assert not ascii_only or line.isascii()


@pytest.mark.parametrize("value", [0.0, 1.0, -5.0, 1e-300, 1.7e308])
def test_a_flat_series_is_drawn_in_the_middle(value: float) -> None:
    lines = chart([0, 1, 2], [value] * 3, 40)
    assert all("█" in line for line in lines[HEIGHT - HEIGHT // 2 + 1 : HEIGHT + 1])
    assert "█" not in lines[1]


def test_spans_are_cut_where_the_next_begins() -> None:
    step = tuple(range(100))
    marks = [Marks("lr", (("warmup", 0), ("decay", 3), ("constant", 50)), spans=True)]
    lines = charts([ChartSeries("loss", step, (1.0,) * 100)], marks, 113, ascii_only=True)
    drawn = next(line for line in lines if line.strip().startswith("lr"))
    assert drawn[MARGIN:] == "|wa|decay".ljust(50) + "|constant"
