"""What never changes a run: names, the order of columns and rows, further columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stabdiag.columns import understand
from stabdiag.model import Run
from stabdiag.runs import build_run, list_runs
from tests.tables import table_of

NAMES = {
    "step": ["step", "global_step", "iteration", "iter", "current_steps", "_step", "Step"],
    "loss": ["loss", "train/loss", "lm loss", "train_loss", "total_loss", "Train/Loss", "trl"],
    "val_loss": ["val_loss", "eval_loss", "validation/loss", "test_loss", "val loss", "tel"],
    "grad_norm": ["grad_norm", "grad norm", "train/grad_norm", "gnorm", "norm", "gradientNorm"],
    "lr": ["lr", "learning_rate", "train/learning_rate", "lr-AdamW", "cur_lr"],
    "param_norm": ["param_norm", "params norm", "weight_norm"],
    "tokens": ["tokens", "tokens_seen", "consumed samples", "num_input_tokens_seen"],
    "wte": ["grad_norm/wte", "gradients/wte", "grad norm/wte", "grad_2.0_norm/wte", "grads/wte"],
}
# Machines that run tests are of all speeds.
unhurried = settings(deadline=None, max_examples=60)
HARMLESS = ["mfu", "data_time", "loss__MIN", "gpu_memory", "accuracy", "note", "perf/tps"]

number = st.floats(min_value=1e-6, max_value=1e6, allow_subnormal=False)
value = st.one_of(number, st.sampled_from([float("nan"), float("inf")]))
cell = st.one_of(number, st.none(), value)


@st.composite
def logs(draw: st.DrawFn, least: int = 2) -> dict[str, list[Any]]:
    """Rows of a run with rising steps; the loss stands in every row, other metrics in some."""
    count = draw(st.integers(min_value=least, max_value=25))
    gaps = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    columns: dict[str, list[Any]] = {"step": np.cumsum(gaps).tolist()}
    columns["loss"] = draw(st.lists(value, min_size=count, max_size=count))
    for name in ("val_loss", "grad_norm", "lr", "param_norm", "wte"):
        columns[name] = draw(st.lists(cell, min_size=count, max_size=count))
    columns["tokens"] = [10 * step for step in columns["step"]]
    return columns


def built(columns: dict[str, list[Any]], names: dict[str, str]) -> Run:
    table = table_of({names.get(name, name): cells for name, cells in columns.items()})
    return build_run(table, understand(table))


def plain() -> dict[str, str]:
    return {name: names[0] for name, names in NAMES.items()}


def content(run: Run) -> dict[str, list[tuple[int, str, bool]]]:
    """Steps and values of each canonical series and layer; repr makes NaN equal to itself."""
    found = {
        name: [
            (int(step), repr(float(number)), bool(guess))
            for step, number, guess in zip(series.step, series.value, series.inferred, strict=True)
        ]
        for name, series in run.series.items()
        if not name.startswith("other/")
    }
    for block in run.layer_blocks("grad_norm"):
        for index, layer in enumerate(block.layers):
            found[f"grad_norm/{layer}"] = [
                (int(step), repr(float(number)), bool(logged))
                for step, number, logged in zip(
                    block.step, block.value[:, index], block.logged[:, index], strict=True
                )
            ]
    return found


@unhurried
@given(logs(), st.fixed_dictionaries({name: st.sampled_from(NAMES[name]) for name in NAMES}))
def test_other_names_of_the_same_series_give_the_same_run(
    columns: dict[str, list[Any]], names: dict[str, str]
) -> None:
    assert content(built(columns, names)) == content(built(columns, plain()))


@unhurried
@given(logs(), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter(columns: dict[str, list[Any]], random: Any) -> None:
    order = list(columns)
    random.shuffle(order)
    shuffled = {name: columns[name] for name in order}
    assert content(built(shuffled, plain())) == content(built(columns, plain()))


@unhurried
@given(logs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(columns: dict[str, list[Any]], random: Any) -> None:
    order = list(range(len(columns["step"])))
    random.shuffle(order)
    shuffled = {name: [cells[row] for row in order] for name, cells in columns.items()}
    table = table_of({plain()[name]: cells for name, cells in shuffled.items()})
    plan = understand(table)
    # Two ladders of steps, one after the other, are two runs.
    assume(len(list_runs(table, plan)) == 1)
    run = build_run(table, plan)
    steps = run.series["loss"].step
    assert np.all(np.diff(steps) > 0)
    if len(run.segments) == 1:
        assert content(run) == content(built(columns, plain()))
    else:
        # Nor can they be told from a resume when the second starts higher; nothing is lost.
        lost = run.abandoned["loss"].points
        assert steps.size + lost == len(order)


@unhurried
@given(logs(), st.sets(st.sampled_from(HARMLESS)), st.randoms(use_true_random=False))
def test_further_columns_do_not_matter(
    columns: dict[str, list[Any]], harmless: set[str], random: Any
) -> None:
    count = len(columns["step"])
    further: dict[str, list[Any]] = {
        name: ["text"] * count if name == "note" else [random.random() for _ in range(count)]
        for name in sorted(harmless)
    }
    assert content(built(columns | further, plain())) == content(built(columns, plain()))


@unhurried
@given(logs(least=3), st.data())
def test_a_resume_keeps_each_step_once_and_loses_nothing(
    columns: dict[str, list[Any]], data: st.DataObject
) -> None:
    count = len(columns["step"])
    # The last step alone, written again, is a record written twice.
    back = data.draw(st.integers(min_value=1, max_value=count - 2))
    resumed = {name: [*cells, *cells[back:]] for name, cells in columns.items()}
    run = built(resumed, plain())
    loss = run.series["loss"]
    assert loss.step.tolist() == columns["step"]
    assert loss.row[back:].tolist() == list(range(count, 2 * count - back))
    assert run.abandoned["loss"].row.tolist() == list(range(back, count))
    assert [segment.first_row for segment in run.segments] == [0, count]
