"""Step 4 in depth: shares of the norm, the layers at a step, the bisection plan, the outline."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from stabdiag.diagnose import diagnose
from stabdiag.findings import LayerPlan, Report
from stabdiag.reporters import render_part
from stabdiag.reporters.view import View
from stabdiag.settings import Settings
from tests.command_line import Command
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


def test_what_is_usual_is_so_before_the_onset() -> None:
    """A run that is broken for longer than it was well does not make its trouble usual."""
    layers = healthy_layers(300)
    name = next(n for n in layers if n.startswith("grad_norm/") and "c_fc" in n)
    well = report(layers, at=250).layer_moment
    columns = healthy(300)
    spike(columns, "loss", 100, 4.0, 200)
    columns["grad_norm"][95:] *= np.linspace(2.0, 40.0, 205)
    columns["lr"][95:] *= 10.0
    layers[name][95:] *= 50.0
    moment = diagnose(run_from(columns, layers=layers), Settings(layers_at=250)).layer_moment
    assert moment is not None
    assert well is not None
    layer = name.removeprefix("grad_norm/")
    usual = dict(zip(moment.layers, moment.usual, strict=True))[layer]
    assert usual == pytest.approx(dict(zip(well.layers, well.usual, strict=True))[layer], rel=0.1)


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
    assert plan.moves[0].do.startswith(f"Give {guilty} a parameter group of its own")
    assert all(move.tells for move in plan.moves)
    assert guilty in "\n".join(plan.outline)


def test_without_a_named_layer_the_model_is_halved() -> None:
    plan = report(healthy_layers(300, blocks=8)).layer_plan
    assert plan is not None
    assert plan.block == ()
    assert "does not single out a layer" in plan.reason
    assert plan.runs == math.ceil(math.log2(1 + 8))
    do = [move.do for move in plan.moves]
    assert any(text.startswith("Freeze wte to h.") for text in do)
    assert any("half the learning rate" in text for text in do)


def test_without_layers_the_plan_says_so_and_how_to_log_them() -> None:
    plan = report({}).layer_plan
    assert plan is not None
    assert plan.block == ()
    assert plan.runs == 0  # of how many blocks, the log does not say
    assert "no norms by layer" in plan.reason
    assert any("Log the gradient norm of each layer" in move.do for move in plan.moves)
    assert "SUSPECTS" not in "\n".join(plan.outline)


def test_what_is_not_finite_is_found_by_hooks_in_one_run() -> None:
    columns = healthy(300)
    layers = healthy_layers(300)
    for name in ("loss", "grad_norm"):
        columns[name][200:] = math.nan
    for name in layers:
        if name.startswith("grad_norm/"):
            layers[name][200:] = math.nan
    plan = diagnose(run_from(columns, layers=layers), Settings()).layer_plan
    assert plan is not None
    assert (plan.block, plan.runs) == ((), 1)
    assert "turn non-finite at step 200" in plan.reason


def nan_from(layer: str) -> Report:
    """A run in which `layer` and all below it are NaN at 200, all others one step later."""
    columns = healthy(300)
    layers = healthy_layers(300)
    for name in ("loss", "grad_norm"):
        columns[name][201:] = math.nan
    columns["grad_norm"][200] = math.nan
    grads = [name for name in layers if name.startswith("grad_norm/")]
    for place, name in enumerate(grads):
        layers[name][200 if place <= grads.index(f"grad_norm/{layer}") else 201 :] = math.nan
    return diagnose(run_from(columns, layers=layers), Settings())


def test_a_nan_is_born_between_the_last_layer_that_has_it_and_the_next() -> None:
    seen = nan_from("h.2.attn.c_proj.weight")
    plan = seen.layer_plan
    assert plan is not None
    assert plan.block == ("h.2.attn.c_proj.weight", "h.2.mlp.c_fc.weight")
    assert "born between them" in plan.reason
    assert not any(move.do.startswith("Freeze") for move in plan.moves)  # freezing stops no NaN


def test_a_nan_born_at_the_loss_has_a_block_of_one() -> None:
    columns = healthy(300)
    columns["loss"][201:] = math.nan
    columns["grad_norm"][200:] = math.nan
    layers = healthy_layers(300)
    layers["grad_norm/lm_head.weight"][200:] = math.nan
    plan = diagnose(run_from(columns, layers=layers), Settings()).layer_plan
    assert plan is not None
    assert plan.block == ("lm_head.weight",)
    assert "the log does not say which" in plan.reason
    assert "SUSPECTS" not in "\n".join(plan.outline)  # what is handed to it may be at fault


def plan_with(larger: Mapping[str, float]) -> LayerPlan:
    """The plan for a model of eight blocks in which some gradients are so many times as large."""
    layers = healthy_layers(300, blocks=8)
    for name, times in larger.items():
        layers[f"grad_norm/{name}"] *= times
    plan = report(layers).layer_plan
    assert plan is not None
    return plan


def test_layers_that_lie_far_apart_are_no_block() -> None:
    first, second = "h.1.mlp.c_fc.weight", "h.6.attn.c_proj.weight"
    plan = plan_with({first: 70.0, second: 60.0})
    assert plan.block == (first,)
    assert f"{second} does, too, but less, or lies too far off" in plan.reason


def test_near_layers_make_one_block_in_the_models_order() -> None:
    first, second = "h.3.attn.c_proj.weight", "h.4.attn.c_proj.weight"
    plan = plan_with({second: 70.0, first: 60.0})
    assert plan.block[0] == first
    assert plan.block[-1] == second
    assert len(plan.block) == 4


def test_a_layer_that_stands_out_far_less_is_no_part_of_the_block() -> None:
    first, second = "h.4.attn.c_proj.weight", "h.3.attn.c_proj.weight"
    plan = plan_with({first: 3000.0, second: 30.0})
    assert plan.block == (first,)


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_deep_model_with_long_names_fits(width: int, ascii_only: bool) -> None:
    path = "module.backbone.language_model.transformer.decoder"
    layers = {
        name.replace("/h.", f"/{path}.residual_attention_block_stack."): values
        for name, values in healthy_layers(300, blocks=40).items()
    }
    guilty = f"{path}.residual_attention_block_stack.31.attn.c_proj.weight"
    layers[f"grad_norm/{guilty}"] *= 60.0
    layers[f"grad_norm/{guilty}"][250:] = math.nan
    page = render_part(report(layers, at=290), "text", "layers", View(width, ascii_only=ascii_only))
    laid = page.split("Minimal reproduction")[0]
    assert max(map(len, laid.splitlines())) <= width
    assert not ascii_only or page.isascii()
    drawn = laid.split("Layers over time")[1].split("grad_norm over")[0].splitlines()
    with_nan = [line for line in drawn if "NN" in line]
    assert len(with_nan) == 2  # its own row, and its block's
    assert "a row is the highest of its layers" in " ".join(laid.split())


def test_a_small_tensor_at_the_head_of_the_list_is_said_and_not_blamed(command: Command) -> None:
    log = ROOT / "sample_logs/handbook_run.csv"
    document = json.loads(command("layers", log, "--format", "json").out)
    (norm2,) = [one for one in document["layers"] if one["layer"] == "norm2.weight"]
    assert norm2["ratio_to_median"] > 16  # the handbook's 17 times
    assert (norm2["tenfold"], norm2["small"]) == (1.0, True)
    assert document["layer_plan"] is None
    assert document["findings"] == []
    page = " ".join(command("layers", log).out.split())
    assert "no more than layers of its kind reach in healthy runs" in page
    assert "small tensors): norm2" in page


def test_a_step_before_the_first_is_an_error(command: Command) -> None:
    done = command("layers", ROOT / "sample_logs/healthy.csv", "--step", "-3")
    assert done.code == 2
    assert "--step -3: no layer is logged at or before it" in done.err
    assert "from 0 on" in done.err


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
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import torch"]
    assert all(line.isprintable() for line in plan.outline)


def test_the_command(command: Command) -> None:
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
