"""Layer blocks and series made of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from stabdiag.columns import understand
from stabdiag.model import Column
from stabdiag.runs import build_run
from tests.tables import NAN, run_of, steps, table_of, values

NONE = None


def test_blocks_hold_at_most_64_layers_whatever_there_are() -> None:
    cells: dict[str, list[object]] = {"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0]}
    names = [f"grad_norm/blocks.{i}.weight" for i in range(150)]
    table = table_of(cells | {name: [float(i)] * 3 for i, name in enumerate(names)})
    asked: list[int] = []

    def load(wanted: Sequence[str]) -> dict[str, Column]:
        asked.append(len(wanted))
        return table.load(wanted)

    run = build_run(replace(table, load=load), understand(table))
    assert max(asked) < 64
    blocks = list(run.layer_blocks("grad_norm"))
    assert [len(block.layers) for block in blocks] == [64, 64, 22]
    assert max(asked) == 64
    assert tuple(layer for block in blocks for layer in block.layers) == run.layers["grad_norm"]
    assert np.concatenate([block.value[0] for block in blocks]).tolist() == list(range(150))
    assert not list(run.layer_blocks("update_norm"))


def test_a_block_has_the_rows_where_any_of_its_layers_is_logged() -> None:
    run = run_of(
        {
            "step": [1, 2, 3, 4, 3, 4],
            "loss": [5.0, 4.0, 3.0, 2.0, 3.1, 2.1],
            "grad_norm/a": [1.0, NONE, 2.0, 3.0, 4.0, NONE],
            "grad_norm/b": [NONE, NONE, NAN, 5.0, 6.0, NONE],
        }
    )
    block = next(iter(run.layer_blocks("grad_norm")))
    assert block.step.tolist() == [1, 3]
    np.testing.assert_array_equal(block.value, [[1.0, NAN], [4.0, 6.0]])
    assert block.logged.tolist() == [[True, False], [True, True]]


def test_layers_of_one_step_may_stand_on_several_rows() -> None:
    run = run_of(
        {
            "step": [1, 1, 2, 2],
            "loss": [5.0, NONE, 4.0, NONE],
            "grad_norm/a": [1.0, NONE, 2.0, NONE],
            "grad_norm/b": [NONE, 3.0, NONE, 4.0],
        }
    )
    block = next(iter(run.layer_blocks("grad_norm")))
    assert block.step.tolist() == [1, 2]
    assert block.value.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def transformer(*layers: str) -> dict[str, list[object]]:
    cells: dict[str, list[object]] = {"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0]}
    return cells | {f"grad_norm/{layer}": [3.0, 4.0, NONE] for layer in layers}


WHOLE = ("wte.weight", "h.0.attn.weight", "h.1.attn.weight", "ln_f.weight")


def test_the_norm_of_all_layers_stands_for_the_global_one() -> None:
    run = run_of(transformer(*WHOLE))
    assert (steps(run, "grad_norm"), values(run, "grad_norm")) == ([1, 2], [6.0, 8.0])
    assert any("made up from 4 layers" in note.text for note in run.notes)


@pytest.mark.parametrize(
    "layers",
    [
        ("wte.weight", "h.0.attn.weight", "h.2.attn.weight", "ln_f.weight"),
        ("wte.weight", "h.0.attn.weight", "h.1.mlp.weight", "ln_f.weight"),
        ("h.0.attn.weight", "h.1.attn.weight", "ln_f.weight"),
        ("wte.weight", "h.0.attn.weight", "h.1.attn.weight"),
        ("fc.weight", "head.weight"),
    ],
)
def test_some_layers_do_not_make_a_global_norm(layers: tuple[str, ...]) -> None:
    assert "grad_norm" not in run_of(transformer(*layers)).series


def test_a_sum_of_parts_needs_all_of_them() -> None:
    run = run_of(
        {
            "epoch": [1, 2, 3, 4],
            "train/box_loss": [1.0, 2.0, NONE, NAN],
            "train/cls_loss": [0.5, 0.25, 1.0, 1.0],
        }
    )
    assert steps(run, "loss") == [1, 2, 4]
    np.testing.assert_array_equal(run.series["loss"].value, [1.5, 2.25, NAN])
    assert run.series["loss"].column == "train/box_loss + train/cls_loss"


def test_readings_that_are_not_the_plain_number() -> None:
    run = run_of(
        {
            "step": [1, 2, 3],
            "loss": [3.0, 2.0, 1.0],
            "lg_loss_scale": [16.0, 15.0, NAN],
            "optimizer_applied": [1, 0, 1],
        }
    )
    np.testing.assert_array_equal(run.series["loss_scale"].value, [65536.0, 32768.0, NAN])
    assert values(run, "skipped") == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("logged", "skipped"),
    [
        ([0, 0, 1, 1, 2, 2, 4], [0, 0, 1, 0, 1, 0, 2]),
        ([0, 0, 1, 0, 1, 0, 2], [0, 0, 1, 0, 1, 0, 2]),
        ([0, 0, 16, 0, 0, 0, 0], [0, 0, 16, 0, 0, 0, 0]),
    ],
)
def test_a_running_total_of_skipped_steps_is_taken_apart(
    logged: list[int], skipped: list[int]
) -> None:
    run = run_of({"step": [*range(7)], "loss": [1.0] * 7, "skipped": logged})
    assert values(run, "skipped") == skipped
    assert bool(run.notes) == (logged != skipped)


def test_the_batch_of_each_step() -> None:
    run = run_of(
        {
            "step": [1, 2, 3, 2, 3],
            "loss": [5.0, 4.0, 3.0, 4.1, 3.1],
            "batch_id": [10, 11, 12, 21, NONE],
            "sample_indices": [[1, 2], [3.5], NONE, [5], [6]],
            "shard": ["a", "b", "c", NONE, "e"],
            "data/seq_len_mean": [30.0, 31.0, 32.0, 33.0, NONE],
            "data/code_share": [0.1, 0.2, 0.3, 0.4, 0.5],
        }
    )
    assert run.batch is not None
    assert run.batch.step.tolist() == [1, 2, 3]
    assert run.batch.row.tolist() == [0, 3, 4]
    assert dict(run.batch.ids) == {
        "batch_id": ("10", "21", None),
        "sample_indices": ("1 2", "5", "6"),
        "shard": ("a", None, "e"),
    }
    np.testing.assert_array_equal(run.batch.statistics["seq_len"], [30.0, 33.0, NAN])
    assert run.batch.statistics["data/code_share"].tolist() == [0.1, 0.4, 0.5]


def test_a_log_without_batches_has_none() -> None:
    assert run_of({"step": [1, 2], "loss": [2.0, 1.0]}).batch is None
