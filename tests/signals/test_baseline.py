"""The baseline knows the past alone, and a score doesn't depend on the unit of the series."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from stabdiag.signals.baseline import Baseline, Tail, score, trailing_baseline
from tests.signals.effort import EXAMPLES

F64: TypeAlias = NDArray[np.float64]

# multiples of 1/64: sums, halves and shifts of them are exact, so that equal means equal
exact = st.integers(-(2**20), 2**20).map(lambda k: k / 64)
with_gaps = st.one_of(exact, st.sampled_from([np.nan, np.inf, -np.inf]))
series = hnp.arrays(np.float64, st.integers(0, 120), elements=with_gaps)
anything = hnp.arrays(
    np.float64, st.integers(0, 60), elements=st.floats(width=32, allow_subnormal=False)
)
windows = st.tuples(st.integers(3, 40), st.integers(2, 16), st.integers(2, 12))


def z_of(x: F64, windows: tuple[int, int, int] = (20, 5, 6), floor: float = 0.5) -> F64:
    window, level, least = windows
    base = trailing_baseline(x, window=window, level_window=level, min_points=least)
    return score(x, base, floor)


@EXAMPLES
@given(series, windows)
def test_lengths_are_kept(x: F64, w: tuple[int, int, int]) -> None:
    base = trailing_baseline(x, window=w[0], level_window=w[1], min_points=w[2])
    assert base.center.shape == base.scale.shape == score(x, base, 0.1).shape == x.shape


@EXAMPLES
@given(series, windows, st.integers(-1000, 1000))
def test_a_shift_leaves_the_scores_alone(x: F64, w: tuple[int, int, int], shift: int) -> None:
    np.testing.assert_array_equal(z_of(x + shift, w), z_of(x, w))


@EXAMPLES
@given(series, windows, st.integers(-20, 20))
def test_scaling_series_and_floor_together_leaves_the_scores_alone(
    x: F64, w: tuple[int, int, int], power: int
) -> None:
    factor = 2.0**power
    np.testing.assert_array_equal(z_of(x * factor, w, 0.5 * factor), z_of(x, w, 0.5))


@EXAMPLES
@given(series, st.floats(0.01, 100.0))
def test_any_factor_leaves_the_scores_alone_to_rounding(x: F64, factor: float) -> None:
    np.testing.assert_allclose(z_of(x * factor, floor=factor), z_of(x, floor=1.0), rtol=1e-6)


@EXAMPLES
@given(series, windows, st.data())
def test_the_future_never_changes_an_earlier_score(
    x: F64, w: tuple[int, int, int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, x.size))
    other = x.copy()
    other[cut:] = data.draw(hnp.arrays(np.float64, x.size - cut, elements=with_gaps))
    np.testing.assert_array_equal(z_of(other, w)[:cut], z_of(x, w)[:cut])
    np.testing.assert_array_equal(z_of(x[:cut], w), z_of(x, w)[:cut])


@EXAMPLES
@given(series, windows)
def test_a_point_is_not_in_its_own_baseline(x: F64, w: tuple[int, int, int]) -> None:
    if not x.size or not np.isfinite(x[-1]):
        return
    higher = x.copy()
    higher[-1] += 4096.0
    one, two = (
        trailing_baseline(v, window=w[0], level_window=w[1], min_points=w[2]) for v in (x, higher)
    )
    np.testing.assert_array_equal(one.center, two.center)
    np.testing.assert_array_equal(one.scale, two.scale)


@EXAMPLES
@given(series, windows)
def test_non_finite_points_are_as_if_not_there(x: F64, w: tuple[int, int, int]) -> None:
    finite = np.isfinite(x)
    z = z_of(x, w)
    assert np.isnan(z[~finite]).all()
    np.testing.assert_array_equal(z[finite], z_of(x[finite], w))


@EXAMPLES
@given(anything)
def test_values_of_any_size_give_no_warning_and_no_infinite_score(x: F64) -> None:
    assert not np.isinf(z_of(x)).any()


@pytest.mark.parametrize("points", [0, 1, 2, 6])
def test_too_short_a_past_is_not_tested(points: int) -> None:
    assert np.isnan(z_of(np.arange(points, dtype=np.float64))).all()


def test_a_constant_series_scores_zero_and_a_step_off_it_scores_by_the_floor() -> None:
    x = np.full(50, 3.0)
    np.testing.assert_array_equal(z_of(x)[10:], 0.0)
    x[40] = 4.0
    z = z_of(x, floor=0.25)
    assert z[40] == pytest.approx(4.0)
    assert np.nanmax(np.abs(np.delete(z, 40))) == 0.0


def test_a_falling_loss_hides_no_spike_under_its_own_past() -> None:
    x = 10.0 * np.exp(-np.arange(400) / 100.0) + 0.02 * np.random.default_rng(0).standard_normal(
        400
    )
    x[60] += 3.0
    assert x[60] < x[5]
    z = z_of(x, (100, 8, 10), floor=0.02)
    assert z[60] > 6.0
    assert np.nanmax(np.delete(z, 60)) < 3.0


def test_correlated_noise_has_the_spread_of_its_swings_not_of_its_steps() -> None:
    steps = np.random.default_rng(3).standard_normal(2000)
    x = np.convolve(steps, np.ones(25) / 5.0, mode="same")
    base = trailing_baseline(x, window=100, level_window=16, min_points=10)
    of_steps = 1.4826 * np.median(np.abs(np.diff(x))) / np.sqrt(2.0)
    assert np.nanmedian(base.scale) > 2.0 * of_steps


def test_windows_shared_by_neighbours_of_a_long_series_change_little() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal(101_000)
    x[90_000] = 30.0
    base = trailing_baseline(x, window=100, level_window=16, min_points=10)
    z = score(x, base, 1e-6)
    part = score(
        x[89_000:91_000],
        trailing_baseline(x[89_000:91_000], window=100, level_window=16, min_points=10),
        1e-6,
    )
    assert int(np.nanargmax(z)) == 90_000
    assert z[90_000] == pytest.approx(part[1000], rel=0.3)


@pytest.mark.parametrize("floor", [0.0, -1.0])
def test_a_floor_must_be_positive(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        score(np.zeros(3), Baseline(np.zeros(3), np.zeros(3)), floor)


@EXAMPLES
@given(st.lists(with_gaps, max_size=59))
def test_too_few_scores_ask_for_the_least_threshold(z: list[float]) -> None:
    assert Tail(np.asarray(z)).threshold(false_alarms=0.05, least=6.0) == 6.0


@EXAMPLES
@given(st.integers(0, 100), st.floats(1.0, 8.0), st.sampled_from([500, 3000]))
def test_the_threshold_is_never_below_the_least_and_grows_with_the_tail(
    seed: int, least: float, points: int
) -> None:
    z = np.random.default_rng(seed).standard_normal(points)
    thin = Tail(z).threshold(false_alarms=0.05, least=least)
    assert thin >= least
    heavier = np.sign(z) * np.abs(z) ** 3
    assert Tail(heavier).threshold(false_alarms=0.05, least=least) >= thin


@EXAMPLES
@given(st.integers(0, 100), st.sampled_from([500, 3000]))
def test_fewer_false_alarms_ask_for_a_higher_score(seed: int, points: int) -> None:
    z = np.random.default_rng(seed).standard_normal(points)
    strict, loose = (Tail(z).threshold(false_alarms=f, least=0.1) for f in (0.01, 1.0))
    assert strict > loose


@pytest.mark.parametrize("points", [500, 3000])
def test_a_few_true_spikes_hardly_stretch_the_threshold(points: int) -> None:
    z = np.random.default_rng(5).standard_normal(points)
    with_spikes = z.copy()
    with_spikes[[100, 200, 300]] = 80.0
    quiet, loud = (Tail(v).threshold(false_alarms=0.05, least=3.0) for v in (z, with_spikes))
    assert quiet <= loud < 2.0 * quiet
    assert loud < 80.0
