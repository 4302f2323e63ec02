"""What is drawn of a run: extremes survive, the close-up holds the episode, the rate's phases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag.diagnose import diagnose
from stabdiag.drawings import LrPhase
from stabdiag.findings import Report
from stabdiag.settings import Settings
from stabdiag.verdict.charts import MOST_STRETCHES, not_finite, reduced
from tests.make_runs import Columns, healthy, run_of, spike


def report_of(columns: Columns) -> Report:
    return diagnose(run_of(**columns), Settings())


def with_rate(lr: np.ndarray) -> tuple[LrPhase, ...]:
    return report_of(healthy(lr.size) | {"lr": lr}).lr_phases


@given(st.lists(st.floats(), min_size=1, max_size=400), st.integers(1, 20))
@settings(deadline=None)
def test_extremes_and_ends_are_kept(values: list[float], buckets: int) -> None:
    value = np.asarray(values, dtype=np.float64)
    kept = reduced(value, buckets)
    assert np.all(np.diff(kept) > 0)
    finite = value[np.isfinite(value)]
    if finite.size:
        drawn = value[kept]
        drawn = drawn[np.isfinite(drawn)]
        assert (drawn.min(), drawn.max()) == (finite.min(), finite.max())
    bad = np.flatnonzero(~np.isfinite(value))
    assert bad.size == 0 or {int(bad[0]), int(bad[-1])} <= set(kept.tolist())


def test_the_close_up_holds_the_episode_at_every_step() -> None:
    columns = healthy(20_000)
    spike(columns, "loss", 15_000, 3.0, 4)
    near = report_of(columns).close_up
    assert near is not None
    assert near.first_step < 15_000 < near.last_step
    assert near.last_step - near.first_step < 400
    loss = next(series for series in near.series if series.name == "loss")
    assert loss.step == tuple(range(near.first_step, near.last_step + 1))


def test_no_close_up_of_a_quiet_run_or_of_one_that_the_episode_fills() -> None:
    assert report_of(healthy(400)).close_up is None
    columns = healthy(60)
    columns["loss"][30:] = math.nan
    assert report_of(columns).close_up is None


def test_warmup_and_decay_are_told_apart() -> None:
    warmup, decay = report_of(healthy(1000)).lr_phases
    assert (warmup.kind, warmup.first_step) == ("warmup", 0)
    assert warmup.last_step == pytest.approx(50, abs=6)
    assert (decay.kind, decay.last_step) == ("decay", 999)


def test_a_rate_that_holds_then_falls_at_the_end() -> None:
    lr = np.concatenate([np.linspace(0, 1, 50), np.ones(750), np.linspace(1, 0, 200)])
    assert [phase.kind for phase in with_rate(lr)] == ["warmup", "constant", "decay"]


def test_a_rate_lowered_in_steps_is_constant_throughout() -> None:
    lr = np.repeat([1e-1, 1e-2, 1e-3], 300)
    assert with_rate(lr) == (LrPhase("constant", 0, 899),)


def test_cycles_are_no_phases() -> None:
    lr = 1.1 + np.sin(np.arange(4000) / 40.0)
    assert with_rate(lr) == ()


def test_no_rate_no_phases() -> None:
    columns = {name: values for name, values in healthy(200).items() if name != "lr"}
    assert report_of(columns).lr_phases == ()


@given(
    st.lists(st.sampled_from([1.0, math.nan, math.inf, -math.inf]), max_size=200),
    st.integers(1, 7),
)
def test_no_point_that_is_not_finite_is_left_out(values: list[float], cadence: int) -> None:
    value, step = np.asarray(values, dtype=np.float64), cadence * np.arange(len(values))
    stretches = not_finite(step, value)
    bad = {
        int(s): "NaN" if math.isnan(v) else "Inf"
        for s, v in zip(step, value, strict=True)
        if v != 1.0
    }
    told = {
        s: one.kind for one in stretches for s in range(one.first_step, one.last_step + 1, cadence)
    }
    assert told == bad
    assert sum(one.points for one in stretches) == len(bad)


def test_very_many_stretches_are_joined_and_none_is_lost() -> None:
    value = np.ones(30_000)
    value[::3], value[9_000::9] = math.nan, math.inf
    stretches = not_finite(np.arange(value.size), value)
    assert len(stretches) == MOST_STRETCHES
    assert sum(one.points for one in stretches) == 10_000
    assert {one.kind for one in stretches} == {"NaN", "NaN or Inf"}
    assert stretches[0].first_step == 0
    assert stretches[-1].last_step == 29_997


def test_all_points_near_an_event_are_drawn() -> None:
    columns = healthy(60_000)
    spike(columns, "loss", 43_210, 6.0, 3)
    loss = next(one for one in report_of(columns).charts if one.name == "loss")
    assert len(loss.step) < 10_000
    assert set(range(43_195, 43_230)) <= set(loss.step)
