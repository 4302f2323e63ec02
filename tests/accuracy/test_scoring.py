"""The measures on answers made by hand, one small bench at a time."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.answers import Answer, answer_of
from tests.accuracy.labels import BenchError, Label, read_labels, same_layer, select
from tests.accuracy.scoring import (
    FULL_LOG,
    Logged,
    Measure,
    Scores,
    judge,
    score,
    with_own_hit_rate,
)
from tests.accuracy.shares import Share

EVERYTHING = Logged(at_all=FULL_LOG, every_step=FULL_LOG)


def label(cause: str = "data", **changes: Any) -> Label:
    fields: dict[str, Any] = {
        "path": Path("bench/x.csv"),
        "run_id": "x",
        "fault": "healthy" if cause == "none" else f"{cause}_fault",
        "cause": cause,
        "acceptable": (),
        "onset_step": None if cause == "none" else 300,
        "onset_logged_step": None if cause == "none" else 300,
        "loss_onset_step": None,
        "grad_onset_step": None,
        "layers": (),
        "group": None,
        "visible": None,
        "logging": {"style": "plain", "cadence": 1, "layers": "all", "grad_norm": "pre"},
        "columns": {"loss": "loss", "layer_grad_norm": "gradients/*"},
    }
    return Label(**(fields | changes))


def scores(*pairs: tuple[Label, Answer], logged: Logged = EVERYTHING) -> Scores:
    return score([judge(truth, answer, logged) for truth, answer in pairs])


def measure(result: Scores, name: str) -> Measure:
    (found,) = [entry for entry in result.measures if entry.name.strip() == name]
    return found


def test_an_acceptable_cause_is_right_and_inconclusive_is_wrong() -> None:
    result = scores(
        (label("data"), Answer("data")),
        (label("overflow", acceptable=("data",)), Answer("data")),
        (label("optimizer"), Answer("inconclusive")),
        (label("optimizer", acceptable=("inconclusive",)), Answer("inconclusive")),
        (label("none"), Answer("none")),
    )
    assert measure(result, "cause right, faulty runs").share == Share(3, 4)
    assert measure(result, "cause right, all runs").share == Share(4, 5)
    assert measure(result, "inconclusive, faulty runs").share == Share(2, 4)
    assert result.recall == {
        "data": Share(1, 1),
        "none": Share(1, 1),
        "optimizer": Share(1, 2),
        "overflow": Share(1, 1),
    }
    assert measure(result, "macro recall over causes").number == pytest.approx(3.5 / 4)


def test_quiet_on_healthy_takes_none_alone_and_counts_loud_findings_apart() -> None:
    result = scores(
        (label("none", acceptable=("optimizer",)), Answer("optimizer", loud=1)),
        (label("none"), Answer("none", loud=2)),
        (label("none"), Answer("none")),
        (label("none"), Answer("inconclusive")),
    )
    assert measure(result, "healthy: verdict none").share == Share(2, 4)
    assert measure(result, "healthy: no warning or error").share == Share(2, 4)
    assert result.recall == {"none": Share(3, 4)}


def test_only_visible_faults_and_only_full_logs_have_their_own_lines() -> None:
    hidden = label("data", visible={"loss": False, "grad": False})
    seen = label("data", visible={"loss": False, "grad": True})
    result = score(
        [
            judge(hidden, Answer("none"), EVERYTHING),
            judge(seen, Answer("data"), Logged(at_all=FULL_LOG, every_step=frozenset({"loss"}))),
            judge(label("data"), Answer("inconclusive"), EVERYTHING),
            judge(label("data"), Answer("data"), Logged(at_all=frozenset({"loss", "lr"}))),
        ]
    )
    assert measure(result, "fault visible").share == Share(2, 3)
    assert measure(result, "LR and param norm logged").share == Share(1, 3)
    assert measure(result, "both at every step").share == Share(0, 2)
    assert measure(result, "all four at every step").share == Share(1, 2)


def test_onset_counts_logged_points_to_the_nearest_of_the_true_steps() -> None:
    late = label(
        "data",
        onset_step=405,
        onset_logged_step=410,
        loss_onset_step=430,
        logging={"cadence": 10},
    )
    result = scores(
        (late, Answer("data", onset_step=420)),  # 1 point from 410 and from 430
        (late, Answer("data", onset_step=460)),  # 3 points from 430
        (late, Answer("none")),
        (label("data", onset_step=0), Answer("data", onset_step=900)),  # acts from the start
        (label("none"), Answer("data", onset_step=900)),
    )
    assert measure(result, "onset within 1 point").share == Share(1, 3)
    assert measure(result, "onset within 5 points").share == Share(2, 3)
    median = measure(result, "onset, median points off")
    assert (median.number, median.n) == (2.0, 2)


def test_a_log_that_starts_late_acts_from_its_own_first_step() -> None:
    from_start = label("data", onset_step=120000, logging={"first_step_offset": 120000})
    assert from_start.onsets == ()


def test_layers_are_matched_by_column_or_without_the_metric() -> None:
    guilty = label("architecture", layers=("gradients/h.1.mlp.weight",))
    result = scores(
        (guilty, Answer("architecture", layers=("h.1.mlp.weight",))),
        (guilty, Answer("architecture", layers=("h.0", "gradients/h.1.mlp.weight"))),
        (guilty, Answer("architecture", layers=("a", "b", "c", "h.1.mlp.weight"))),
        (guilty, Answer("architecture", layers=("mlp.weight",))),
        (label("architecture"), Answer("architecture", layers=("a",))),
    )
    assert measure(result, "layer first").share == Share(1, 4)
    assert measure(result, "layer among first three").share == Share(2, 4)


def test_a_suffix_pattern_names_the_layer_too() -> None:
    suffixed = label(columns={"layer_grad_norm": "*.grad_norm"})
    assert same_layer("h.0.mlp", suffixed, "h.0.mlp.grad_norm")
    assert not same_layer("h.0.ml", suffixed, "h.0.mlp.grad_norm")


def test_calibration_leaves_out_inconclusive_and_failed_runs() -> None:
    result = scores(
        (label("data"), Answer("data", 0.95)),
        (label("data"), Answer("overflow", 0.95)),
        (label("none"), Answer("none", 0.9)),
        (label("data"), Answer("inconclusive", 0.99)),
        (label("data"), Answer("failed", error="no loss")),
    )
    assert measure(result, "wrong though said with >= 0.9").share == Share(1, 3)
    assert measure(result, "Brier score").number == pytest.approx((0.05**2 + 0.95**2 + 0.1**2) / 3)
    assert measure(result, "calibration error (ECE)").number == pytest.approx(0.8 / 3)
    assert measure(result, "no report came out").share == Share(1, 5)


def test_a_baseline_says_its_own_hit_rate() -> None:
    judged = [
        judge(label("data"), Answer("data"), EVERYTHING),
        judge(label("none"), Answer("data"), EVERYTHING),
    ]
    result = score(with_own_hit_rate(judged))
    assert measure(result, "Brier score").number == pytest.approx(0.25)
    assert measure(result, "calibration error (ECE)").number == pytest.approx(0.0)


def test_groups_show_where_it_is_weak() -> None:
    sparse = label("data", logging={"style": "hf", "cadence": 10, "layers": "none"})
    result = scores((sparse, Answer("none")), (label("none"), Answer("none")))
    cadence = {group.name: (group.right, group.right_faulty) for group in result.groups["cadence"]}
    assert cadence == {"1": (Share(1, 1), Share(0, 0)), "10": (Share(0, 1), Share(0, 1))}
    assert [group.name for group in result.groups["cadence"]] == ["1", "10"]
    logged = {group.name: group.right for group in result.groups["what was logged"]}
    assert logged["no per-layer norms"] == Share(0, 1)
    assert logged["every 10 steps or less"] == Share(0, 1)


def test_an_empty_bench_has_no_measures() -> None:
    result = score([])
    assert measure(result, "cause right, all runs").share == Share(0, 0)
    assert math.isnan(measure(result, "macro recall over causes").number)


def test_the_answer_is_taken_from_the_report() -> None:
    report = {
        "verdict": {"cause": "data", "probability": 0.7, "onset_step": 12, "layers": []},
        "layers": [{"layer": name, "rank": rank} for name, rank in (("b", 2), ("a", 1), ("c", 3))],
        "findings": [{"severity": severity} for severity in ("info", "warning", "error")],
    }
    assert answer_of(report) == Answer("data", 0.7, 12, ("a", "b", "c"), loud=2)
    named = report | {"verdict": {**report["verdict"], "layers": ["z"]}}  # type: ignore[dict-item]
    assert answer_of(named).layers == ("z",)
    assert answer_of({"error": "no loss"}) == Answer("failed", error="no loss")


def test_labels_are_read_in_order_and_selected(tmp_path: Path) -> None:
    entries = [
        {"file": f"d{number}.csv", "id": f"run{number}", "fault": fault, "cause": cause}
        for number, (fault, cause) in enumerate(
            [("healthy", "none"), ("bad_batch", "data"), ("bad_init", "initialization")]
        )
    ]
    lines = "\n".join(json.dumps(entry) for entry in entries)
    (tmp_path / "labels.jsonl").write_text(lines, encoding="utf-8")
    labels = read_labels(tmp_path)
    assert [entry.path for entry in labels] == [tmp_path / f"d{number}.csv" for number in range(3)]
    assert [entry.fault for entry in select(labels, "bad_*", None)] == ["bad_batch", "bad_init"]
    assert [entry.cause for entry in select(labels, None, 2)] == ["none", "data"]
    assert [entry.run_id for entry in select(labels, "d2.csv", None)] == ["run2"]


def test_a_bad_bench_says_where(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"labels\.jsonl is not there"):
        read_labels(tmp_path)
    (tmp_path / "labels.jsonl").write_text('{"file": "a.csv"}\n', encoding="utf-8")
    with pytest.raises(BenchError, match="line 1"):
        read_labels(tmp_path)
