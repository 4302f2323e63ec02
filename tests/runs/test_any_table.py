"""Whatever a table holds, it is understood and its runs are sound."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag.columns import describe, understand
from stabdiag.runs import build_run, list_runs
from tests.tables import table_of

COLUMNS = (
    *("step", "_step", "epoch", "loss", "train/loss", "train_loss_epoch", "val_loss", "grad_norm"),
    *("param_norm", "lr", "tokens", "time", "mode", "run_id", "seed", "batch_id", "sample_ids"),
    *("skipped", "lg_loss_scale", "loss_scale", "grad_norm/a", "grad_norm/b.weight", "score"),
    *("train/box_loss", "train/cls_loss", "a - loss", "b - c - loss__MIN", "data/seq_len_mean"),
    *("accuracy", "raw_grad_norm", "", " ", "grad_norm/", "/", "loss/", "."),
)
numbers = st.one_of(
    st.integers(-3, 9),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([1e300, 2**62]),
)
words = st.sampled_from(["train", "val", "a", "1/9", "", "nan"])
lists = st.lists(st.integers(0, 5), max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    count = draw(st.integers(0, 14))
    names = draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=8))
    columns = {}
    for name in names:
        cells = draw(st.sampled_from([numbers, numbers, numbers, words, lists]))
        column = st.lists(st.one_of(st.none(), cells), min_size=count, max_size=count)
        columns[name] = draw(column)
    return columns


@settings(deadline=None, max_examples=150)
@given(tables(), st.booleans(), st.sampled_from(["csv", "tensorboard"]))
def test_any_table_gives_runs(columns: dict[str, list[Any]], counted: bool, format: str) -> None:
    table = table_of(columns, counted_step=counted, format=format)
    plan = understand(table)
    assert [role.column for role in plan.roles] == list(table.names)
    assert all(role.why for role in plan.roles)
    for line in describe(table, plan):
        assert line.points <= table.rows
    for listed in list_runs(table, plan):
        run = build_run(table, plan, run=listed.name)
        assert (run.name, run.rows) == (listed.name, listed.rows)
        for name, series in (*run.series.items(), *run.abandoned.items()):
            assert series.name == name
            assert np.all(np.diff(series.step) >= 0)
            assert np.all(np.isnan(series.value[series.inferred]))
            assert series.segment.size == 0 or series.segment.max() < len(run.segments)
            assert series.row.size == series.value.size == series.step.size
        for metric, layers in run.layers.items():
            blocks = list(run.layer_blocks(metric))
            assert tuple(layer for block in blocks for layer in block.layers) == layers
            for block in blocks:
                assert block.value.shape == (block.step.size, len(block.layers))
                assert np.all(np.isnan(block.value[~block.logged]))
                assert np.all(np.diff(block.step) > 0)
        if run.batch is not None:
            assert all(len(ids) == run.batch.step.size for ids in run.batch.ids.values())
