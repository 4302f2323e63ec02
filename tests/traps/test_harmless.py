"""Shapes that look like trouble and are none, each beside one that is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.make_runs import F64, healthy, spike
from tests.traps.said import findings, quiet, report_of, serious

POINTS = 600


def test_a_loss_that_steps_down_at_each_epoch_is_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    for epoch in (200, 400):
        columns["loss"][epoch:] -= 0.25
    columns["epoch"] = np.floor(columns["step"] / 200.0)
    assert quiet(report_of(tmp_path, columns))


def test_a_loss_that_steps_up_and_stays_is_not(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][400:] += 0.6
    columns["epoch"] = np.floor(columns["step"] / 200.0)
    report = report_of(tmp_path, columns)
    assert serious(report) & {"SD101", "SD104"}
    assert report.verdict.onset_step == 400


def test_a_short_first_window_of_an_epoch_is_not_a_cause_for_sure(tmp_path: Path) -> None:
    """The first record of an epoch averages fewer steps, so that it is lower, not higher."""
    columns = healthy(POINTS)
    columns["loss"][[200, 400]] *= 0.75
    assert quiet(report_of(tmp_path, columns))


def test_an_abrupt_fall_is_learning(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][300:] -= 1.2
    assert quiet(report_of(tmp_path, columns))


def test_a_staircase_down_is_learning(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    rng = np.random.default_rng(1)
    levels = np.repeat(np.linspace(5.0, 1.0, 12), 50)
    columns["loss"] = levels + 0.02 * rng.standard_normal(POINTS)
    assert quiet(report_of(tmp_path, columns))


def test_a_drop_to_nothing_that_comes_back_is_seen_as_no_new_spike(tmp_path: Path) -> None:
    """A low stretch (easy batches) ends where the loss had been: its end is no spike."""
    columns = healthy(POINTS)
    columns["loss"][300:306] -= 1.0
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "none"


def test_a_curriculum_change_is_a_lasting_change_of_the_data(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][400:] += 0.8
    columns["seq_len"] = np.where(np.arange(POINTS) < 400, 512.0, 2048.0)
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "data"
    assert report.verdict.onset_step == 400
    assert "SD201" in serious(report)


def test_a_curriculum_change_that_the_loss_does_not_mind_is_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["seq_len"] = np.where(np.arange(POINTS) < 400, 512.0, 2048.0)
    assert quiet(report_of(tmp_path, columns))


@pytest.mark.parametrize("seed", range(3))
def test_warm_up_transients_are_healthy(tmp_path: Path, seed: int) -> None:
    columns = healthy(POINTS, seed=seed)
    t = np.arange(POINTS)
    rng = np.random.default_rng(seed)
    columns["grad_norm"] *= 1.0 + 4.0 * np.exp(-t / 15.0)
    columns["loss"] += 0.3 * np.exp(-t / 10.0) * np.abs(rng.standard_normal(POINTS))
    columns["grad_norm"][5] *= 3.0
    assert quiet(report_of(tmp_path, columns))


def test_a_start_far_above_any_uniform_guess_is_not(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    t = np.arange(POINTS)
    columns["loss"] += 30.0 * np.exp(-t / 12.0)
    columns["grad_norm"] *= 1.0 + 40.0 * np.exp(-t / 12.0)
    report = report_of(tmp_path, columns)
    assert "SD501" in serious(report)
    assert report.verdict.cause == "initialization"
    assert report.verdict.onset_step == 0


@pytest.mark.parametrize("seed", range(3))
def test_heavy_tailed_grad_norms_alone_are_healthy(tmp_path: Path, seed: int) -> None:
    columns = healthy(2000, seed=seed)
    rng = np.random.default_rng(seed)
    columns["grad_norm"] = np.exp(0.35 * rng.standard_t(2.5, 2000))
    report = report_of(tmp_path, columns)
    assert findings(report, "SD102")
    assert quiet(report)


def test_isolated_spikes_of_the_grad_norm_up_to_100_times_are_healthy(tmp_path: Path) -> None:
    columns = healthy(2000)
    columns["grad_norm"][[400, 700, 1100, 1500, 1900]] *= [12.0, 30.0, 100.0, 60.0, 25.0]
    report = report_of(tmp_path, columns)
    assert len(findings(report, "SD102")) == 5
    assert quiet(report)


def test_a_grad_norm_that_grows_for_good_is_not(tmp_path: Path) -> None:
    columns = healthy(2000)
    columns["grad_norm"][1200:] *= np.exp(np.minimum(np.arange(800) * 0.02, 9.0))
    assert not quiet(report_of(tmp_path, columns))


def test_a_loss_near_nothing_does_not_spike_by_its_rounding(tmp_path: Path) -> None:
    """A memorising net: from 0.0003 to 0.036 is 50 robust deviations and harmless."""
    columns = healthy(2000)
    t = np.arange(2000)
    rng = np.random.default_rng(2)
    columns["loss"] = 2.3 * np.exp(-t / 150.0) + 3e-4 * (1.0 + 0.1 * rng.standard_normal(2000))
    columns["loss"][1700] = 0.036
    assert quiet(report_of(tmp_path, columns))


def one_bad(points: int = 2000) -> dict[str, F64]:
    columns = healthy(points)
    spike(columns, "loss", points // 2, 3.0, 1)
    columns["grad_norm"][points // 2] *= 4.0
    return columns


def test_one_bad_batch_on_a_quiet_loss_is_found(tmp_path: Path) -> None:
    report = report_of(tmp_path, one_bad())
    assert report.verdict.cause == "data"
    assert report.verdict.onset_step == 1000
    assert report.episodes[0].recovered


def test_overfitting_is_no_divergence_of_the_training_loss(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    rise = np.maximum(0.0, np.arange(POINTS) - 300) * 0.004
    every = [
        float(v) if i % 20 == 0 else None for i, v in enumerate((columns["loss"] + rise).tolist())
    ]
    report = report_of(tmp_path, {**columns, "val_loss": every})
    assert "SD103" not in serious(report)
    assert report.verdict.cause == "none"
