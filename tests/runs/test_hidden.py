"""NaN that the log does not spell, and what only looks like it."""

from __future__ import annotations

import numpy as np
import pytest

from stabdiag.columns import understand
from stabdiag.model import LayerBlock, Run
from stabdiag.runs import build_run
from tests.tables import INF, NAN, falling, inferred, run_of, steps, table_of, values

NONE = None
Cells = dict[str, list[object]]


def log(count: int = 30, **columns: list[object]) -> Cells:
    cells: Cells = {"step": [*range(count)], "loss": [*falling(6.0, count)]}
    cells |= {"grad_norm": [1.0 + i % 3 for i in range(count)], "lr": [1e-3] * count}
    return cells | columns


def without(cells: Cells, name: str, rows: range | list[int]) -> Cells:
    return cells | {name: [NONE if i in rows else cell for i, cell in enumerate(cells[name])]}


def test_loss_and_norm_missing_to_the_end_are_nan() -> None:
    cells = without(without(log(), "loss", range(20, 30)), "grad_norm", range(20, 30))
    run = run_of(cells)
    assert inferred(run, "loss") == inferred(run, "grad_norm") == list(range(20, 30))
    assert np.isnan(run.series["loss"].value[20:]).all()
    notes = {note.text.split()[0]: note for note in run.notes}
    assert (notes["loss"].kind, notes["loss"].count, notes["loss"].rows[0]) == ("guessed", 10, 22)


def test_rows_with_a_step_alone_are_nan_after_finite_ones() -> None:
    rows = range(20, 30)
    cells: Cells = {name: log()[name] for name in ("step", "loss", "grad_norm")}
    cells = without(without(cells, "loss", rows), "grad_norm", rows)
    cells["step"] += [25, 40]
    cells["loss"] += [NONE, NONE]
    cells["grad_norm"] += [NONE, NONE]
    cells["validation/loss"] = [NONE] * 30 + [2.0, NONE]
    cells["score"] = [NONE] * 30 + [1.0, 2.0]
    run = run_of(cells)
    # The evaluation rows at the end have no loss of their own either: missing, not NaN.
    assert inferred(run, "loss") == list(rows)


def test_a_norm_missing_once_beside_a_finite_loss_is_a_failed_step() -> None:
    cells = without(log(100), "grad_norm", [41])
    run = run_of(cells)
    assert inferred(run, "grad_norm") == [41]
    assert run.series["loss"].non_finite == 0


def test_a_loss_missing_beside_a_finite_norm_is_not_logged() -> None:
    run = run_of(without(log(100), "loss", [41]))
    assert inferred(run, "loss") == []
    assert run.series["loss"].points == 99


def test_a_loss_missing_beside_a_written_nan_norm_is_nan() -> None:
    cells = without(log(100), "loss", [41])
    cells["grad_norm"][41] = NAN
    run = run_of(cells)
    assert inferred(run, "loss") == [41]
    assert inferred(run, "grad_norm") == []


@pytest.mark.parametrize("every", [2, 10])
@pytest.mark.parametrize("name", ["loss", "grad_norm"])
def test_a_metric_logged_now_and_then_is_missing_in_between(name: str, every: int) -> None:
    cells = log(60)
    cells[name] = [cell if i % every == 0 else NONE for i, cell in enumerate(cells[name])]
    run = run_of(cells)
    assert inferred(run, name) == []
    assert run.series[name].cadence == every


def test_a_cadence_that_changes_is_not_silence() -> None:
    often = [*range(10), *range(10, 60, 10)]
    cells = log(60)
    for name in ("loss", "grad_norm"):
        cells[name] = [cell if i in often else NONE for i, cell in enumerate(cells[name])]
    assert inferred(run_of(cells), "loss") == []


def test_a_norm_that_a_restart_stops_logging_is_missing() -> None:
    cells = log(60)
    cells["step"] = [*range(40), *range(30, 50)]
    assert inferred(run_of(without(cells, "grad_norm", range(40, 60))), "grad_norm") == []
    assert inferred(run_of(without(cells, "grad_norm", range(45, 60))), "grad_norm") == [
        *range(35, 50)
    ]


def test_records_of_another_kind_have_no_hidden_nan() -> None:
    cells: Cells = {
        "step": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
        "lr": [1e-3, NONE] * 6,
        "loss": [NONE, 3.0] * 6,
        "grad_norm": [NONE, 1.0] * 6,
    }
    run = run_of(cells)
    assert not run.notes
    assert run.series["loss"].non_finite == 0


@pytest.mark.parametrize("own_steps", [True, False])
def test_records_of_layers_alone_have_no_hidden_nan(own_steps: bool) -> None:
    cells = log(500)
    cells["grad_norm/fc.a"] = [NONE] * 500
    for name in cells:
        cells[name] += {"grad_norm/fc.a": [1.0] * 3}.get(name, [NONE] * 3)
    cells["step"][500:] = [500, 501, 502] if own_steps else [100, 200, 300]
    order = np.argsort([float(str(step)) for step in cells["step"]], kind="stable")
    run = run_of({name: [column[i] for i in order] for name, column in cells.items()})
    assert not run.notes
    assert run.series["loss"].points == 500


def test_zero_beside_a_nan_norm_is_a_filtered_nan() -> None:
    cells = log(10, loss=[3.0, 0.0, 0.0, 2.5, *falling(2.0, 6)])
    cells["grad_norm"] = [1.0, NAN, 0.0, INF, *[1.0] * 6]
    run = run_of(cells)
    assert np.isnan(run.series["loss"].value[1])
    assert inferred(run, "loss") == [1]
    assert values(run, "loss")[2] == 0.0
    assert [note.kind for note in run.notes] == ["repaired"]


def test_written_nan_is_not_inferred() -> None:
    cells = log(20, loss=[*falling(6.0, 15), *[NAN] * 5])
    run = run_of(cells)
    assert run.series["loss"].non_finite == 5
    assert inferred(run, "loss") == []


def failing_log() -> Cells:
    """Loss, norm and layers fall silent at step 40; parameter norms stand at every tenth."""
    count = 60
    cells = log(count)
    tens = [1.0 if i % 10 == 0 else NONE for i in range(count)]
    cells["param_norm"] = list(tens)
    for layer in ("a", "b"):
        cells[f"grad_norm/fc.{layer}"] = [0.5] * count
        cells[f"param_norm/fc.{layer}"] = list(tens)
    for name in ("loss", "grad_norm", "grad_norm/fc.a", "param_norm", "param_norm/fc.b"):
        cells = without(cells, name, range(41, count))
    cells = without(cells, "grad_norm/fc.b", range(40, count))
    return without(without(cells, "grad_norm", [40]), "param_norm/fc.a", range(41, count))


def block_of(run: Run, metric: str) -> LayerBlock:
    return next(iter(run.layer_blocks(metric)))


def test_a_metric_with_a_rhythm_is_nan_where_it_was_due() -> None:
    run = run_of(failing_log())
    assert inferred(run, "grad_norm") == list(range(40, 60))
    assert inferred(run, "param_norm") == [50]
    block = block_of(run, "param_norm")
    assert block.step.tolist() == [0, 10, 20, 30, 40, 50]
    assert np.isnan(block.value[-1]).all()
    assert block.logged.all()


def test_layers_silent_in_failing_rows_are_nan() -> None:
    block = block_of(run_of(failing_log()), "grad_norm")
    nan = np.isnan(block.value)
    assert block.step.tolist() == list(range(60))
    assert block.logged.all()
    # At 40 one layer alone is NaN: that is where it began.
    assert nan[40].tolist() == [False, True]
    assert nan[41:].all()
    assert not nan[:40].any()


def test_layers_silent_in_sound_rows_are_missing() -> None:
    cells = log(60)
    for layer in ("a", "b"):
        cells[f"grad_norm/fc.{layer}"] = [0.5] * 60
    run = run_of(without(cells, "grad_norm/fc.b", range(30, 60)))
    block = block_of(run, "grad_norm")
    assert np.count_nonzero(~block.logged) == 30
    assert block.logged[:, 0].all()


def test_an_epoch_score_missing_with_the_loss_makes_another_kind_of_row() -> None:
    cells: Cells = {"global_step": [*range(0, 200, 10)], "train/loss": [*falling(6.0, 20)]}
    cells["validation/num_examples"] = [100] * 20
    for name in ("train/loss", "validation/num_examples"):
        cells[name][-1] = NONE
    assert inferred(run_of(cells), "loss") == []


def test_an_overwritten_silence_is_left_with_the_abandoned_points() -> None:
    cells = log(60)
    cells["step"] = [*range(40), *range(30, 50)]
    cells = without(without(cells, "loss", range(35, 40)), "grad_norm", range(35, 40))
    run = run_of(cells)
    assert run.series["loss"].non_finite == 0
    assert run.abandoned["loss"].inferred.tolist() == [False] * 5 + [True] * 5


def test_row_kinds_that_the_log_states_are_believed() -> None:
    cells: Cells = {
        "mode": ["train", "train", "val"] * 10,
        "iter": [i for epoch in range(10) for i in (2 * epoch, 2 * epoch + 1, 64)],
        "loss": [x for i in range(10) for x in (5.0 - i / 10, 4.9 - i / 10, 4.5)],
    }
    table = table_of(cells)
    run = build_run(table, understand(table))
    assert steps(run, "loss") == list(range(20))
    assert (steps(run, "val_loss"), set(values(run, "val_loss"))) == (list(range(1, 20, 2)), {4.5})


def test_a_loss_in_evaluation_rows_alone_is_the_val_loss() -> None:
    cells: Cells = {
        "step": [1, 2, 2, 3, 4, 4],
        "loss": [5.0, 4.0, NONE, 3.0, 2.0, NONE],
        "avg_loss": [NONE, NONE, 4.4, NONE, NONE, 2.4],
    }
    kinds = ["train", "train", "eval"] * 2
    table = table_of(cells, row_kind=kinds)
    assert values(build_run(table, understand(table)), "val_loss") == [4.4, 2.4]
    unsaid = run_of(cells)
    assert "val_loss" not in unsaid.series
