"""Recorded logs of many tools: what a reader must find in each, as its index says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers import read_log
from tests.readers.tables import column, said

SHARED = Path(__file__).resolve().parents[2] / "../shared"
REAL = SHARED / "real_logs"
needs_logs = pytest.mark.skipif(not REAL.is_dir(), reason="the recorded logs are not here")


def points(table: LogTable, name: str) -> int:
    return int(np.count_nonzero(table.load([name])[name].logged))


# file, format, rows, and how many rows have a cell in a column
ROWS = [
    ("algoperf_jax_criteo_baseline_spike.csv", "csv", 172, {"loss": 107, "score": 65}),
    ("algoperf_jax_criteo_genadam_diverge.csv", "csv", 161, {"loss": 48, "score": 61}),
    ("algoperf_jax_deepspeech_nadamp_inf.csv", "csv", 510, {"loss": 480, "score": 30}),
    ("algoperf_jax_resnet_largebn_spikes.csv", "csv", 5921, {"loss": 5549, "score": 372}),
    ("algoperf_pt_criteo_shampoo_nan.csv", "csv", 100, {"loss": 63, "train/loss": 1}),
    ("algoperf_pt_wmt_cyclic_evalonly.csv", "csv", 59, {"train/loss": 58}),
    ("hf_trainer_state_mistral_lora.json", "trainer_state", 867, {"loss": 866, "train_loss": 1}),
    ("llamafactory_trainer_log_mistral.jsonl", "jsonl", 867, {"loss": 866, "throughput": 867}),
    ("lightning_metrics_slm_v0.csv", "csv", 2834, {"train_loss_step": 2814, "val_loss": 10}),
    ("lightning_metrics_slm_v28.csv", "csv", 154, {"train_loss_step": 114, "val_loss": 20}),
    ("nanogpt_mup_coordcheck_sp_w2048.csv", "csv", 11, {"mfu": 11, "attn_act_abs_mean": 10}),
    ("dreamer_metrics_fetchreach.jsonl", "jsonl", 86, {"train/return": 86}),
    ("nmt_trainlog_netra.jsonl", "jsonl", 1992, {"loss": 1989, "val_loss": 3}),
    ("tb_export_grad_norm.csv", "tensorboard", 1000, {"tb_export_grad_norm": 1000}),
    ("tb_export_actor_loss.csv", "tensorboard", 1000, {"tb_export_actor_loss": 1000}),
    ("mmseg_log_potato.json", "jsonl", 4200, {"loss": 4000, "mIoU": 200}),
    ("mmengine_scalars_pose.json", "jsonl", 802, {"loss": 789, "coco/AP .5": 13}),
    ("guided_diffusion_progress_classifier.csv", "csv", 33, {"grad_norm": 33}),
    ("ppo_icm_hopper_run.csv", "csv", 123, {"total timesteps": 123, "total_loss": 122}),
    ("mae_deit_log_finetune.txt", "jsonl", 100, {"train_loss": 100}),
    ("slm_metrics_dup_steps.jsonl", "jsonl", 398, {"loss": 398}),
    ("detectron2_metrics_gdp.json", "jsonl", 77, {"total_loss": 77}),
    ("yolo_results_bone.csv", "csv", 10, {"train/seg_loss": 10}),
    ("unet_train_log_dup_epoch.csv", "csv", 31, {"iou": 31}),
    ("keras_csvlogger_carnd.csv", "csv", 5, {"val_loss": 5}),
    ("mamba_integer_metrics.jsonl", "jsonl", 227, {"grad/norm_gamma": 227}),
    ("hf_trainer_state_llama3_nan_loss0.json", "trainer_state", 10, {"grad_norm": 10}),
    ("hf_trainer_state_musicgen_one_nan.json", "trainer_state", 8, {"grad_norm": 8}),
    ("wandb_history_dqn.jsonl", "jsonl", 198, {"episodic_reward": 98, "_step": 198}),
    ("wandb_export_charts_nanogpt.csv", "csv", 386, {"Step": 386}),
]


@needs_logs
@pytest.mark.parametrize(("name", "format_name", "rows", "filled"), ROWS)
def test_rows_and_cells(name: str, format_name: str, rows: int, filled: dict[str, int]) -> None:
    table = read_log([REAL / name])
    assert table.format == format_name
    assert table.rows == rows
    assert {column: points(table, column) for column in filled} == filled
    assert table.kinds[next(iter(filled))] == "number"


@needs_logs
def test_first_places_that_are_not_finite() -> None:
    table = read_log([REAL / "algoperf_jax_deepspeech_nadamp_inf.csv"])
    norm = table.load(["global_step", "grad_norm"])
    infinite = np.isinf(norm["grad_norm"].value) & norm["grad_norm"].logged
    assert int(infinite.sum()) == 28
    steps = norm["global_step"].value[infinite]
    assert (steps.min(), steps.max()) == (19500.0, 23800.0)
    assert not (np.isnan(norm["grad_norm"].value) & norm["grad_norm"].logged).any()

    llama = read_log([REAL / "hf_trainer_state_llama3_nan_loss0.json"])
    assert column(llama, "grad_norm") == ["<NaN>"] * 10
    assert column(llama, "loss").count(0.0) == 9

    musicgen = read_log([REAL / "hf_trainer_state_musicgen_one_nan.json"])
    assert column(musicgen, "grad_norm").count("<NaN>") == 1
    at = column(musicgen, "grad_norm").index("<NaN>")
    assert column(musicgen, "step")[at] == 8.0


@needs_logs
def test_empty_cells_are_missing_and_not_nan() -> None:
    """The same run's console prints NaN from step 63 on; the table has empty cells there."""
    table = read_log([REAL / "algoperf_pt_criteo_shampoo_nan.csv"])
    loss = table.load(["global_step", "loss"])
    last = loss["global_step"].value[loss["loss"].logged].max()
    assert last == 62.0
    assert np.isfinite(loss["loss"].value[loss["loss"].logged]).all()


@needs_logs
def test_kinds_of_rows() -> None:
    mistral = read_log([REAL / "hf_trainer_state_mistral_lora.json"])
    assert mistral.row_kind == ("train",) * 866 + ("summary",)
    assert mistral.facts["logging_steps"] == "10"
    potato = read_log([REAL / "mmseg_log_potato.json"])
    assert potato.row_kind is not None
    assert (potato.row_kind.count("train"), potato.row_kind.count("val")) == (4000, 200)
    assert potato.line[0] == 3
    assert "an empty record {} x2 at [1, 2]" in said(potato)


@needs_logs
def test_lost_header_is_refused() -> None:
    with pytest.raises(InputError, match="bytes 0 to 19573 are NUL, the header is lost"):
        read_log([REAL / "guided_diffusion_progress_medseg_nulhdr.csv"])


@needs_logs
def test_runs_of_a_chart_stay_columns() -> None:
    table = read_log([REAL / "wandb_export_charts_nanogpt.csv"])
    assert len(table.names) == 25
    assert sum(name.endswith("__MAX") for name in table.names) == 8


CONSOLES = sorted(p.name for p in REAL.glob("*") if p.suffix in (".log", ".out", ".txt"))


@needs_logs
@pytest.mark.parametrize("name", CONSOLES)
def test_console_logs_are_no_tables(name: str) -> None:
    if name != "mae_deit_log_finetune.txt":
        assert read_log([REAL / name]).detection.startswith("text: ")


OTHERS = sorted(
    path
    for folder in ("faultbench/dev", "incidents")
    for path in (SHARED / folder).glob("*")
    if path.suffix in (".csv", ".jsonl", ".parquet", ".json")
    and path.name not in ("labels.jsonl", "expected.json")
)


@needs_logs
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_labelled_runs_and_incidents_are_read_whole(path: Path) -> None:
    table = read_log([path])
    assert table.notes == ()
    assert table.rows >= 50
    assert [n for n in table.names if table.kinds[n] != "number"] in ([], ["sample_indices"])
    loaded = table.load(table.names)
    assert all(len(loaded[name].value) == table.rows for name in table.names)
