"""Layers over time: extremes and non-finite points survive, missing stays missing, memory is bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stabdiag.diagnose import diagnose
from stabdiag.drawings import HeatMap
from stabdiag.model import Run
from stabdiag.reporters.blocks import Drawing
from stabdiag.reporters.heat_chart import heat_chart
from stabdiag.reporters.view import View
from stabdiag.settings import Settings
from stabdiag.steps.heat_map import MOST_LAYERS, layer_cells
from stabdiag.steps.heat_map import heat_maps as maps_of_cells
from stabdiag.steps.layer_cells import CELLS
from tests.make_runs import healthy, healthy_layers, run_from

POINTS = 4000


def heat_maps(run: Run, ranked: Sequence[str]) -> tuple[HeatMap, ...]:
    return maps_of_cells(layer_cells(run, {}), ranked)


def layers(count: int = 6) -> dict[str, list[float | None]]:
    rng = np.random.default_rng(3)
    names = [f"h.{i}.mlp.c_fc.weight" for i in range(count)]
    return {f"grad_norm/{n}": np.exp(0.1 * rng.standard_normal(POINTS)).tolist() for n in names}


def test_an_extreme_and_each_kind_of_bad_point_survive() -> None:
    grid = layers()
    grid["grad_norm/h.1.mlp.c_fc.weight"][1234] = 1000.0
    grid["grad_norm/h.2.mlp.c_fc.weight"][2000] = math.nan
    grid["grad_norm/h.3.mlp.c_fc.weight"][3000] = math.inf
    grid["grad_norm/h.4.mlp.c_fc.weight"][:1000] = [None] * 1000
    (made,) = heat_maps(run_from(healthy(POINTS), layers=grid), ())

    def at(step: int) -> int:
        return next(c for c, last in enumerate(made.last_step) if step <= last)

    assert len(made.first_step) == CELLS
    assert made.value[1][at(1234)] == round(
        math.log10(1000.0 / float(np.median(grid["grad_norm/h.1.mlp.c_fc.weight"]))), 3
    )
    assert (made.bad[2][at(2000)], made.bad[3][at(3000)]) == ("NaN", "Inf")
    assert sum(mark != "" for row in made.bad for mark in row) == 2
    assert made.value[4][at(500)] is None
    assert made.value[4][at(1500)] is not None


def test_of_many_layers_the_ranked_stay() -> None:
    grid = layers(300)
    (made,) = heat_maps(run_from(healthy(POINTS), layers=grid), ("h.217.mlp.c_fc.weight",))
    assert len(made.layers) == MOST_LAYERS
    assert made.left_out == 300 - MOST_LAYERS
    assert "h.217.mlp.c_fc.weight" in made.layers
    assert list(made.layers) == [
        n.removeprefix("grad_norm/") for n in grid if n.removeprefix("grad_norm/") in made.layers
    ]


def test_no_layers_no_map() -> None:
    assert heat_maps(run_from(healthy(100)), ()) == ()


def test_the_drawing_fits_and_marks_what_is_not_finite() -> None:
    grid = layers(40)
    grid["grad_norm/h.7.mlp.c_fc.weight"][3900:] = [math.nan] * 100
    (made,) = heat_maps(run_from(healthy(POINTS), layers=grid), ("h.7.mlp.c_fc.weight",))
    for width in (40, 80, 120):
        for ascii_only in (False, True):
            drawn, _ = heat_chart(
                made, ("h.7.mlp.c_fc.weight",), 3900, View(width, ascii_only=ascii_only)
            )
            assert isinstance(drawn, Drawing)
            assert all(len(line) <= width for line in drawn.lines)
            row = next(
                line
                for line in drawn.lines
                if line.split()[0].endswith("7.mlp.c_fc.weight") or "N" in line
            )
            assert row.rstrip().endswith("N")
            assert any("onset" in line for line in drawn.lines)
            assert not ascii_only or all(line.isascii() for line in drawn.lines)


def test_zero_is_neither_missing_nor_small() -> None:
    grid = layers(3)
    grid["grad_norm/h.0.mlp.c_fc.weight"] = [0.0] * POINTS
    grid["grad_norm/h.1.mlp.c_fc.weight"][2000] = 0.0
    grid["grad_norm/h.2.mlp.c_fc.weight"][1000:1002] = [0.0, 1e6]
    (made,) = heat_maps(run_from(healthy(POINTS), layers=grid), ())
    assert set(made.value[0]) == {-math.inf}
    assert [v for v in made.value[1] if v == -math.inf] == [-math.inf]
    assert max(v for v in made.value[2] if v is not None) > 5.9  # not hidden by the zero beside it


def test_a_block_shows_what_any_of_its_layers_does() -> None:
    rng = np.random.default_rng(5)
    names = [f"h.{i}.{part}" for i in range(70) for part in ("attn.weight", "mlp.weight")]
    grid: dict[str, list[float | None]] = {
        f"grad_norm/{n}": np.exp(0.1 * rng.standard_normal(400)).tolist() for n in names
    }
    grid["grad_norm/h.41.mlp.weight"][200] = 500.0
    grid["grad_norm/h.69.attn.weight"][399] = math.nan
    (made,) = heat_maps(run_from(healthy(400), layers=grid), ())
    assert made.left_out == 140 - MOST_LAYERS
    assert [one.name for one in made.blocks] == [f"h.{i}" for i in range(70)]
    assert sum(one.layers for one in made.blocks) == 140
    loud = [one.name for one in made.blocks if max(v or 0.0 for v in one.value) > 2.0]
    assert loud == ["h.41"]
    assert [one.name for one in made.blocks if any(one.bad)] == ["h.69"]


def test_cells_read_with_the_scores_are_those_read_alone() -> None:
    run = run_from(healthy(300), layers=healthy_layers(300))
    made = diagnose(run, Settings())
    assert made.heat_maps == heat_maps(run, [one.layer for one in made.layers])
    assert [one.metric for one in made.heat_maps] == ["grad_norm", "param_norm"]
