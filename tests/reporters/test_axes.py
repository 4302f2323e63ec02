"""Where things lie in a picture: round numbers on the axis, and what a restart wrote over apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stabdiag.drawings import ChartSeries
from stabdiag.reporters.html.axes import axis_of, marks, nice
from stabdiag.reporters.html.svg import said
from stabdiag.reporters.html.traces import traces

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=30))
@example([-1.0000000000000002e231, -1.1339390073045362e-93])
def test_every_value_is_on_the_axis(values: list[float]) -> None:
    axis = axis_of(values)
    assert axis is not None
    shares = [axis.share(value) for value in sorted(values)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    named = marks(axis)
    assert 1 <= len(named) <= 12
    assert all(axis.low <= value <= axis.high for value in named)


@given(finite, finite, st.integers(1, 10))
@example(0.0, 1.0000000000000002e308, 1)
def test_round_numbers_are_within_the_range(a: float, b: float, most: int) -> None:
    low, high = min(a, b), max(a, b)
    found = nice(low, high, most)
    assert len(found) <= most + 1
    assert all(low <= value <= high for value in found)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 320, [0, 50, 100, 150, 200, 250, 300]), (2.03, 5.57, [3, 4, 5]), (7, 7, [7])],
)
def test_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert nice(low, high, 8 if high > 100 else 5) == expected


def test_no_axis_without_a_finite_value() -> None:
    assert axis_of([math.nan, math.inf]) is None
    assert "never finite" in said(ChartSeries("loss", (0, 1), (math.nan, math.inf)))


def test_what_a_restart_wrote_over_is_drawn_apart() -> None:
    step = (0, 1, 2, 3, 2, 3, 4, 3, 4, 5)
    value = tuple(float(v) for v in range(10))
    current, passes = traces(ChartSeries("loss", step, value))
    assert current.step == (0, 1, 2, 3, 4, 5)
    assert current.value == (0, 1, 4, 7, 8, 9)
    assert [(one.step, one.value) for one in passes] == [((2, 3), (2, 3)), ((3, 4), (5, 6))]


@given(st.lists(st.tuples(st.integers(0, 50), finite), min_size=1, max_size=60))
def test_no_point_is_lost_between_the_two(points: list[tuple[int, float]]) -> None:
    one = ChartSeries("loss", tuple(s for s, _ in points), tuple(v for _, v in points))
    current, passes = traces(one)
    assert list(current.step) == sorted(set(current.step))
    both = [*zip(current.step, current.value, strict=True)]
    for before in passes:
        assert list(before.step) == sorted(set(before.step))
        both += zip(before.step, before.value, strict=True)
    assert sorted(both) == sorted(points)
