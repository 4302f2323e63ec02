"""Step 4 in depth: shares of the norm, the layers at a step, the bisection plan, the outline."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path

import numpy as np
import pytest

from stabdiag.diagnose import diagnose
from stabdiag.findings import Report
from stabdiag.settings import Settings
from tests.cli.conftest import Command, command, folder  # noqa: F401  (fixtures)
from tests.make_runs import healthy, healthy_layers, run_from, spike

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "h.9.\x1b[31m']; import os; os.system('x')  # \n<b>"


def report(layers: dict[str, np.ndarray], at: int | None = None) -> Report:
    """A run that diverges at step 200, whose layers are as given."""
    columns = healthy(300)
    spike(columns, "loss", 200, 4.0, 100)
    columns["grad_norm"][190:] *= np.linspace(2.0, 40.0, 110)
    columns["lr"][195:] *= 10.0
    return diagnose(run_from(columns, layers=layers), Settings(layers_at=at))


def test_shares_of_the_norm_add_up() -> None:
    seen = report(healthy_layers(300))
    shares = [one.share for one in seen.layers]
    assert all(share is not None and 0.0 <= share <= 1.0 for share in shares)
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0, abs=0.1)
    assert sorted(one.order or 0 for one in seen.layers) == list(range(len(seen.layers)))


def test_the_layers_at_a_step() -> None:
    layers = healthy_layers(300)
    name = next(n for n in layers if n.startswith("grad_norm/") and "c_fc" in n)
    layers[name][150] *= 50.0
    moment = report(layers, at=150).layer_moment
    assert moment is not None
    assert (moment.asked, moment.step, moment.metric) == (150, 150, "grad_norm")
    assert moment.layers[0] == name.removeprefix("grad_norm/")
    share, ratio, usual = moment.share[0], moment.ratio[0], moment.usual[0]
    assert (share or 0.0) > 0.9
    assert (ratio or 0.0) > 20 * (usual or 1.0)
    square = np.array([layers[f"grad_norm/{n}"][150] ** 2 for n in moment.layers])
    assert np.allclose([s or 0.0 for s in moment.share], square / square.sum())


def test_a_step_between_logged_ones_takes_the_one_before() -> None:
    columns = healthy(60, cadence=10)
    run = run_from(columns, layers=healthy_layers(60))
    moment = diagnose(run, Settings(layers_at=205)).layer_moment
    assert moment is not None
    assert (moment.asked, moment.step) == (205, 200)


def test_what_is_not_finite_is_the_largest() -> None:
    layers = healthy_layers(300)
    name = [n for n in layers if n.startswith("grad_norm/")][4]
    layers[name][100] = math.nan
    moment = report(layers, at=100).layer_moment
    assert moment is not None
    assert moment.layers[0] == name.removeprefix("grad_norm/")
    assert math.isnan(moment.value[0])
    assert moment.share[0] is None


def test_the_plan_names_the_block_and_its_layers() -> None:
    layers = healthy_layers(300)
    guilty = "h.2.attn.c_proj.weight"
    layers[f"grad_norm/{guilty}"] = layers[f"grad_norm/{guilty}"] * 60.0
    plan = report(layers).layer_plan
    assert plan is not None
    assert guilty in plan.block
    assert any(f"Freeze {guilty}" in move.do for move in plan.moves)
    assert all(move.tells for move in plan.moves)
    assert guilty in "\n".join(plan.outline)


def test_without_a_named_layer_the_model_is_halved() -> None:
    plan = report(healthy_layers(300, blocks=8)).layer_plan
    assert plan is not None
    assert plan.block == ()
    assert "does not single out a layer" in plan.reason
    assert plan.runs == math.ceil(math.log2(1 + 8))
    assert plan.moves[0].do.startswith("Freeze wte to h.")


def test_a_healthy_run_has_no_plan() -> None:
    run = run_from(healthy(300), layers=healthy_layers(300))
    assert diagnose(run, Settings()).layer_plan is None


@pytest.mark.parametrize("named", [True, False])
def test_the_outline_is_python_whatever_a_layer_is_called(named: bool) -> None:
    layers = healthy_layers(300)
    layers[f"grad_norm/{HOSTILE}"] = layers["grad_norm/wte.weight"] * (500.0 if named else 1.0)
    layers[f"param_norm/{HOSTILE}"] = layers["param_norm/wte.weight"] * 1.0
    plan = report(layers).layer_plan
    assert plan is not None
    tree = ast.parse("\n".join(plan.outline))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert not imports
    assert all(line.isprintable() for line in plan.outline)


def test_the_command(command: Command) -> None:  # noqa: F811
    log = ROOT / "sample_logs/one_layer_dominates.csv"
    page = command("layers", log, "--step", "250")
    assert page.code == 0
    for words in (
        "Layers at step 250",
        "Bisect it",
        "Minimal reproduction",
        "names without model.",
    ):
        assert words in page.out
    assert "1.self_attn.o_proj" in page.out
    document = json.loads(command("layers", log, "--step", "250", "--format", "json").out)
    assert document["layer_plan"]["block"] == ["model.layers.1.self_attn.o_proj"]
    assert document["layer_moment"]["layers"][0] == "model.layers.1.self_attn.o_proj"
    assert document["layers"][0]["share"] > 0.5
