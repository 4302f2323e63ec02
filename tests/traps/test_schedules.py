"""The learning rate: jumps that hurt, and schedules that only look like jumps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.make_runs import F64, healthy, spike
from tests.traps.said import findings, quiet, report_of, serious

POINTS = 500
AT = 300
T = np.arange(POINTS, dtype=np.float64)


def with_rate(rate: F64, *, spiked: bool = False) -> dict[str, F64]:
    columns = healthy(POINTS)
    columns["lr"] = rate
    if spiked:
        spike(columns, "loss", AT + 1, 4.0, 12)
        columns["grad_norm"][AT + 1 : AT + 12] *= 12.0
        columns["param_norm"][AT + 1 :] *= 1.2
    return columns


def jumping() -> F64:
    return np.where(T < AT, 3e-4, 3e-3)


SCHEDULES: dict[str, F64] = {
    "linear warm-up from 0": 1e-3 * np.minimum(1.0, T / 100.0),
    "linear warm-up from 1 step": 1e-3 * np.minimum(1.0, (T + 1) / 100.0),
    "exponential warm-up": 1e-3 * np.minimum(1.0, 1e-3 * 1.08**T),
    "constant": np.full(POINTS, 1e-3),
    "step decay": np.where(T < 200, 1e-3, np.where(T < 400, 1e-4, 1e-5)),
    "cosine to a tenth": 1e-3 * (0.55 + 0.45 * np.cos(np.pi * T / POINTS)),
    "inverse square root": 1e-3 / np.sqrt(1.0 + T / 20.0),
    "warm-up, stable, decay": 1e-3
    * np.minimum(1.0, (T + 1) / 50.0)
    * np.clip((500 - T) / 100, 0.01, 1),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_usual_schedule_is_no_jump(tmp_path: Path, name: str) -> None:
    report = report_of(tmp_path, with_rate(SCHEDULES[name]))
    assert findings(report, "SD106") == []
    assert quiet(report)


def test_a_jump_that_the_loss_follows_is_the_optimizer(tmp_path: Path) -> None:
    report = report_of(tmp_path, with_rate(jumping(), spiked=True))
    assert {"SD101", "SD106"} <= serious(report)
    assert findings(report, "SD106")[0].step == AT
    assert report.verdict.cause == "optimizer"


def test_the_same_spike_at_a_steady_rate_is_not(tmp_path: Path) -> None:
    report = report_of(tmp_path, with_rate(np.full(POINTS, 3e-4), spiked=True))
    assert "SD106" not in serious(report)
    assert report.verdict.cause != "optimizer" or report.verdict.probability < 0.9


def test_a_jump_that_the_loss_does_not_follow_is_said_without_alarm(tmp_path: Path) -> None:
    report = report_of(tmp_path, with_rate(jumping()))
    assert findings(report, "SD106")
    assert quiet(report)


def test_warm_restarts_of_a_cosine_are_said_without_alarm(tmp_path: Path) -> None:
    rate = 1e-3 * (0.505 + 0.495 * np.cos(np.pi * (T % 125) / 125))
    report = report_of(tmp_path, with_rate(rate))
    assert [f.step for f in findings(report, "SD106")] == [125, 250, 375]
    assert quiet(report)


def test_a_rate_that_rises_from_zero_is_no_infinite_factor(tmp_path: Path) -> None:
    rate = np.where((T >= 200) & (T < 210), 0.0, 1e-3)
    (jump,) = findings(report_of(tmp_path, with_rate(rate)), "SD106")
    assert jump.step == 210
    assert "inf" not in jump.message.split()


def test_a_rate_that_ends_early_is_said(tmp_path: Path) -> None:
    rate = 1e-3 * np.maximum(0.0, 1.0 - T / 250.0)
    report = report_of(tmp_path, with_rate(rate))
    assert [f.step for f in findings(report, "SD706")] == [250]


def test_a_rate_logged_now_and_then_hides_no_spike(tmp_path: Path) -> None:
    columns = with_rate(jumping(), spiked=True)
    sparse = [v if i % 50 == 0 else None for i, v in enumerate(columns["lr"].tolist())]
    report = report_of(tmp_path, {**columns, "lr": sparse})
    assert "SD101" in serious(report)
    assert report.verdict.onset_step == AT + 1
    assert "lr_steady" not in {e.sign for c in report.causes for e in c.evidence}
