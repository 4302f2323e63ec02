"""Runs from recorded logs: which column is which series, restarts, NaN."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from stabdiag.columns import understand
from stabdiag.errors import ManyRunsError
from stabdiag.model import LogTable, Run
from stabdiag.readers import read_log
from stabdiag.runs import build_run, list_runs
from tests.tables import SHARED, inferred, steps, values

BENCH = SHARED / "faultbench" / "dev"
REAL = SHARED / "real_logs"
INCIDENTS = SHARED / "incidents"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the recorded logs are not here")


def labels() -> list[Mapping[str, Any]]:
    path = BENCH / "labels.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(path: str) -> LogTable:
    return read_log([SHARED / path])


def run_in(path: str, run: str | None = None) -> Run:
    table = read(path)
    return build_run(table, understand(table), run=run)


def segments(run: Run) -> list[tuple[int, int]]:
    return [(segment.first_step, segment.last_step) for segment in run.segments]


@pytest.mark.parametrize("label", labels(), ids=lambda label: str(label["id"]))
def test_labelled_logs_are_understood(label: Mapping[str, Any]) -> None:
    table = read(f"faultbench/dev/{label['file']}")
    plan = understand(table)
    run = build_run(table, plan)
    columns = dict(label["columns"])
    assert plan.step == columns.pop("step")
    layers = columns.pop("layer_grad_norm", None)
    if layers is None:
        assert "grad_norm" not in run.layers
    else:
        prefix = layers.removesuffix("*")
        named = [name.removeprefix(prefix) for name in table.names if name.startswith(prefix)]
        assert list(run.layers["grad_norm"]) == named
    batch_id = columns.pop("batch_id", None)
    if batch_id is not None:
        assert run.batch is not None
        assert batch_id in run.batch.ids
    assert {name: run.series[name].column for name in columns} == columns
    unknown = [name for name in run.series if name.startswith(("other/", "loss/"))]
    assert unknown == []
    resumed = label["logging"]["resumed_from"]
    expected = [] if resumed is None else [resumed]
    assert [segment.first_step for segment in run.segments[1:]] == expected
    hides_nan = label["logging"]["non_finite"] in ("empty", "null") and label["fault"] == "nan_born"
    assert any(series.inferred.any() for series in run.series.values()) == hides_nan


def test_where_the_labelled_nan_began() -> None:
    run = run_in("faultbench/dev/d038.csv")
    assert inferred(run, "loss") == list(range(282, 322))
    assert inferred(run, "grad_param_ratio")[0] == 270
    norms = next(iter(run.layer_blocks("param_norm")))
    nan = np.isnan(norms.value)
    first = np.flatnonzero(nan.any(axis=1))[0]
    assert norms.step[first] == 280
    assert [norms.layers[i] for i in np.flatnonzero(nan[first])] == ["transformer.wte.weight"]
    assert norms.logged.all()


def test_an_nan_loss_left_empty_by_algoperf() -> None:
    run = run_in("real_logs/algoperf_jax_criteo_genadam_diverge.csv")
    assert inferred(run, "loss") == inferred(run, "grad_norm") == list(range(48, 100))
    # The evaluations go on, their losses empty: those rows are no training rows.
    assert run.series["other/score"].step[-1] == 10666
    other = run_in("real_logs/algoperf_pt_criteo_shampoo_nan.csv")
    assert inferred(other, "loss")[0] == 63


def test_an_evaluation_without_losses_at_the_end_is_missing() -> None:
    run = run_in("real_logs/algoperf_pt_wmt_cyclic_evalonly.csv")
    assert steps(run, "loss")[-1] == 130498
    assert run.series["loss"].column == "train/loss"
    assert not any(series.inferred.any() for series in run.series.values())


def test_a_filtered_nan_of_the_trainer() -> None:
    run = run_in("real_logs/hf_trainer_state_llama3_nan_loss0.json")
    assert np.isnan(run.series["loss"].value).sum() == 9
    assert 3.0425 in values(run, "loss")


def test_batches_without_labels_keep_their_zero_loss() -> None:
    run = run_in("incidents/sft_some_batches_without_labels.json")
    assert values(run, "loss")[6] == 0.0
    assert run.series["val_loss"].non_finite == 4


def test_restarts_in_one_run() -> None:
    slm = run_in("real_logs/slm_metrics_dup_steps.jsonl")
    assert segments(slm) == [(20, 20), (20, 40), (20, 7580), (7520, 7560), (7520, 7760)]
    unet = run_in("real_logs/unet_train_log_dup_epoch.csv")
    assert (unet.axis, segments(unet)) == ("epoch", [(1, 1), (1, 30)])
    replay = run_in("incidents/resume_replays_seen_data.csv")
    assert segments(replay) == [(2, 2550), (2450, 3600)]
    warmup = run_in("incidents/resume_restarts_warmup.jsonl")
    assert segments(warmup) == [(29000, 30400), (30260, 32400)]


@pytest.mark.parametrize(
    ("file", "extents"),
    [
        ("detectron2_metrics_gdp.json", [(19, 159), (19, 299), (19, 139), (19, 99), (19, 839)]),
        ("hf_console_ruadapt4_grct.txt", [(1, 13056)] * 3),
    ],
)
def test_several_runs_in_turn(file: str, extents: list[tuple[int, int]]) -> None:
    table = read(f"real_logs/{file}")
    plan = understand(table)
    assert [(run.first_step, run.last_step) for run in list_runs(table, plan)] == extents
    with pytest.raises(ManyRunsError):
        build_run(table, plan)
    last = build_run(table, plan, run=str(len(extents)))
    assert segments(last) == [extents[-1]]


def test_a_chart_export_of_eight_runs() -> None:
    table = read("real_logs/wandb_export_charts_nanogpt.csv")
    plan = understand(table)
    assert len(list_runs(table, plan)) == 8
    run = build_run(table, plan, run="gpt2_char_to_token1729491541.2756786")
    assert set(run.series) == {"loss"}
    assert not run.series["loss"].non_finite
    assert values(run, "loss")[32] == pytest.approx(3.76, abs=0.01)


@pytest.mark.parametrize(
    ("file", "columns", "axis"),
    [
        (
            "lightning_metrics_slm_v0.csv",
            {"loss": "train_loss_step", "val_loss": "val_loss"},
            "step",
        ),
        ("mae_deit_log_finetune.txt", {"loss": "train_loss", "val_loss": "test_loss"}, "epoch"),
        ("ppo_icm_hopper_run.csv", {"loss": "total_loss", "wall_time": "total_time"}, "step"),
        ("mamba_integer_metrics.jsonl", {"activation_max": "stability/max_activation"}, "step"),
        ("guided_diffusion_progress_classifier.csv", {"loss": "train_loss"}, "step"),
        (
            "llmc_main_gpt2_124m.log",
            {"loss": "trl", "val_loss": "tel", "grad_norm": "norm"},
            "step",
        ),
        ("nmt_trainlog_netra.jsonl", {"loss": "loss", "loss/train_loss": "train_loss"}, "step"),
        ("nanogpt_console_wandb_output_a.log", {"loss": "loss", "val_loss": "val loss"}, "step"),
        ("tb_export_actor_loss.csv", {"loss": "tb_export_actor_loss"}, "step"),
        ("tb_export_grad_norm.csv", {"grad_norm": "tb_export_grad_norm"}, "step"),
        (
            "tb_export_grad_norm_clipped.csv",
            {"grad_norm_clipped": "tb_export_grad_norm_clipped"},
            "step",
        ),
        (
            "coqui_trainer_0_log_vits.txt",
            {"loss": "loss_1", "grad_norm": "grad_norm_1", "lr": "current_lr_1"}
            | {"loss_scale": "amp_scaler", "val_loss": "avg_loss_1"},
            "step",
        ),
        (
            "yolo_results_bone.csv",
            {"loss": "train/box_loss + train/seg_loss + train/cls_loss + train/dfl_loss"}
            | {"lr": "lr/pg0"},
            "epoch",
        ),
    ],
)
def test_series_of_recorded_logs(file: str, columns: dict[str, str], axis: str) -> None:
    run = run_in(f"real_logs/{file}")
    assert run.axis == axis
    assert {name: run.series[name].column for name in columns} == columns
    assert len(run.segments) == 1
    assert not any(series.inferred.any() for series in run.series.values())


def test_logs_without_a_loss_have_none() -> None:
    for file in ("dreamer_metrics_fetchreach.jsonl", "wandb_history_dqn.jsonl"):
        assert not {"loss", "grad_norm"} & set(run_in(f"real_logs/{file}").series)


def test_validation_records_in_other_units() -> None:
    mmengine = run_in("real_logs/mmengine_scalars_pose.json")
    assert steps(mmengine, "other/PCK")[:2] == [60, 120]
    mmseg = run_in("real_logs/mmseg_log_potato.json")
    assert steps(mmseg, "other/mIoU")[:2] == [200, 400]
    assert steps(mmseg, "loss")[-1] == 40000


def test_activations_of_modules_are_layers() -> None:
    run = run_in("real_logs/nanogpt_mup_coordcheck_sp_w2048.csv")
    assert run.layers["activation_max"] == ("token_embedding", "attn", "mlp", "lm_head")
    block = next(iter(run.layer_blocks("activation_max")))
    assert block.step.tolist() == list(range(1, 11))
    incident = run_in("incidents/fp16_activation_overflow.csv")
    assert incident.layers["activation_max"] == ("decoder.block.11.layer.2.DenseReluDense.wo",)
