"""Shares, their intervals, and the fit of probabilities, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.accuracy.shares import Share, brier, calibration_error, share


def test_wilson_interval_of_a_published_example() -> None:
    # Newcombe (1998), table I, method 3: 81 of 263.
    low, high = Share(81, 263).interval
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_no_runs_give_no_share() -> None:
    nothing = share([])
    assert math.isnan(nothing.value)
    assert nothing.interval == (0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share(counts: tuple[int, int]) -> None:
    hits = Share(*counts)
    low, high = hits.interval
    assert 0.0 <= low <= hits.value + 1e-12
    assert hits.value - 1e-12 <= high <= 1.0


def test_calibration_error_by_hand() -> None:
    # Bin .9-1: said .9 and 1.0, one right: |1 - 1.9|; bin .2: said .2 twice, one right: |1 - .4|.
    error = calibration_error([0.9, 1.0, 0.2, 0.2], [True, False, True, False])
    assert error == pytest.approx((0.9 + 0.6) / 4)


def test_a_constant_probability_equal_to_the_hit_rate_is_calibrated() -> None:
    assert calibration_error([0.25] * 8, [True, True] + [False] * 6) == pytest.approx(0.0)


def test_brier_by_hand() -> None:
    assert brier([0.8, 0.4], [True, False]) == pytest.approx((0.04 + 0.16) / 2)


def test_no_answers_have_no_calibration() -> None:
    assert math.isnan(calibration_error([], []))
    assert math.isnan(brier([], []))
