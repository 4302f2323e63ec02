"""Signs that need the whole run: growth, start, plateau, layers; healthy ranges as measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.make_runs import F64, healthy, healthy_layers
from tests.traps.said import findings, quiet, report_of, serious

POINTS = 800
T = np.arange(POINTS) / (POINTS - 1)


def with_norm(norm: F64) -> dict[str, F64]:
    columns = healthy(POINTS)
    columns["param_norm"] = norm
    return columns


@pytest.mark.parametrize("end", [1.0, 1.7, 2.6, 4.0])
def test_a_parameter_norm_that_slows_down_is_healthy(tmp_path: Path, end: float) -> None:
    norm = 40.0 * (1.0 + (end - 1.0) * (1.0 - np.exp(-5.0 * T)) / (1.0 - np.exp(-5.0)))
    assert quiet(report_of(tmp_path, with_norm(norm)))


def test_exponential_growth_is_a_decay_of_the_wrong_sign(tmp_path: Path) -> None:
    report = report_of(tmp_path, with_norm(40.0 * np.exp(2.5 * T)))
    assert "SD406" in serious(report)
    assert report.verdict.cause == "weight_decay"
    assert report.verdict.onset_step == 0


def test_a_jump_of_the_norm_is_not_slow_growth(tmp_path: Path) -> None:
    norm = 40.0 * (1.0 + 0.2 * T)
    norm[500:] *= 1.5
    report = report_of(tmp_path, with_norm(norm))
    assert findings(report, "SD407")[0].step == 500
    assert "SD406" not in serious(report)
    assert report.verdict.cause in ("state_corruption", "optimizer", "inconclusive")


def test_a_norm_logged_every_hundred_steps_is_enough_for_growth(tmp_path: Path) -> None:
    columns = healthy(4000)
    norm = 40.0 * np.exp(2.5 * np.arange(4000) / 4000)
    sparse = [float(v) if i % 100 == 0 else None for i, v in enumerate(norm)]
    report = report_of(tmp_path, {**columns, "param_norm": sparse})
    assert report.verdict.cause == "weight_decay"


def test_a_high_ratio_of_gradient_to_parameters_is_information_only(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["grad_norm"] *= 8.0
    report = report_of(tmp_path, columns)
    assert [f.severity.word for f in findings(report, "SD408")] == ["info"]
    assert quiet(report)


def test_a_ratio_under_a_tenth_is_not_mentioned(tmp_path: Path) -> None:
    assert findings(report_of(tmp_path, healthy(POINTS)), "SD408") == []


@pytest.mark.parametrize("times", [1.0, 3.0, 7.0])
def test_a_first_grad_norm_within_the_healthy_range_is_quiet(tmp_path: Path, times: float) -> None:
    columns = healthy(POINTS)
    columns["grad_norm"] = columns["grad_norm"] / (1.0 + np.exp(-20.0 * T))
    columns["grad_norm"] *= 1.0 + (times - 1.0) * np.exp(-np.arange(POINTS) / 8.0)
    assert quiet(report_of(tmp_path, columns))


def test_a_transient_of_loss_and_gradient_is_the_initialization(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    fall = np.exp(-np.arange(POINTS) / 8.0)
    columns["loss"] += 14.0 * fall
    columns["grad_norm"] *= 1.0 + 25.0 * fall
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "initialization"
    assert "SD501" in serious(report)
    assert findings(report, "SD502")


def test_a_plateau_with_gradients_that_vanish_downwards_is_vanishing(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"] = np.log(10.0) + 0.01 * np.random.default_rng(1).standard_normal(POINTS)
    layers = {k: v for k, v in healthy_layers(POINTS).items() if k.startswith("grad_norm/h.")}
    for name in layers:
        layers[name] = layers[name] * 0.03 ** (3 - int(name.split(".")[1]))
    report = report_of(tmp_path, {**columns, **layers})
    assert report.verdict.cause == "vanishing"
    assert {"SD108", "SD405"} <= serious(report)


def test_embedding_and_head_that_lead_by_twenty_are_healthy(tmp_path: Path) -> None:
    layers = healthy_layers(POINTS)
    layers["grad_norm/wte.weight"] = 20.0 * layers["grad_norm/h.0.mlp.c_fc.weight"]
    layers["grad_norm/lm_head.weight"] = 15.0 * layers["grad_norm/h.0.mlp.c_fc.weight"]
    assert quiet(report_of(tmp_path, {**healthy(POINTS), **layers}))


def test_a_block_that_leads_its_peers_by_fifty_is_the_architecture(tmp_path: Path) -> None:
    layers = healthy_layers(POINTS)
    layers["grad_norm/h.2.mlp.c_fc.weight"] *= 50.0
    report = report_of(tmp_path, {**healthy(POINTS), **layers})
    assert report.verdict.cause == "architecture"
    assert report.verdict.layers[0] == "h.2.mlp.c_fc.weight"
    assert report.layers[0].layer == "h.2.mlp.c_fc.weight"


def test_a_norm_scale_that_leads_is_no_matrix(tmp_path: Path) -> None:
    """The handbook's own example: norm2.weight is 17 times the median in a healthy run."""
    layers = healthy_layers(POINTS)
    layers["grad_norm/h.1.ln_1.weight"] = 17.0 * layers["grad_norm/h.0.mlp.c_fc.weight"]
    assert quiet(report_of(tmp_path, {**healthy(POINTS), **layers}))


def test_a_tensor_overwritten_in_one_step_is_named(tmp_path: Path) -> None:
    columns, layers = healthy(POINTS), healthy_layers(POINTS)
    columns["loss"][500:560] += 2.0 * 0.96 ** np.arange(60)
    columns["param_norm"][500:] *= 1.3
    layers["param_norm/h.1.attn.c_proj.weight"][500:] *= 4.5
    report = report_of(tmp_path, {**columns, **layers})
    assert report.verdict.cause == "state_corruption"
    assert report.verdict.onset_step == 500
    assert report.verdict.layers[0] == "h.1.attn.c_proj.weight"


def test_recurrent_spikes_at_a_steady_rate_speak_for_the_optimizer(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    rng = np.random.default_rng(4)
    for at in (300, 400, 470, 560, 640, 700, 760):
        columns["grad_norm"][at - rng.integers(4, 12)] *= 6.0
        columns["loss"][at : at + 6] += 2.0 * 0.7 ** np.arange(6)
        columns["grad_norm"][at : at + 6] *= 8.0
        columns["param_norm"][at:] *= 1.01
    report = report_of(tmp_path, columns)
    assert "SD109" in serious(report)
    assert report.verdict.cause == "optimizer"


def test_the_run_of_the_handbook_is_healthy(tmp_path: Path) -> None:
    """60 steps of one block, logged every 10: what the chapter prints."""
    log = {
        "step": np.arange(0.0, 60.0, 10.0),
        "loss": np.array([2.0107, 1.9674, 1.9495, 1.9310, 1.8933, 1.8609]),
        "grad_norm": np.array([0.1917, 0.1889, 0.1889, 0.1885, 0.1896, 0.1924]),
        "param_norm": np.array([26.5670, 26.5752, 26.5815, 26.6000, 26.6370, 26.7158]),
    }
    report = report_of(tmp_path, log)
    assert serious(report) == set()
    assert report.verdict.cause in ("none", "inconclusive")
