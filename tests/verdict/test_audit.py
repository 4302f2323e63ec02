"""The audit: the score, what each gap costs in this log's numbers, lines that are code."""

from __future__ import annotations

import ast
import json
from itertools import combinations
from pathlib import Path

import pytest

from stabdiag.diagnose import diagnose
from stabdiag.findings import Audit, AuditItem
from stabdiag.rules.monitoring import (
    AUDIT_POINTS,
    AUDIT_SCORED,
    AUDIT_SHARES,
    OVERFLOW_POINTS,
)
from stabdiag.settings import Settings
from stabdiag.verdict.logging_lines import FRAMEWORKS, lines_for
from tests.command_line import Command
from tests.make_runs import Columns, healthy, healthy_layers, run_from

POINTS = (*AUDIT_POINTS, *OVERFLOW_POINTS)
ROOT = Path(__file__).resolve().parents[2]


def audit(columns: Columns, **parts: object) -> Audit:
    report = diagnose(run_from(columns, **parts), Settings())  # type: ignore[arg-type]
    assert report.audit is not None
    return report.audit


def cost(seen: Audit, metric: str) -> str:
    return next(item.cost for item in seen.items if item.metric == metric)


def test_a_full_log_has_full_marks_and_nothing_to_add() -> None:
    columns = healthy(400)
    columns["val_loss"] = columns["loss"]
    ids = [f"b{t}" for t in range(400)]
    seen = audit(columns, layers=healthy_layers(400), batch={"batch_id": ids})
    assert seen.score == 100
    assert set(seen.lines.values()) == {()}
    assert all(item.cost == "" for item in seen.items)


def test_the_points_are_of_100() -> None:
    assert sum(AUDIT_POINTS.values()) == 100


def test_how_it_is_scored_is_said_as_it_is_done() -> None:
    halves = {status for status, share in AUDIT_SHARES.items() if share == 0.5}
    assert halves == {"sparse", "averaged", "partial", "short"}
    assert all(status in AUDIT_SCORED for status in halves)
    assert AUDIT_SHARES["post_clip"] == 0.25
    assert "a quarter after clipping" in AUDIT_SCORED


def test_each_gap_costs_its_points() -> None:
    columns = healthy(400)
    without = {name: values for name, values in columns.items() if name != "lr"}
    assert audit(columns).score - audit(without).score == AUDIT_POINTS["lr"]
    assert "lost schedule" in cost(audit(without), "lr")


def test_a_coarse_log_says_what_can_not_be_seen_within_its_cadence() -> None:
    seen = audit(healthy(400, cadence=10))
    assert "less than 10 steps" in cost(seen, "grad_norm")
    assert seen.score < audit(healthy(400)).score


def test_the_parameter_norm_as_often_as_asked_has_its_points() -> None:
    """A run of 400 steps holds four of them."""
    columns = healthy(400)
    columns["param_norm"] = [
        v if t % 100 == 0 else None for t, v in enumerate(columns["param_norm"])
    ]  # type: ignore[assignment]
    seen = {item.metric: item for item in audit(columns).items}
    assert seen["param_norm"].status == "ok"
    assert seen["param_norm"].found == "every 100 steps"


def test_the_norm_of_each_weight_matrix_is_what_the_handbook_asks() -> None:
    columns = {name: cells for name, cells in healthy(400).items() if name != "param_norm"}
    seen = audit(columns, layers=healthy_layers(400))
    assert cost(seen, "param_norm") == ""
    assert cost(seen, "grad_param_ratio") == ""
    assert seen.score == audit(healthy(400), layers=healthy_layers(400)).score


@pytest.mark.parametrize(
    ("there", "lacks"), [("grad_norm", "too large for its weights"), ("param_norm", "step 4")]
)
def test_one_norm_of_each_layer_is_half_of_what_is_asked(there: str, lacks: str) -> None:
    layers = {n: v for n, v in healthy_layers(400).items() if n.startswith(f"{there}/")}
    whole, half = (
        audit(healthy(400), layers=healthy_layers(400)),
        audit(healthy(400), layers=layers),
    )
    assert whole.score - half.score == AUDIT_POINTS["layers"] / 2
    assert lacks in cost(half, "layers")
    assert whole.score > audit(healthy(400)).score


def test_a_short_log_of_every_step_is_not_asked_to_log_more_often() -> None:
    assert cost(audit(healthy(10)), "loss") == (
        "too few points to judge by: a longer stretch of the run is needed"
    )


def test_a_norm_after_clipping_is_no_evidence() -> None:
    columns = healthy(400)
    columns["grad_norm"] = columns["grad_norm"].clip(max=0.5)
    assert "clip value" in cost(audit(columns), "grad_norm")


def every(steps: int, columns: Columns) -> Columns:
    return {
        name: [v if t % steps == 0 else None for t, v in enumerate(cells)]
        for name, cells in columns.items()
    }


def item(seen: Audit, metric: str) -> AuditItem | None:
    return next((one for one in seen.items if one.metric == metric), None)


@pytest.mark.parametrize(
    ("grad", "param", "status"),
    [(1, 100, "ok"), (10, 200, "ok"), (20, 100, "sparse"), (10, 400, "sparse")],
)
def test_how_often_each_norm_of_the_layers_is_logged(grad: int, param: int, status: str) -> None:
    full = healthy_layers(1200)
    layers = every(grad, {n: v for n, v in full.items() if n.startswith("grad_norm/")})
    layers |= every(param, {n: v for n, v in full.items() if n.startswith("param_norm/")})
    seen = item(audit(healthy(1200), layers=layers), "layers")
    assert seen is not None
    assert seen.status == status
    often = "every step" if grad == 1 else f"every {grad} steps"
    assert seen.found == f"grad norm {often}, param norm every {param} steps"
    assert ("which was first" in seen.cost) == (status == "sparse")


def test_sparse_layer_norms_do_not_stand_for_the_parameter_norm() -> None:
    columns = {name: cells for name, cells in healthy(1200).items() if name != "param_norm"}
    seen = item(audit(columns, layers=every(300, healthy_layers(1200))), "param_norm")
    assert seen is not None
    assert (seen.status, seen.found) == ("sparse", "every 300 steps")


def test_a_quiet_run_is_not_asked_for_its_loss_scale() -> None:
    seen = audit(healthy(400))
    assert item(seen, "loss_scale") is None
    assert item(seen, "activation_max") is None


def nan_run(**parts: object) -> Audit:
    columns = healthy(400)
    for name in ("loss", "grad_norm"):
        columns[name] = [v if t < 300 else float("nan") for t, v in enumerate(columns[name])]
    return audit(columns, **parts)


def test_where_overflow_is_in_question_scale_and_activations_count() -> None:
    seen = nan_run()
    for metric in OVERFLOW_POINTS:
        asked = item(seen, metric)
        assert asked is not None
        assert (asked.status, asked.points, asked.of) == ("missing", 0, OVERFLOW_POINTS[metric])
        assert asked.cost
    assert "scaler.get_scale()" in "\n".join(seen.lines["pytorch"])
    assert "activations=True" in "\n".join(seen.lines["hf"])
    layers = every(10, {f"activation_max/h.{i}": [1.0 + i] * 400 for i in range(3)})
    closed = item(nan_run(layers=layers), "activation_max")
    assert closed is not None
    assert (closed.status, closed.found, closed.points) == ("ok", "every 10 steps", closed.of)


def test_bf16_has_no_loss_scale_and_fp16_has() -> None:
    assert item(nan_run(facts={"bf16": "True"}), "loss_scale") is None
    quiet = audit(healthy(400), facts={"fp16": "True"})
    assert item(quiet, "loss_scale") is not None
    assert item(quiet, "activation_max") is not None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_lines_are_python_whatever_is_missing(framework: str) -> None:
    for size in range(1, len(POINTS) + 1):
        for gaps in combinations(POINTS, size):
            lines = lines_for(framework, gaps)
            assert lines
            assert max(map(len, lines)) <= 79
            ast.parse("\n".join(lines))


@pytest.mark.parametrize("gap", POINTS)
def test_the_lines_name_what_is_missing(gap: str) -> None:
    words = {"layers": "grad_norm/", "batch": "sample_ids", "grad_param_ratio": "param_norm"}
    assert words.get(gap, gap) in "\n".join(lines_for("pytorch", [gap]))


def test_the_command(command: Command) -> None:
    log = ROOT / "sample_logs/lr_too_high.jsonl"
    page = command("audit", log)
    assert page.code == 0
    assert " SCORE 60 " in page.out
    assert "HuggingFaceRecorder" in page.out
    assert "clip_grad_norm_" in command("audit", log, "--for", "pytorch").out
    assert json.loads(command("audit", log, "--format", "json").out)["audit"]["score"] == 60
    assert command("audit", log, "--min-score", "60").code == 0
    failed = command("audit", log, "--min-score", "61")
    assert failed.code == 1
    assert "the score is 60" in failed.err
    assert command("audit", log, "--for", "jax").code == 2
    assert command("audit", log, "--min-score", "101").code == 2


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_page_narrows_where_it_is_piped_too(
    command: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """All but code, which is to be pasted as it is."""
    monkeypatch.setenv("COLUMNS", str(width))
    page = command("audit", ROOT / "sample_logs/fp16_overflow.jsonl").out
    words, _, code = page.partition("Lines to add")
    assert width - 10 < max(map(len, words.splitlines())) <= width
    assert max(map(len, code.splitlines())) <= 80
