"""NaN and Inf: which are harmless, which are hidden, and which come from where."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stabdiag import analyze
from tests.make_runs import F64, Cell, healthy, healthy_layers, spike
from tests.traps.said import findings, quiet, report_of, serious

POINTS = 400
AT = 250
NAN = float("nan")


def fp16(*, skips: tuple[int, ...] = ()) -> dict[str, F64]:
    """A run with a loss scale: each skipped step has an infinite norm and halves the scale."""
    columns = healthy(POINTS)
    scale = np.full(POINTS, 65536.0)
    for at in skips:
        columns["grad_norm"][at] = np.inf
        scale[at + 1 : at + 40] /= 2.0
    columns["loss_scale"] = scale
    return columns


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_lone_skipped_step_is_harmless(tmp_path: Path, suffix: str) -> None:
    report = report_of(tmp_path, fp16(skips=(120, AT)), suffix)
    assert [f.step for f in findings(report, "SD303")] == [120]
    assert quiet(report)


def test_a_lone_nan_norm_without_a_logged_scale_is_harmless_too(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["grad_norm"][AT] = np.nan
    assert quiet(report_of(tmp_path, columns))


def test_the_search_for_the_first_scale_is_harmless(tmp_path: Path) -> None:
    columns = fp16()
    columns["grad_norm"][:6] = np.inf
    columns["loss_scale"] = np.minimum(2.0 ** np.maximum(24.0 - np.arange(POINTS), 18.0), 2.0**24)
    assert quiet(report_of(tmp_path, columns))


def test_a_collapse_of_the_scale_is_not(tmp_path: Path) -> None:
    columns = fp16()
    columns["grad_norm"][AT:] = np.inf
    columns["loss_scale"][AT:] = 65536.0 * 0.5 ** np.arange(1, POINTS - AT + 1)
    report = report_of(tmp_path, columns)
    assert {"SD302", "SD304"} <= serious(report)
    assert report.verdict.cause == "overflow"
    assert report.verdict.health in ("unstable", "diverged")
    assert abs((report.verdict.onset_step or 0) - AT) <= 1


def test_how_far_the_scale_fell_is_a_whole_number(tmp_path: Path) -> None:
    columns = fp16()
    columns["grad_norm"][AT:] = np.inf
    columns["loss_scale"][AT:] = np.maximum(65536.0 * 0.5 ** np.arange(1, POINTS - AT + 1), 64.0)
    (fell,) = findings(report_of(tmp_path, columns), "SD304")
    assert "to 1/1,024 of its maximum by step" in fell.message


def test_a_scale_that_falls_to_nothing(tmp_path: Path) -> None:
    columns = fp16()
    columns["grad_norm"][AT:] = np.inf
    columns["loss_scale"][AT:] = 1e-9
    (fell,) = findings(report_of(tmp_path, columns), "SD304")
    assert "to less than a millionth of its maximum by step" in fell.message


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (["lm_head.weight"], "no layer is logged between it and the loss"),
        (["lm_head.weight", "h.2.attn.c_proj.weight"], "no layer is logged between"),
        (["h.1.mlp.c_fc.weight", "wte.weight"], "with 1 more below it; it is the nearest of them"),
    ],
)
def test_what_the_place_of_the_first_layer_says(
    tmp_path: Path, first: list[str], said: str
) -> None:
    """A head is always the nearest to the loss: of the source that says nothing."""
    columns = healthy(POINTS) | healthy_layers(POINTS)
    for name in ("loss", "grad_norm"):
        columns[name][AT:] = np.nan
    for name in list(columns):
        layer = name.partition("grad_norm/")[2]
        if layer:
            columns[name][AT if layer in first else AT + 1 :] = np.nan
    report = report_of(tmp_path, columns)
    (born,) = findings(report, "SD307")
    assert born.layer == first[0]
    assert said in born.message


def test_six_skips_in_twenty_steps_are_not(tmp_path: Path) -> None:
    report = report_of(tmp_path, fp16(skips=tuple(range(AT, AT + 20, 3))))
    assert "SD302" in serious(report)
    assert report.verdict.cause == "overflow"


def test_one_skip_a_hundred_steps_is(tmp_path: Path) -> None:
    assert quiet(report_of(tmp_path, fp16(skips=(50, 150, 250, 350))))


def test_nan_from_a_step_on_is_overflow_where_nothing_climbed(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT:] = np.nan
    columns["grad_norm"][AT - 1 :] = np.nan
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "overflow"
    assert report.verdict.health == "diverged"
    assert report.verdict.onset_step == AT - 1
    assert findings(report, "SD301")[0].step == AT


def test_nan_after_a_climb_is_only_the_end_of_an_instability(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    climb = np.arange(20.0)
    columns["loss"][AT - 20 : AT] += 0.02 * climb**2
    columns["grad_norm"][AT - 20 : AT] *= np.exp(0.3 * climb)
    columns["param_norm"][AT - 20 : AT] *= np.exp(0.02 * climb)
    columns["loss"][AT:] = columns["grad_norm"][AT:] = columns["param_norm"][AT:] = np.nan
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "optimizer"
    assert AT - 20 <= (report.verdict.onset_step or 0) <= AT - 5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_from_the_first_step(tmp_path: Path, value: float) -> None:
    columns = healthy(POINTS)
    columns["loss"][:] = value
    columns["grad_norm"][:] = np.nan
    report = report_of(tmp_path, columns)
    assert report.verdict.cause not in ("none", "data")
    assert report.verdict.health == "diverged"
    assert report.verdict.onset_step == 0
    assert "SD301" in serious(report)
    assert report.workflow[0].status != "clear"


def test_nan_losses_alone_from_the_first_step(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][:] = np.nan
    report = report_of(tmp_path, {"step": columns["step"], "loss": columns["loss"]})
    assert "SD301" in serious(report)
    assert report.verdict.health == "diverged"


def test_one_empty_batch_is_no_divergence(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT] = np.nan
    columns["grad_norm"][AT] = 0.0
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "data"
    assert report.verdict.health != "diverged"
    assert serious(report) == {"SD203"}


def test_many_lone_nan_losses_are_more_than_empty_batches(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT::12] = np.nan
    report = report_of(tmp_path, columns)
    assert "SD301" in serious(report)


def test_losses_of_exactly_zero_are_batches_without_targets(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    for at in (100, 180, AT):
        columns["loss"][at] = columns["grad_norm"][at] = 0.0
    report = report_of(tmp_path, columns)
    assert serious(report) == {"SD202"}
    assert report.verdict.cause == "data"


def test_zeros_of_a_memorised_set_are_small_losses(tmp_path: Path) -> None:
    """A net that has learned its set by heart: losses from 0.3 down to 0.0 in four decimals."""
    rng = np.random.default_rng(6)
    start = 2.3 * np.exp(-np.arange(POINTS) / 20.0)
    small = np.exp(-5.0 + 1.5 * rng.standard_normal(POINTS))
    log = {"step": np.arange(POINTS, dtype=np.float64), "loss": np.round(start + small, 4)}
    log["loss"][log["loss"] < 0.0009] = 0.0
    assert np.count_nonzero(log["loss"] == 0.0) > 5
    report = report_of(tmp_path, log)
    assert findings(report, "SD202") == []
    assert report.verdict.cause != "data" or report.verdict.probability < 0.9


def test_a_loss_of_zero_beside_a_nan_norm_is_a_hidden_nan(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT:] = 0.0
    columns["grad_norm"][AT:] = np.nan
    report = report_of(tmp_path, columns)
    assert "SD306" in serious(report)
    assert report.verdict.cause == "overflow"
    assert report.verdict.health == "diverged"


def test_the_trainer_that_filters_nan_from_the_start(tmp_path: Path) -> None:
    """Hugging Face with logging_nan_inf_filter: loss 0.0 in every record, grad norm NaN."""
    history = [
        {"epoch": i / 10, "grad_norm": NAN, "learning_rate": 2e-5, "loss": 0.0, "step": 10 * i}
        for i in range(1, 41)
    ]
    history[0]["loss"] = 3.0425
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history, "global_step": 400}), encoding="utf-8")
    report = analyze(path)
    assert "SD306" in serious(report)
    assert report.verdict.health == "diverged"
    assert report.verdict.cause not in ("none", "data")


def test_a_loss_that_is_zero_throughout_is_not_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][:] = 0.0
    report = report_of(tmp_path, {"step": columns["step"], "loss": columns["loss"]})
    assert report.verdict.cause != "none"
    assert report.verdict.health != "healthy"


def test_a_loss_that_turns_zero_for_good_without_a_norm_is_not_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT:] = 0.0
    report = report_of(tmp_path, {k: columns[k] for k in ("step", "loss", "lr")})
    assert report.verdict.cause != "none"
    assert report.verdict.onset_step == AT


def test_a_loss_that_falls_towards_zero_is_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"] = 2.0 * np.exp(-np.arange(POINTS) / 30.0)
    assert quiet(report_of(tmp_path, columns))


@pytest.mark.parametrize("value", [5.545, 0.693, 2.0])
def test_a_constant_loss_learns_nothing(tmp_path: Path, value: float) -> None:
    columns = healthy(POINTS)
    columns["loss"][:] = value
    report = report_of(tmp_path, columns)
    assert "SD108" in serious(report)
    assert report.verdict.cause != "none"


def cells(columns: dict[str, F64]) -> dict[str, list[Cell]]:
    return {k: list(v.tolist()) for k, v in columns.items()}


def test_empty_cells_in_place_of_nan_are_found(tmp_path: Path) -> None:
    """AlgoPerf: loss and grad norm of a training row are empty once they are NaN."""
    log = cells(healthy(POINTS))
    for name in ("loss", "grad_norm"):
        log[name][AT:] = [None] * (POINTS - AT)
    report = report_of(tmp_path, log)
    assert "SD306" in serious(report)
    assert report.verdict.cause == "overflow"
    assert report.verdict.onset_step == AT


def test_a_field_left_out_of_the_line_is_found(tmp_path: Path) -> None:
    """Megatron: `lm loss` is missing from the line when it is NaN."""
    log = cells(healthy(POINTS))
    log["loss"][AT:] = [None] * (POINTS - AT)
    log["grad_norm"][AT:] = [NAN] * (POINTS - AT)
    report = report_of(tmp_path, log, ".jsonl")
    assert serious(report) & {"SD301", "SD306"}
    assert report.verdict.health == "diverged"
    assert report.verdict.onset_step == AT


def test_empty_cells_of_a_metric_logged_now_and_then_are_no_nan(tmp_path: Path) -> None:
    log = cells(healthy(POINTS))
    for name, every in (("grad_norm", 10), ("param_norm", 50), ("lr", 5)):
        log[name] = [c if i % every == 0 else None for i, c in enumerate(log[name])]
    report = report_of(tmp_path, log)
    assert quiet(report)
    assert report.run.series["grad_norm"].non_finite == 0


def test_a_log_that_ends_early_is_no_nan(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    assert quiet(report_of(tmp_path, {k: v[:AT] for k, v in columns.items()}))


def test_nan_in_the_validation_loss_alone_is_not_the_training_run(tmp_path: Path) -> None:
    log = cells(healthy(POINTS))
    log["val_loss"] = [NAN if i % 50 == 0 else None for i in range(POINTS)]
    report = report_of(tmp_path, log, ".jsonl")
    assert report.verdict.health != "diverged"
    assert report.verdict.cause == "none"
    (found,) = findings(report, "SD707")
    assert found.severity.word == "warning"
    assert "validation" in found.message


def test_a_nan_parameter_norm_beside_a_finite_loss_is_an_error(tmp_path: Path) -> None:
    """A NaN row of the embedding shows in the norm first, in the loss when its token comes."""
    columns = healthy(POINTS)
    columns["param_norm"][AT:] = np.nan
    report = report_of(tmp_path, columns)
    assert report.workflow[2].status == "found"
    assert report.verdict.cause != "none"
    assert report.verdict.onset_step == AT


def test_a_nan_activation_beside_a_finite_loss_is_an_error(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    top = np.full(POINTS, 300.0)
    top[AT:] = np.inf
    report = report_of(tmp_path, {**columns, "activation_max": top})
    assert report.workflow[2].status == "found"
    assert report.verdict.cause != "none"


def test_activations_above_the_limit_show_that_it_is_not_float16(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["activation_max"] = np.full(POINTS, 90_000.0)
    assert quiet(report_of(tmp_path, columns))


def test_infinite_losses_are_not_nan(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"][AT : AT + 40] = np.inf
    spike(columns, "grad_norm", AT, 0.0)
    report = report_of(tmp_path, columns)
    assert report.run.series["loss"].non_finite == 40
    assert "Inf" in findings(report, "SD301")[0].message


def test_an_explanation_of_variance_that_is_nan_is_harmless(tmp_path: Path) -> None:
    """Stable-Baselines3 logs `explained_variance` as nan while the critic is constant."""
    columns = healthy(POINTS)
    columns["train/explained_variance"] = np.full(POINTS, np.nan)
    assert quiet(report_of(tmp_path, columns))
