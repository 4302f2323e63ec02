"""Spikes are found where they were put, as intervals, and not where none was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from stabdiag.signals.baseline import Baseline, score, trailing_baseline
from stabdiag.signals.spikes import Spike, find_spikes
from tests.signals.effort import EXAMPLES

F64: TypeAlias = NDArray[np.float64]
NOISE = 0.05


def quiet(points: int, seed: int) -> F64:
    rng = np.random.default_rng(seed)
    return 2.0 + 2.0 * np.exp(-np.arange(points) / 100.0) + NOISE * rng.standard_normal(points)


def found_in(
    x: F64, *, threshold: float = 6.0, starts: tuple[int, ...] = ()
) -> tuple[list[Spike], F64]:
    base = trailing_baseline(x, window=100, level_window=16, min_points=10)
    z = score(x, base, 0.02)
    with np.errstate(invalid="ignore"):
        return find_spikes(x, z, base, z >= threshold, starts=starts), z


@dataclass(frozen=True)
class Truth:
    """A spike put in at `at`: `height` in spreads of the noise, `points` long."""

    at: int
    height: float
    points: int


def put(x: F64, truth: Truth) -> F64:
    out = x.copy()
    out[truth.at : truth.at + truth.points] += truth.height * NOISE
    return out


TRUTHS = [
    Truth(at, height, points)
    for at in (100, 200, 350)
    for height in (16.0, 40.0, 200.0)
    for points in (1, 2, 5, 12)
]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_a_spike_is_found_at_its_onset_and_ends_where_it_ended(truth: Truth) -> None:
    spikes, _ = found_in(put(quiet(400, seed=truth.points), truth))
    assert len(spikes) == 1
    spike = spikes[0]
    assert spike.onset == truth.at
    assert truth.at <= spike.peak < truth.at + truth.points
    assert spike.end is not None
    assert abs(spike.end - (truth.at + truth.points)) <= 2
    assert spike.excess == pytest.approx(truth.height * NOISE, abs=6 * NOISE)


def test_hits_misses_and_false_alarms_over_many_runs() -> None:
    rng = np.random.default_rng(11)
    hits = false = 0
    for seed in range(60):
        truth = Truth(int(rng.integers(40, 380)), float(rng.uniform(12.0, 60.0)), 3)
        spikes, _ = found_in(put(quiet(400, seed), truth))
        near = [s for s in spikes if abs(s.onset - truth.at) <= 1]
        hits += bool(near)
        false += len(spikes) - len(near)
    assert hits >= 59
    assert false <= 1


def test_quiet_series_raise_no_alarm() -> None:
    assert sum(len(found_in(quiet(400, seed))[0]) for seed in range(60)) <= 1


def test_the_onset_is_where_a_contiguous_rise_began() -> None:
    x = np.full(200, 1.0)
    x[100:106] += [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    spikes, z = found_in(x, threshold=30.0)
    assert z[100] > 3.0
    assert z[100] < 30.0
    assert [(s.onset, s.peak, s.end) for s in spikes] == [(100, 105, 106)]


def test_a_rise_does_not_reach_back_across_a_restart() -> None:
    x = np.full(200, 1.0)
    x[100:106] += [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    spikes, _ = found_in(x, threshold=30.0, starts=(103,))
    assert [s.onset for s in spikes] == [103]


def test_half_counts_the_points_until_half_of_the_height_was_gone() -> None:
    x = np.full(200, 1.0)
    x[100:110] += 8.0 * 0.8 ** np.arange(10)  # 8, 6.4, 5.12, 4.096, 3.28
    assert found_in(x)[0][0].half == 4


def test_a_new_level_has_no_end_and_a_later_spike_on_it_is_its_own() -> None:
    x = quiet(600, seed=2)
    x[200:] += 1.5
    x[500] += 3.0
    spikes, _ = found_in(x)
    assert [s.onset for s in spikes] == [200, 500]
    assert spikes[0].end is None
    assert spikes[1].end == 501


def test_one_point_back_is_no_return() -> None:
    x = np.full(300, 1.0)
    x[100:140] += 2.0
    x[110] = 1.0
    spikes, _ = found_in(x)
    assert [(s.onset, s.end) for s in spikes] == [(100, 140)]


def test_nan_after_a_spike_is_no_return() -> None:
    x = quiet(300, seed=6)
    x[200:210] += 5.0
    x[210:] = np.nan
    spikes, _ = found_in(x)
    assert [(s.onset, s.end) for s in spikes] == [(200, None)]


def test_a_drop_is_no_spike() -> None:
    x = quiet(400, seed=8)
    x[200:] -= 1.5
    assert found_in(x)[0] == []


def test_a_spike_at_the_last_point_has_no_end() -> None:
    x = quiet(300, seed=9)
    x[-1] += 4.0
    spikes, _ = found_in(x)
    assert [(s.onset, s.peak, s.end, s.half) for s in spikes] == [(299, 299, None, None)]


def test_constant_and_two_point_series_have_no_spikes() -> None:
    for points in (0, 1, 2, 300):
        assert found_in(np.full(points, 7.0))[0] == []


cells = st.one_of(
    st.floats(-100.0, 100.0), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1e30, 3e38])
)


@EXAMPLES
@given(hnp.arrays(np.float64, st.integers(0, 150), elements=cells), st.data())
def test_spikes_are_ordered_intervals_inside_the_series(x: F64, data: st.DataObject) -> None:
    starts = tuple(sorted(data.draw(st.sets(st.integers(1, max(1, x.size - 1)), max_size=3))))
    spikes, _ = found_in(x, threshold=4.0, starts=starts)
    last = -1
    for s in spikes:
        end = s.end if s.end is not None else x.size
        assert last <= s.onset <= s.peak < end <= x.size
        assert s.points >= 1
        assert s.half is None or s.half >= 1
        last = s.onset + 1 if s.end is None else s.end


@EXAMPLES
@given(st.integers(0, 50), st.integers(-3, 3), st.integers(-2, 6))
def test_unit_and_offset_do_not_move_a_spike(seed: int, power: int, shift: int) -> None:
    x = np.round(put(quiet(200, seed), Truth(120, 30.0, 3)) * 4096.0) / 4096.0
    factor = 2.0**power

    def intervals(values: F64, floor: float) -> list[tuple[int, int, int | None]]:
        base = trailing_baseline(values, window=100, level_window=16, min_points=10)
        z = score(values, base, floor)
        with np.errstate(invalid="ignore"):
            hot = z >= 8.0
        return [(s.onset, s.peak, s.end) for s in find_spikes(values, z, base, hot)]

    assert intervals((x + shift) * factor, 0.02 * factor) == intervals(x, 0.02)


def test_an_unknown_baseline_at_the_onset_is_taken_from_the_seed() -> None:
    x = np.array([1.0, 1.0, 1.0, 5.0, 1.0, 1.0, 1.0, 1.0])
    base = Baseline(np.full(8, 1.0), np.full(8, 0.1))
    base.center[2], base.scale[2] = np.nan, np.nan
    z = np.array([np.nan, 0.0, 3.5, 40.0, 0.0, 0.0, 0.0, 0.0])
    spikes = find_spikes(x, z, base, z > 30.0)
    assert [(s.onset, s.peak, s.end, s.center) for s in spikes] == [(2, 3, 4, 1.0)]
