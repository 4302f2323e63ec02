"""Lasting changes: level shifts, growth, divergence, saturation, stretches of NaN."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from stabdiag.signals.baseline import trailing_baseline
from stabdiag.signals.nonfinite import densest, stretches
from stabdiag.signals.shifts import level_change, shift_scores
from stabdiag.signals.trend import ending, growth, saturated_share
from tests.signals.effort import EXAMPLES

F64: TypeAlias = NDArray[np.float64]
cells = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf, -np.inf]))
series = hnp.arrays(np.float64, st.integers(0, 80), elements=cells)


def shifts(x: F64, ahead: int = 5) -> F64:
    base = trailing_baseline(x, window=100, level_window=16, min_points=10)
    return shift_scores(x, base, 0.01, ahead)


def test_a_shift_too_small_for_one_point_shows_in_five() -> None:
    x = 3.0 + 0.1 * np.random.default_rng(0).standard_normal(300)
    x[200:] += 0.45
    z = shifts(x)
    assert abs(int(np.nanargmax(z)) - 200) <= 3
    assert np.nanmax(z) > 6.0
    assert np.nanmax(z[:190]) < 5.0


def test_one_spike_is_no_new_level() -> None:
    x = 3.0 + 0.1 * np.random.default_rng(1).standard_normal(300)
    x[200] += 50.0
    assert np.nanmax(shifts(x)) < 5.0


@EXAMPLES
@given(series, st.integers(1, 8))
def test_shift_scores_keep_length_and_are_finite_or_not_tested(x: F64, ahead: int) -> None:
    z = shifts(x, ahead)
    assert z.shape == x.shape
    assert not np.isinf(z).any()
    assert np.isnan(z[max(0, x.size - ahead + 1) :]).all()


@EXAMPLES
@given(st.integers(0, 200), st.floats(-5.0, 5.0))
def test_level_change_measures_the_step_and_its_error(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.standard_normal(100), step + rng.standard_normal(100)
    change, score = level_change(before, after, 0.001)
    assert change == pytest.approx(step, abs=1.0)
    assert np.sign(score) == np.sign(change)
    back, back_score = level_change(after, before, 0.001)
    assert back == pytest.approx(-change)
    assert back_score == pytest.approx(-score, rel=0.2)


@EXAMPLES
@given(series, series)
def test_level_change_is_known_or_not_a_number(before: F64, after: F64) -> None:
    change, score = level_change(before, after, 0.5)
    enough = min(np.isfinite(before).sum(), np.isfinite(after).sum()) >= 3
    assert np.isfinite(change) == np.isfinite(score) == enough


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("cadence", [1, 7, 200])
def test_growth_reads_the_rate_of_an_exponential(rate: float, cadence: int) -> None:
    step = np.arange(200, dtype=np.int64) * cadence
    value = 3.0 * np.exp(rate * step / cadence)
    g = growth(step, value, window_steps=50 * cadence)
    assert g is not None
    assert g.ratio == pytest.approx(np.exp(rate * 199), rel=0.05)
    assert g.per_window == pytest.approx(np.exp(50 * rate), rel=1e-6)
    assert g.rising == (1.0 if rate else 0.0)
    if rate:
        assert g.log_linear == pytest.approx(1.0)


def test_growth_that_slows_down_is_not_log_linear() -> None:
    step = np.arange(400, dtype=np.int64)
    g = growth(step, 10.0 + 40.0 * (1.0 - np.exp(-step / 40.0)), window_steps=50)
    assert g is not None
    assert g.log_linear < 0.8
    assert g.fastest_step < 20


@EXAMPLES
@given(hnp.arrays(np.float64, st.integers(0, 60), elements=cells))
def test_growth_needs_five_positive_points_and_stays_finite(value: F64) -> None:
    g = growth(np.arange(value.size, dtype=np.int64), value, window_steps=50)
    known = int(np.count_nonzero(np.isfinite(value) & (value > 0)))
    assert (g is None) == (known < 5)
    if g is not None:
        assert all(np.isfinite(v) for v in (g.ratio, g.per_window, g.log_linear, g.fastest))


def test_ending_compares_the_last_level_with_the_best() -> None:
    x = np.concatenate([np.linspace(4.0, 1.0, 100), np.linspace(1.0, 2.5, 60)])
    end = ending(x, window=20)
    assert end is not None
    assert end.best == pytest.approx(1.27, abs=0.2)
    assert end.last == pytest.approx(2.25, abs=0.1)
    assert 70 <= end.best_index <= 110
    assert end.rise == pytest.approx(end.last - end.best)


@EXAMPLES
@given(series, st.integers(2, 20))
def test_ending_never_ends_below_its_best(x: F64, window: int) -> None:
    end = ending(x, window=window)
    assert (end is None) == (np.isfinite(x).sum() < 2 * window)
    if end is not None:
        assert end.rise >= 0.0
        assert 0 <= end.best_index < x.size


def test_saturated_share_tells_a_clipped_norm_from_a_free_one() -> None:
    rng = np.random.default_rng(2)
    free = np.exp(0.3 * rng.standard_normal(500))
    assert saturated_share(free) < 0.02
    assert saturated_share(np.minimum(free, 0.8)) > 0.6
    assert saturated_share(np.append(np.minimum(free, 0.8), np.nan)) > 0.6
    assert saturated_share(np.array([np.nan])) == 0.0


@EXAMPLES
@given(hnp.arrays(np.float64, st.integers(0, 60), elements=cells))
def test_stretches_cover_the_non_finite_points_and_no_other(x: F64) -> None:
    found = stretches(x)
    covered = np.zeros(x.size, dtype=bool)
    for s in found:
        covered[s.first : s.last + 1] = True
        assert s.heals == (s.last + 1 < x.size)
        assert s.has_nan == bool(np.isnan(x[s.first : s.last + 1]).any())
        assert s.has_inf == bool(np.isinf(x[s.first : s.last + 1]).any())
    np.testing.assert_array_equal(covered, ~np.isfinite(x))
    for one, two in itertools.pairwise(found):
        assert one.last + 1 < two.first


@EXAMPLES
@given(st.lists(st.integers(0, 500), max_size=40, unique=True), st.integers(1, 60))
def test_densest_counts_the_most_positions_in_any_span(at: list[int], span: int) -> None:
    positions = np.asarray(sorted(at), dtype=np.int64)
    count, first = densest(positions, span)
    brute = max((int(((positions >= p) & (positions < p + span)).sum()) for p in at), default=0)
    assert count == brute
    if at:
        assert int(((positions >= first) & (positions < first + span)).sum()) == count
