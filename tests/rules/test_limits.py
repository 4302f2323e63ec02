"""Every limit in the catalogue is one that the tool compares with: moving it moves a report."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stabdiag import read_run
from stabdiag.diagnose import diagnose
from stabdiag.errors import UsageError
from stabdiag.model import Run
from stabdiag.rules import CATALOGUE
from stabdiag.settings import Settings
from tests.make_runs import healthy, healthy_layers, run_from, run_of, spike

FOLDER = Path(__file__).resolve().parent
USUAL = {
    f"{rule.id}.{t.name}": t.value
    for rule in CATALOGUE
    if rule.command == "analyze"  # no log moves these
    for t in rule.thresholds
}
UNREAD = {"SD203.max_points", "SD402.min_score", "SD406.min_log_linear"}


def a_lone_spike_within_the_noise() -> Run:
    columns = healthy(400, seed=3, noise=0.04)
    spike(columns, "loss", 300, 0.4)
    return run_of(step=columns["step"], loss=columns["loss"])


def a_spike_beside_the_grad_norms() -> Run:
    columns = healthy(400, seed=3, noise=0.04)
    spike(columns, "loss", 300, 0.24)
    columns["grad_norm"][300] *= 12.0
    return run_from(columns)


def a_jump_three_points_before_a_spike() -> Run:
    columns = healthy(400, seed=3)
    columns["lr"] = np.full(400, 3e-4)
    columns["lr"][297:] = 9e-4
    spike(columns, "loss", 300, 3.0)
    return run_from(columns)


def a_restart_at_twice_the_rate() -> Run:
    columns = healthy(400, seed=3)
    columns["lr"] = np.full(400, 3e-4)
    columns["lr"][200:] = 6e-4
    columns["step"][200:] -= 10
    return run_from(columns)


def an_early_search_for_the_scale() -> Run:
    columns = healthy(400, seed=3)
    columns["grad_norm"][0:5] = np.nan
    columns["grad_norm"][40:46] = np.nan
    return run_from(columns)


def scale_run(scale: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Run:
    columns = healthy(400, seed=3)
    return run_from({**columns, "loss_scale": scale})


def a_scale_that_comes_back_from_far_below() -> Run:
    scale = np.full(400, 65536.0)
    scale[100:112] = 65536.0 * 0.5 ** np.arange(1, 13)
    scale[112:300] = 16.0
    return scale_run(scale)


def a_scale_on_a_floor() -> Run:
    scale = np.full(400, 65536.0)
    scale[100:108] = 65536.0 * 0.5 ** np.arange(1, 9)
    scale[108:] = 256.0
    return scale_run(scale)


def a_start_with_a_known_vocabulary() -> Run:
    columns = healthy(400, seed=3)
    columns["loss"] += 3.0 * np.exp(-np.arange(400) / 10.0)
    return run_from(columns, facts={"vocab_size": "256"})


def a_transient_of_both() -> Run:
    columns = healthy(400, seed=3)
    columns["loss"] += 5.0 * np.exp(-np.arange(400) / 10.0)
    columns["grad_norm"] *= 1.0 + 12.0 * np.exp(-np.arange(400) / 10.0)
    return run_from(columns)


def a_rate_near_its_floor() -> Run:
    columns = healthy(400, seed=3)
    columns["lr"][200:] = 5e-7
    return run_from(columns)


def two_loud_layers(other: str, times: float) -> Run:
    layers = healthy_layers(400, blocks=8)
    layers["grad_norm/h.1.mlp.c_fc.weight"] *= 60.0
    layers[f"grad_norm/{other}"] *= times
    return run_from(healthy(400), layers=layers)


# where the bad and good logs of a rule can't show a limit
def layers_every_ten_steps() -> Run:
    return run_from(
        healthy(400),
        layers={
            name: [v if t % 10 == 0 else None for t, v in enumerate(cells)]
            for name, cells in healthy_layers(400).items()
        },
    )


def a_loss_of_nan() -> Run:
    columns = healthy(400)
    columns["loss"] = [v if t < 300 else math.nan for t, v in enumerate(columns["loss"])]
    return run_from(columns)


EXTRA: dict[str, Callable[[], Run]] = {
    "SD101.false_alarms": a_lone_spike_within_the_noise,
    "SD101.joint_score": a_spike_beside_the_grad_norms,
    "SD106.max_points": a_jump_three_points_before_a_spike,
    "SD107.min_change": a_restart_at_twice_the_rate,
    "SD303.warmup": an_early_search_for_the_scale,
    "SD304.min_fall": a_scale_that_comes_back_from_far_below,
    "SD304.min_lasting_fall": a_scale_on_a_floor,
    "SD402.max_block": lambda: two_loud_layers("h.6.attn.c_proj.weight", 60.0),
    "SD402.min_of_first": lambda: two_loud_layers("h.2.attn.c_proj.weight", 25.0),
    "SD501.min_uniform_ratio": a_start_with_a_known_vocabulary,
    "SD501.min_fall": a_transient_of_both,
    "SD703.layer_every": layers_every_ten_steps,
    "SD703.overflow_in_question": a_loss_of_nan,
    "SD706.floor": a_rate_near_its_floor,
}


@cache
def logs_of(key: str) -> tuple[Run, ...]:
    if key in EXTRA:
        return (EXTRA[key](),)
    folder = FOLDER / key.split(".")[0]
    return tuple(read_run(p) for p in sorted(folder.iterdir()) if p.stem in ("bad", "good"))


def outcome(run: Run, key: str, value: float) -> tuple[object, ...]:
    """All that a limit can move: findings with their numbers, verdict, causes, layers, monitoring."""
    report = diagnose(run, Settings(thresholds={key: value}))
    layers = (report.layers, report.layer_plan)
    return (
        report.findings,
        report.verdict,
        report.causes,
        report.monitoring,
        report.episodes,
        *layers,
    )


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(
            key,
            marks=[pytest.mark.xfail(strict=True, reason="nothing reads this limit")]
            if key in UNREAD
            else [],
        )
        for key in USUAL
    ],
)
def test_no_limit_is_without_effect(key: str) -> None:
    usual = USUAL[key]
    assert any(
        outcome(run, key, value) != outcome(run, key, usual)
        for run in logs_of(key)
        for value in (usual * 10.0, usual / 10.0, usual * 1000.0, usual / 1000.0)
    )


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, 1e9])
@pytest.mark.parametrize("key", sorted(EXTRA))
def test_no_value_of_a_limit_breaks_the_tool(key: str, value: float) -> None:
    with contextlib.suppress(UsageError):  # to refuse it is as good as to use it
        outcome(logs_of(key)[0], key, value)


def test_an_unknown_limit_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        outcome(a_restart_at_twice_the_rate(), "SD101.min_scor", 3.0)
    assert "SD101.min_score" in caught.value.todo
