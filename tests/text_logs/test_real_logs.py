"""Recorded console logs give the rows that a person counts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stabdiag.model import Column, LogTable
from stabdiag.readers.text_log import looks_like_text_log, read_text

REAL_LOGS = Path(__file__).resolve().parents[2] / "../shared/real_logs"

pytestmark = pytest.mark.skipif(not REAL_LOGS.is_dir(), reason="recorded logs are not here")


@cache
def table_of(name: str) -> LogTable:
    path = REAL_LOGS / name
    if not path.is_file():
        pytest.skip(f"{name} is not here")
    return read_text(Path(name), path.read_text(encoding="utf-8", errors="replace"))


def column(name: str, key: str) -> Column:
    return table_of(name).load([key])[key]


def steps_where(name: str, key: str, test: Callable[[np.ndarray], np.ndarray]) -> list[int]:
    """Steps of the rows where `key` is logged and `test` holds for its value."""
    table = table_of(name)
    columns = table.load([table.names[0], key])
    step, value = columns[table.names[0]], columns[key]
    return step.value[value.logged & test(value.value)].astype(int).tolist()


def not_finite(value: np.ndarray) -> np.ndarray:
    return ~np.isfinite(value)


# file: format, train rows, other rows by kind, step column, first and last train step
SHAPES = {
    "algoperf_pt_wmt_shampoo_console.log": (
        "AlgoPerf console", 335, {"eval": 53}, "global_step", 0, 117000,
    ),
    "build_nanogpt_console_bigger.out": (
        "build-nanogpt console", 19073, {"eval": 156}, "step", 0, 19072,
    ),
    "build_nanogpt_logtxt_nowarmup.txt": (
        "build-nanogpt log.txt", 19073, {"eval": 156}, "step", 0, 19072,
    ),
    "coqui_trainer_0_log_vits.txt": (
        "Coqui console", 246, {"eval": 171}, "GLOBAL_STEP", 1000025, 1006150,
    ),
    "fairseq_console_overflow_excerpt.log": (
        "fairseq console", 13, {"eval": 1}, "num_updates", 10198, 10210,
    ),
    "hf_console_qwen06_multi_run.txt": (
        "HF Trainer console", 10000, {"eval": 19}, "step", 1, 10000,
    ),
    "hf_console_ruadapt4_grct.txt": (
        "HF Trainer console", 39168, {"eval": 78, "summary": 3}, "step", 1, 13056,
    ),
    "llmc_main_gpt2_124m.log": ("llm.c main.log", 19560, {"eval": 80}, "s", 0, 19559),
    "megatron_ds_console_nan_excerpt.log": ("Megatron console", 3, {}, "iteration", 5426, 5428),
    "modded_nanogpt_hyp_attn_nan_step20.txt": (
        "modded-nanogpt log", 100, {"eval": 101}, "step", 10, 1000,
    ),
    "modded_nanogpt_soap_trainloss.txt": (
        "modded-nanogpt log", 6000, {"eval": 49}, "step", 1, 6000,
    ),
    "modded_nanogpt_tinystories_nan_step430.txt": (
        "modded-nanogpt log", 100, {"eval": 101}, "step", 10, 1000,
    ),
    "nanogpt_console_fp16_nan_excerpt.log": (
        "nanoGPT console", 15, {"eval": 1}, "iter", 2920, 3060,
    ),
    "nanogpt_console_wandb_output_a.log": (
        "nanoGPT console", 2547, {"eval": 13}, "iter", 0, 2546,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_rows_and_steps(name: str) -> None:
    form, train, others, step_name, first, last = SHAPES[name]
    table = table_of(name)
    assert table.format == form
    assert Counter(table.row_kind) == Counter({"train": train, **others})
    assert table.names[0] == step_name
    step = column(name, step_name)
    assert table.row_kind is not None
    rows = np.flatnonzero(step.logged & (np.array(table.row_kind) == "train"))
    assert (step.value[rows[0]], step.value[rows[-1]]) == (first, last)
    assert table.line.shape == (table.rows,)
    assert np.all(np.diff(table.line) >= 0)


@pytest.mark.parametrize("name", SHAPES)
def test_the_head_is_enough_to_detect_it(name: str) -> None:
    path = REAL_LOGS / name
    if not path.is_file():
        pytest.skip(f"{name} is not here")
    size = path.stat().st_size
    head = path.read_text(encoding="utf-8", errors="replace")[: max(65536, size // 4)]
    assert looks_like_text_log(head)


@pytest.mark.parametrize(
    ("name", "key", "first", "count"),
    [
        ("modded_nanogpt_hyp_attn_nan_step20.txt", "avg_train_loss", 20, 99),
        ("modded_nanogpt_hyp_attn_nan_step20.txt", "val_loss", 20, 99),
        ("modded_nanogpt_tinystories_nan_step430.txt", "avg_train_loss", 430, 58),
        ("nanogpt_console_fp16_nan_excerpt.log", "loss", 3010, 6),
        ("megatron_ds_console_nan_excerpt.log", "lm loss", 5426, 3),
        ("megatron_ds_console_nan_excerpt.log", "grad norm", 5426, 3),
    ],
)
def test_first_nan(name: str, key: str, first: int, count: int) -> None:
    steps = steps_where(name, key, np.isnan)
    assert (steps[0], len(steps)) == (first, count)


@pytest.mark.parametrize(
    "name",
    [
        "algoperf_pt_wmt_shampoo_console.log",
        "build_nanogpt_console_bigger.out",
        "build_nanogpt_logtxt_nowarmup.txt",
        "coqui_trainer_0_log_vits.txt",
        "fairseq_console_overflow_excerpt.log",
        "llmc_main_gpt2_124m.log",
        "modded_nanogpt_soap_trainloss.txt",
        "nanogpt_console_wandb_output_a.log",
    ],
)
def test_nan_in_timing_fields_and_text_is_no_nan(name: str) -> None:
    table = table_of(name)
    for key in table.names:
        assert steps_where(name, key, not_finite) == []


def test_first_and_last_values() -> None:
    for name, key, first, last in (
        ("llmc_main_gpt2_124m.log", "trl", 11.0091, 3.2217),
        ("llmc_main_gpt2_124m.log", "norm", 15.37, 0.22),
        ("llmc_main_gpt2_124m.log", "tel", 11.0092, 3.2722),
        ("build_nanogpt_console_bigger.out", "norm", 23.1795, 0.2707),
        ("build_nanogpt_logtxt_nowarmup.txt", "val_loss", 10.9522, 3.1681),
        ("nanogpt_console_wandb_output_a.log", "loss", 10.9766, 3.5074),
        ("algoperf_pt_wmt_shampoo_console.log", "loss", 11.6913, 3.47801),
    ):
        logged = column(name, key)
        values = logged.value[logged.logged]
        assert (values[0], values[-1]) == (first, last), (name, key)


def test_hugging_face_overflows_are_where_the_rows_are() -> None:
    name = "hf_console_qwen06_multi_run.txt"
    assert steps_where(name, "grad_norm", np.isinf) == [4066, 8299]
    table = table_of(name)
    assert table.counted_step
    assert table.facts["fp16"] == "True"
    assert table.facts["bf16"] == "False"
    assert table.facts["max_grad_norm"] == "1.0"
    assert table.facts["logging_steps"] == "1"


def test_three_runs_in_one_console_start_over() -> None:
    name = "hf_console_ruadapt4_grct.txt"
    table = table_of(name)
    assert table.row_kind is not None
    step, epoch = column(name, "step").value, column(name, "epoch").value
    train = np.array(table.row_kind) == "train"
    starts = np.flatnonzero(np.diff(step[train]) < 0)
    assert starts.tolist() == [13055, 26111]
    assert np.flatnonzero(np.diff(epoch[train]) < -1).tolist() == [13055, 26111]
    assert step[train].max() == 13056
    grad_norm = column(name, "grad_norm")
    assert np.count_nonzero(np.isnan(grad_norm.value) & grad_norm.logged) == 6
    assert np.count_nonzero(np.isinf(grad_norm.value)) == 9


def test_a_point_printed_twice_is_one_point() -> None:
    table = table_of("algoperf_pt_wmt_shampoo_console.log")
    (note,) = [note for note in table.notes if "repeat" in note.text]
    assert note.kind == "dropped"
    assert note.count == 335
    logged = column("algoperf_pt_wmt_shampoo_console.log", "grad_norm")
    assert logged.value[logged.logged][0] == 10.3496  # the form with more digits


def test_loss_scale_collapse() -> None:
    name = "fairseq_console_overflow_excerpt.log"
    scale = column(name, "loss_scale")
    values = scale.value[scale.logged]
    assert values[0] == 0.5
    assert values[-1] == 0.0001220703125
    assert np.all(values[1:] == values[:-1] / 2)
    steps = column(name, "num_updates").value[scale.logged]
    assert steps.tolist() == list(range(10198, 10211))
    assert np.nansum(column(name, "skipped").value) == 12
    assert [note.count for note in table_of(name).notes if note.kind == "ending"] == [12]


def test_loss_scale_of_a_gan_backs_off_and_grows() -> None:
    name = "coqui_trainer_0_log_vits.txt"
    table = table_of(name)
    columns = table.load(["GLOBAL_STEP", "amp_scaler", "grad_norm_0"])
    scale = columns["amp_scaler"]
    step = columns["GLOBAL_STEP"].value[scale.logged]
    values = scale.value[scale.logged]
    changes = step[1:][np.diff(values) != 0].astype(int).tolist()
    assert changes == [1000050, 1002050, 1004000, 1006000]
    peaks = columns["grad_norm_0"].value[scale.logged]
    assert round(peaks[step == 1004500][0], 1) == 65.1


def test_how_a_run_ended() -> None:
    table = table_of("nanogpt_console_wandb_output_a.log")
    (note,) = [note for note in table.notes if note.kind == "ending"]
    assert "KeyboardInterrupt" in note.text
    assert note.count == 2
    for name in ("build_nanogpt_console_bigger.out", "algoperf_pt_wmt_shampoo_console.log"):
        assert not [note for note in table_of(name).notes if note.kind == "ending"]


def test_the_loss_that_megatron_leaves_out_is_noted() -> None:
    notes = table_of("megatron_ds_console_nan_excerpt.log").notes
    assert [(note.kind, note.count, note.rows) for note in notes] == [("repaired", 3, (1, 2, 3))]


def test_not_measured_is_missing() -> None:
    mfu = column("nanogpt_console_wandb_output_a.log", "mfu")
    assert np.count_nonzero(mfu.logged) == 2542
    assert mfu.value[mfu.logged].min() > 0
    average = column("modded_nanogpt_soap_trainloss.txt", "step_avg")
    assert np.count_nonzero(average.logged) < 6049


def test_tables_are_no_text_logs() -> None:
    for path in sorted(REAL_LOGS.glob("*.csv")):
        assert not looks_like_text_log(path.read_text(encoding="utf-8", errors="replace")[:65536])
