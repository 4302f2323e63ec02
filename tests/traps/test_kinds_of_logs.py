"""Logs that mix what must be told apart: kinds of rows, units of the step, signs, cadences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stabdiag import analyze
from stabdiag.findings import Report
from tests.make_runs import F64, Cell, healthy, spike
from tests.traps.said import findings, quiet, report_of, serious

POINTS = 400
AT = 250


def lines(path: Path, rows: list[dict[str, Cell]]) -> Report:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return analyze(path)


def lightning(columns: dict[str, F64], *, every: int = 50) -> dict[str, list[Cell]]:
    """Train rows, validation rows and epoch rows in one table; three share a step."""
    log: dict[str, list[Cell]] = {
        k: [] for k in ("epoch", "step", "train_loss_epoch", "train_loss_step", "val_loss")
    }

    def add(**known: Cell) -> None:
        for name, cells in log.items():
            cells.append(known.get(name))

    for i, loss in enumerate(columns["loss"].tolist()):
        add(step=i, epoch=i // every, train_loss_step=loss)
        if i % every == every - 1:
            add(step=i, epoch=i // every, val_loss=loss + 0.4)
            mean = float(np.mean(columns["loss"][i - every + 1 : i + 1]))
            add(step=i, epoch=i // every, train_loss_epoch=mean)
    return log


def test_three_rows_of_one_step_are_no_restart(tmp_path: Path) -> None:
    report = report_of(tmp_path, lightning(healthy(POINTS)))
    assert quiet(report)
    assert len(report.run.segments) == 1
    assert report.run.series["loss"].points == POINTS
    assert report.run.series["val_loss"].points == POINTS // 50


def test_a_spike_among_mixed_rows_is_found_at_its_step(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    spike(columns, "loss", AT, 3.0)
    report = report_of(tmp_path, lightning(columns))
    assert [f.step for f in findings(report, "SD101")] == [AT]


def test_a_validation_loss_under_the_name_of_the_loss_is_told_by_its_rows(tmp_path: Path) -> None:
    """OpenMMLab: `mode` tells train from val; a val row's `iter` is the size of the val set."""
    columns = healthy(POINTS)
    rows: list[dict[str, Cell]] = []
    for i, loss in enumerate(columns["loss"].tolist()):
        rows.append({"mode": "train", "epoch": 1, "iter": i + 1, "lr": 0.01, "loss": loss})
        if i % 100 == 99:
            rows.append({"mode": "val", "epoch": 1, "iter": 37, "lr": 0.01, "loss": loss + 3.0})
    report = lines(tmp_path / "20240101.log.json", rows)
    assert quiet(report)
    assert report.run.last_step == POINTS


def test_a_validation_step_that_is_an_epoch_is_no_restart(tmp_path: Path) -> None:
    """MMEngine: `step` counts iterations on train rows and epochs on val rows."""
    columns = healthy(POINTS)
    rows: list[dict[str, Cell]] = []
    for i in range(POINTS):
        row: dict[str, Cell] = {
            "lr": 1e-3,
            "loss": float(columns["loss"][i]),
            "epoch": 1 + i // 100,
            "step": i + 1,
        }
        row |= {"grad_norm": float(columns["grad_norm"][i]), "data_time": 0.01}
        rows.append(row)
        if i % 100 == 99:
            rows.append({"coco/bbox_mAP": 0.1 * (i // 100), "step": 1 + i // 100})
    report = lines(tmp_path / "scalars.json", rows)
    assert quiet(report)
    assert len(report.run.segments) == 1


def test_a_call_counter_beside_the_training_step(tmp_path: Path) -> None:
    """W&B: `_step` counts calls of log(), two a training step."""
    columns = healthy(POINTS)
    spike(columns, "loss", AT, 3.0)
    rows: list[dict[str, Cell]] = []
    for i in range(POINTS):
        rows.append({"_step": 2 * i, "trainer/global_step": i, "loss": float(columns["loss"][i])})
        rows.append({"_step": 2 * i + 1, "trainer/global_step": i, "gpu/temp": 61.0})
    report = lines(tmp_path / "wandb-history.jsonl", rows)
    assert [f.step for f in findings(report, "SD101")] == [AT]


@pytest.mark.parametrize("offset", [-4.0, -2.6, -100.0])
def test_a_signed_loss_is_judged_like_any_other(tmp_path: Path, offset: float) -> None:
    columns = healthy(POINTS)
    columns["loss"] += offset
    assert quiet(report_of(tmp_path, columns))
    spike(columns, "loss", AT, 3.0, 3)
    report = report_of(tmp_path, columns)
    assert [f.step for f in findings(report, "SD101")] == [AT]


def test_a_noisy_policy_loss_around_zero_is_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    columns["loss"] = 0.02 * np.random.default_rng(3).standard_normal(POINTS)
    report = report_of(tmp_path, columns)
    assert "SD101" not in serious(report)
    assert "SD103" not in serious(report)


@pytest.mark.parametrize("factor", [1e-3, 1.0 / np.log(2.0), 150.0])
def test_a_healthy_loss_in_another_unit_is_healthy(tmp_path: Path, factor: float) -> None:
    """Bits (fairseq), sums over a sequence (CTC), squared errors: not every loss is in nats."""
    columns = healthy(POINTS)
    columns["loss"] = factor * (1.8 * columns["loss"])  # a vocabulary of 20,000
    columns["grad_norm"] *= factor
    columns["param_norm"] *= 100.0 * max(1.0, factor)
    report = report_of(tmp_path, columns)
    assert report.verdict.cause == "none"
    assert findings(report, "SD501") == []


def sampled(columns: dict[str, F64], dense: int, every: int) -> dict[str, F64]:
    """The first `dense` steps one by one, then every `every` steps."""
    keep = np.arange(columns["step"].size)
    keep = keep[(keep < dense) | (keep % every == 0)]
    return {k: v[keep] for k, v in columns.items()}


def test_a_cadence_that_changes_is_no_event(tmp_path: Path) -> None:
    assert quiet(report_of(tmp_path, sampled(healthy(20_000), 100, 100)))


def test_a_spike_after_a_change_of_the_cadence_is_found(tmp_path: Path) -> None:
    columns = sampled(healthy(20_000), 100, 100)
    at = int(np.flatnonzero(columns["step"] == 12_000)[0])
    spike(columns, "loss", at, 3.0)
    report = report_of(tmp_path, columns)
    assert [f.step for f in findings(report, "SD101")] == [12_000]


def test_parts_without_a_total_are_summed(tmp_path: Path) -> None:
    """Ultralytics: one row an epoch, box, cls and dfl losses and no total."""
    columns = healthy(200)
    log = {
        "epoch": columns["step"] + 1,
        "train/box_loss": 0.5 * columns["loss"],
        "train/cls_loss": 0.3 * columns["loss"],
        "train/dfl_loss": 0.2 * columns["loss"],
        "lr/pg0": columns["lr"],
    }
    spike(log, "train/cls_loss", 150, 3.0)
    report = report_of(tmp_path, log)
    assert [f.step for f in findings(report, "SD101")] == [151]
    assert report.run.axis == "epoch"


def test_shuffled_rows_are_put_in_order(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    order = np.random.default_rng(5).permutation(POINTS)
    assert quiet(report_of(tmp_path, {k: v[order] for k, v in columns.items()}))


def test_minima_and_maxima_of_a_chart_export_are_not_the_loss(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    name = "gpt2.small-run/v1 - train/loss"
    high = columns["loss"].copy()
    high[AT] += 9.0
    log = {
        "Step": columns["step"],
        name: columns["loss"],
        f"{name}__MIN": columns["loss"],
        f"{name}__MAX": high,
    }
    assert quiet(report_of(tmp_path, log))


def test_a_log_without_a_loss_is_not_called_healthy(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    report = report_of(tmp_path, {k: columns[k] for k in ("step", "grad_norm", "lr")})
    assert report.verdict.health == "inconclusive"
    assert report.workflow[0].status == "skipped"
    assert "loss" in report.workflow[0].reason


@pytest.mark.parametrize("points", [1, 2, 3, 8, 11])
def test_a_handful_of_points_is_not_called_healthy(tmp_path: Path, points: int) -> None:
    report = report_of(tmp_path, {k: v[:points] for k, v in healthy(POINTS).items()})
    assert report.verdict.cause == "inconclusive"
    assert report.verdict.health == "inconclusive"


@pytest.mark.parametrize("points", [1, 2, 3, 8])
def test_no_check_passes_on_a_handful_of_points(tmp_path: Path, points: int) -> None:
    report = report_of(tmp_path, {k: v[:points] for k, v in healthy(POINTS).items()})
    assert report.workflow[0].status == "skipped"
    passed = {c.name for c in report.checks if c.status == "passed"}
    assert not passed & {"no loss spike or shift", "no slow divergence", "no plateau"}
