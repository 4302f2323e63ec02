"""What the recorder writes is what the analysis reads: names, values, restarts, the first NaN."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recorder.conftest import WHY

torch = pytest.importorskip("torch", reason=WHY)

import stabdiag
from stabdiag.recorder import Recorder
from stabdiag.recorder.parquet_parts import part_paths
from tests.recorder.loops import grads, loss_of, tiny_model

STEPS = 150
NAN, JUMP = 90, 110


def batch_of(step: int) -> Any:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(32, 8, generator=generator)
    return x, torch.tanh(x[:, :4])


def train_and_fail(path: Path) -> None:
    """A restart at 60, a gradient that is NaN at NAN, a learning rate that jumps at JUMP."""
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    options: dict[str, Any] = {"scaler": scaler, "activations": True, "part_rows": 64}
    for start, stop in ((0, 60), (50, STEPS)):
        with Recorder(model, optimizer, path, start_step=start, **options) as rec:
            for step in range(start, stop):
                optimizer.param_groups[0]["lr"] = 4.0 if step >= JUMP else 0.05
                batch = batch_of(step)
                loss = loss_of(model, batch)
                scaler.scale(loss).backward()
                if step == NAN:
                    gradient = grads(model)[2]
                    assert gradient is not None
                    gradient[0, 0] = math.nan
                rec.after_backward(loss, batch=batch, indices=[2 * step, 2 * step + 1])
                scaler.step(optimizer)
                scaler.update()
                rec.after_step()
                optimizer.zero_grad()
                if step % 50 == 49:
                    rec.log(val_loss=loss.item())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analysis")
    train_and_fail(folder / "run.jsonl")
    train_and_fail(folder / "run.parquet")
    return folder


def test_every_column_is_known(folder: Path) -> None:
    run = stabdiag.read_run(folder / "run.jsonl")
    canonical = {"loss", "grad_norm", "param_norm", "grad_param_ratio", "lr", "loss_scale"}
    assert set(run.series) >= canonical | {"skipped", "activation_max", "val_loss"}
    names = tuple(name for name, _ in tiny_model().named_parameters())
    assert run.layers["grad_norm"] == names
    assert run.layers["param_norm"] == names
    assert run.layers["activation_max"] == ("0", "1", "2")
    assert run.batch is not None
    assert list(run.batch.ids) == ["sample_ids"]
    assert set(run.batch.statistics) == {"batch/mean", "batch/std", "batch/abs_max"}


def test_the_restart_and_the_nan_are_seen(folder: Path) -> None:
    run = stabdiag.read_run(folder / "run.jsonl")
    assert [(s.first_step, s.last_step) for s in run.segments] == [(0, 59), (50, STEPS - 1)]
    grad_norm = run.series["grad_norm"]
    before = grad_norm.step < JUMP
    assert grad_norm.step[np.isnan(grad_norm.value) & before].tolist() == [NAN]
    skipped = run.series["skipped"]
    assert skipped.step[(skipped.value > 0) & (skipped.step < JUMP)].tolist() == [NAN]
    assert run.series["grad_norm"].cadence == 1


def test_the_jump_is_diagnosed(folder: Path) -> None:
    report = stabdiag.analyze(folder / "run.jsonl")
    assert report.verdict.health in ("unstable", "diverged")
    assert report.verdict.cause == "optimizer"
    assert report.verdict.onset_step is not None
    assert JUMP <= report.verdict.onset_step <= JUMP + 3


def test_parquet_parts_are_the_same_run(folder: Path) -> None:
    parts = part_paths(folder / "run.parquet")
    assert len(parts) == 3  # 64 rows at most, and a new one after the restart
    one = stabdiag.read_run(folder / "run.jsonl")
    other = stabdiag.read_run(*parts)
    assert set(other.series) == set(one.series)
    for name, series in one.series.items():
        np.testing.assert_array_equal(other.series[name].step, series.step, err_msg=name)
        np.testing.assert_array_equal(other.series[name].value, series.value, err_msg=name)
    assert other.layers == one.layers
    assert one.batch is not None
    assert other.batch is not None
    assert list(other.batch.ids["sample_ids"]) == list(one.batch.ids["sample_ids"])


def test_the_command_reads_it(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stabdiag", "analyze", "run.jsonl", "--format", "json"],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["run"]["rows"] == 60 + STEPS - 50 + 3
