"""Two series at their common steps: alignment, noise, the window where they part."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag.signals.pairs import common, equal_before, gap, lasting
from stabdiag.signals.shares import wilson


def test_only_steps_that_both_logged_are_compared() -> None:
    a, b = np.arange(0, 100, 2), np.arange(0, 100, 3)
    step, x, y = common(a, a * 1.0, b, b * 1.0)
    assert step.tolist() == list(range(0, 100, 6))
    assert np.array_equal(x, step)
    assert np.array_equal(y, step)


def test_cadences_that_never_meet_are_averaged_over_the_coarser() -> None:
    a, b = np.arange(0, 1000, 10), np.arange(5, 1000, 10)
    step, x, y = common(a, np.ones(a.size), b, np.full(b.size, 2.0))
    assert step.size == 100
    assert (x == 1.0).all()
    assert (y == 2.0).all()


def test_points_that_are_not_finite_are_left_out() -> None:
    step = np.arange(4)
    kept, x, _ = common(step, np.array([1.0, np.nan, 3.0, np.inf]), step, np.ones(4))
    assert kept.tolist() == [0, 2]
    assert x.tolist() == [1.0, 3.0]


@given(
    st.lists(st.integers(0, 200), unique=True, max_size=60),
    st.lists(st.integers(0, 200), unique=True, max_size=60),
)
@settings(deadline=None)
def test_any_two_grids(left: list[int], right: list[int]) -> None:
    a, b = np.sort(np.array(left, dtype=np.int64)), np.sort(np.array(right, dtype=np.int64))
    step, x, y = common(a, a * 0.5, b, b * 0.5)
    assert step.size == x.size == y.size <= max(a.size, b.size)
    assert np.all(np.diff(step) > 0)


@given(st.integers(0, 10_000), st.floats(-5, 5), st.integers(100, 400))
@settings(deadline=None, max_examples=50)
def test_the_gap_is_that_of_the_means_whatever_the_level(seed: int, off: float, n: int) -> None:
    noise = np.random.default_rng(seed).standard_normal((2, n))
    seen = gap(noise[0], noise[1] + off, windows=10)
    moved = gap(noise[0] + 3.0, noise[1] + off + 3.0, windows=10)
    assert np.allclose(seen.mean, moved.mean)
    assert abs(seen.mean.mean() - off) < 0.6
    assert seen.error > 0


def test_a_lasting_difference_begins_in_its_window() -> None:
    noise = np.random.default_rng(0).standard_normal((2, 400)) * 0.1
    noise[1, 240:] += 1.0
    seen = gap(noise[0], noise[1], windows=20)
    start = lasting(seen, together=5, errors=4.0, least=0.0)
    assert start == 12
    assert seen.first[start] == 240


def test_a_difference_that_passed_is_none() -> None:
    noise = np.random.default_rng(0).standard_normal((2, 400)) * 0.1
    noise[1, 100:200] += 1.0
    assert lasting(gap(*noise, windows=20), together=5, errors=4.0, least=0.0) is None


def test_equal_points_count_nan_as_equal() -> None:
    a = np.array([1.0, np.nan, 3.0, 4.0])
    assert equal_before(a, a) == 4
    assert equal_before(a, np.array([1.0, np.nan, 3.0, 5.0])) == 3


def test_wilson_against_reference() -> None:
    # statsmodels 0.15.0: proportion_confint(k, n, method="wilson")
    assert np.allclose(wilson(2, 4), (0.150036, 0.849964), atol=1e-5)
    assert np.allclose(wilson(0, 5), (0.0, 0.434482), atol=1e-5)
    assert wilson(0, 0) == (0.0, 1.0)
