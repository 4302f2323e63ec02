"""Restarts, further runs and rows out of order."""

from __future__ import annotations

import numpy as np
import pytest

from stabdiag.columns import understand
from stabdiag.errors import ManyRunsError, UsageError
from stabdiag.model import Run
from stabdiag.runs import build_run, list_runs
from tests.tables import NAN, falling, run_of, steps, table_of, values


def segments(run: Run) -> list[tuple[int, int, int, int]]:
    return [(s.first_step, s.last_step, s.first_row, s.last_row) for s in run.segments]


def test_a_resume_overwrites_what_was_trained_twice() -> None:
    run = run_of(
        {"step": [10, 20, 30, 40, 20, 30, 50], "loss": [4.0, 3.0, 2.5, 2.2, 3.1, 2.6, 2.1]}
    )
    assert segments(run) == [(10, 40, 0, 3), (20, 50, 4, 6)]
    assert steps(run, "loss") == [10, 20, 30, 50]
    assert values(run, "loss") == [4.0, 3.1, 2.6, 2.1]
    assert run.series["loss"].segment.tolist() == [0, 1, 1, 1]
    # Step 40 was not trained again, but what followed did not come from it.
    assert run.abandoned["loss"].step.tolist() == [20, 30, 40]
    assert run.abandoned["loss"].value.tolist() == [3.0, 2.5, 2.2]
    assert run.abandoned["loss"].segment.tolist() == [0, 0, 0]


def test_only_the_last_of_several_resumes_counts() -> None:
    run = run_of(
        {"step": [1, 2, 3, 4, 3, 4, 2, 3], "loss": [9.0, 8.0, 7.0, 6.0, 7.1, 6.1, 8.2, 7.2]}
    )
    assert values(run, "loss") == [9.0, 8.2, 7.2]
    assert run.abandoned["loss"].points == 5
    assert sorted(run.abandoned["loss"].value) == [6.0, 6.1, 7.0, 7.1, 8.0]


def test_starts_given_up_after_a_few_points_belong_to_the_run() -> None:
    run = run_of({"step": [20, 20, 40, 20, 40, 60], "loss": [8.5, 8.51, 8.4, 8.52, 8.41, 8.3]})
    assert segments(run) == [(20, 20, 0, 0), (20, 40, 1, 2), (20, 60, 3, 5)]
    assert values(run, "loss") == [8.52, 8.41, 8.3]


def two_runs(second: float) -> dict[str, list[float]]:
    return {"step": [*range(50), *range(40)], "loss": [*falling(9.0, 50), *falling(second, 40)]}


def test_a_fall_to_the_start_with_a_new_loss_is_another_run() -> None:
    table = table_of(two_runs(9.1))
    plan = understand(table)
    found = [(run.name, run.first_step, run.last_step, run.rows) for run in list_runs(table, plan)]
    assert found == [("run 1", 0, 49, 50), ("run 2", 0, 39, 40)]
    with pytest.raises(ManyRunsError) as error:
        build_run(table, plan)
    assert error.value.runs == ("run 1", "run 2")
    second = build_run(table, plan, run="2")
    assert second.name == "run 2"
    assert second.siblings == ("run 1", "run 2")
    assert second.series["loss"].points == 40
    assert second.series["loss"].row[0] == 50
    assert len(second.segments) == 1
    with pytest.raises(UsageError, match="run 3"):
        build_run(table, plan, run="run 3")


def test_a_fall_to_the_start_with_the_old_loss_goes_on() -> None:
    run = run_of(two_runs(3.0))
    assert steps(run, "loss") == list(range(90))
    assert segments(run) == [(0, 49, 0, 49), (50, 89, 50, 89)]
    assert any(note.kind == "guessed" and "goes on" in note.text for note in run.notes)


def test_steps_counted_anew_each_epoch_are_counted_on() -> None:
    epochs = [epoch for epoch in (1, 2, 3) for _ in range(10)]
    run = run_of({"epoch": epochs, "iter": [*range(1, 11)] * 3, "loss": falling(9.0, 30)})
    assert steps(run, "loss") == list(range(1, 31))
    assert len(run.segments) == 1


def test_a_short_trial_beside_a_long_run_is_left_out_and_named() -> None:
    run = run_of({"step": [*range(6), *range(100)], "loss": [*falling(9.0, 6), *falling(9.0, 100)]})
    assert run.name == "run 2"
    assert run.series["loss"].points == 100
    assert [note.text for note in run.notes if "run 1" in note.text]


def test_rows_out_of_order_are_sorted_not_restarts() -> None:
    order = np.random.default_rng(7).permutation(60)
    step = np.arange(0, 600, 10)
    loss = np.array(falling(9.0, 60))
    run = run_of({"step": step[order].tolist(), "loss": loss[order].tolist()})
    assert steps(run, "loss") == step.tolist()
    assert values(run, "loss") == loss.tolist()
    assert len(run.segments) == 1
    assert not run.abandoned
    assert any(note.kind == "repaired" and "out of order" in note.text for note in run.notes)


@pytest.mark.parametrize("step", [[1, 2, 4, 3, 5, 6, 8, 7, 9], [7, 8, 9, 10, 1, 2, 3, 4]])
def test_late_records_and_shards_in_the_wrong_order_are_sorted(step: list[int]) -> None:
    run = run_of({"step": step, "loss": [1.0] * len(step)})
    assert steps(run, "loss") == sorted(step)
    assert len(run.segments) == 1


def test_metrics_logged_one_after_the_other_are_one_run() -> None:
    loss, norm = falling(9.0, 100), [1.0] * 100
    none: list[object] = [None] * 100
    run = run_of(
        {"step": [*range(100)] * 2 + [5, 7], "loss": [*loss, *none, None, None]}
        | {"grad_norm": [*none, *norm, None, None], "val_loss": [*none, *none, 3.0, 2.0]}
    )
    assert (run.series["loss"].points, run.series["grad_norm"].points) == (100, 100)
    assert steps(run, "val_loss") == [5, 7]
    assert len(run.segments) == 1
    assert not any(series.inferred.any() for series in run.series.values())


def test_a_resume_off_the_grid_is_a_restart_though_no_step_repeats() -> None:
    step = [*range(0, 100, 10), *range(45, 200, 10)]
    run = run_of({"step": step, "loss": falling(9.0, len(step))})
    assert segments(run) == [(0, 90, 0, 9), (45, 195, 10, 25)]
    assert steps(run, "loss") == [0, 10, 20, 30, 40, *range(45, 200, 10)]


def test_records_of_one_step_on_several_rows_are_no_restart() -> None:
    none = None
    run = run_of(
        {
            "epoch": [0, 0, 0, 0, 1, 1, 1],
            "step": [49, 99, 99, 99, 149, 199, 199],
            "train_loss_step": [5.0, 4.0, none, none, 3.5, 3.0, none],
            "val_loss": [none, none, 4.2, none, none, none, 3.3],
            "train_loss_epoch": [none, none, none, 4.5, none, none, none],
        }
    )
    assert len(run.segments) == 1
    assert not run.notes
    assert steps(run, "loss") == [49, 99, 149, 199]
    assert steps(run, "val_loss") == [99, 199]


def test_a_step_written_twice_keeps_the_last_and_says_so_only_if_they_differ() -> None:
    same = run_of({"step": [1, 2, 2, 3], "loss": [3.0, 2.0, 2.0, NAN], "lr": [1, 1, 1, 1]})
    assert values(same, "loss")[:2] == [3.0, 2.0]
    assert not same.notes
    other = run_of({"step": [1, 2, 2, 3], "loss": [3.0, 2.0, 2.5, 1.0]})
    assert values(other, "loss") == [3.0, 2.5, 1.0]
    assert [note.count for note in other.notes if "twice" in note.text] == [1]


def test_an_evaluation_before_the_first_training_record_belongs_to_its_run() -> None:
    none = None
    table = table_of(
        {
            "step": [0, *range(20), 0, *range(20)],
            "loss": [none, *falling(9.0, 20), none, *falling(9.1, 20)],
            "val_loss": [9.5, *[none] * 20, 9.6, *[none] * 20],
        }
    )
    plan = understand(table)
    found = [build_run(table, plan, run=str(number)).series["val_loss"] for number in (1, 2)]
    assert [(series.step.tolist(), series.value.tolist()) for series in found] == [
        ([0], [9.5]),
        ([0], [9.6]),
    ]


@pytest.mark.parametrize("own", [[1, 2], [64, 64]])
def test_validation_rows_that_count_something_else_take_the_step_before(own: list[int]) -> None:
    none = None
    run = run_of(
        {
            "iter": [100, 200, own[0], 300, 400, own[1]],
            "loss": [4.0, 3.0, none, 2.5, 2.2, none],
            "accuracy": [none, none, 0.5, none, none, 0.6],
        }
    )
    assert steps(run, "other/accuracy") == [200, 400]
    assert steps(run, "loss") == [100, 200, 300, 400]
    assert any(note.kind == "repaired" for note in run.notes)


def test_counted_rows_find_their_runs_by_the_epoch() -> None:
    epoch = [i / 20 for i in range(40)]
    loss = [*falling(9.0, 40), *falling(9.2, 40)]
    table = table_of(
        {"step": [*range(1, 81)], "epoch": [*epoch, *epoch], "loss": loss}, counted_step=True
    )
    plan = understand(table)
    assert [run.last_step for run in list_runs(table, plan)] == [40, 40]
    # A resume from the middle of the first epoch: the count goes back to where it was.
    resumed = table_of(
        {"step": [*range(1, 61)], "epoch": [*epoch, *epoch[20:]], "loss": loss[:60]},
        counted_step=True,
    )
    run = build_run(resumed, understand(resumed))
    assert segments(run) == [(1, 40, 0, 39), (21, 40, 40, 59)]


def test_missing_steps_are_filled_from_the_row_before() -> None:
    run = run_of({"step": [1, None, 3, 4], "loss": [4.0, None, 2.0, 1.0], "lr": [1, 2, 3, 4]})
    assert steps(run, "lr") == [1, 3, 4]
    assert values(run, "lr") == [2.0, 3.0, 4.0]


def test_a_range_of_steps() -> None:
    table = table_of({"step": [10, 20, 30, 40, 20, 30, 50], "loss": [7.0, 6, 5, 4, 3, 2, 1]})
    plan = understand(table)
    run = build_run(table, plan, first_step=30, last_step=40)
    assert steps(run, "loss") == [30]
    assert run.abandoned["loss"].step.tolist() == [30, 40]
    assert segments(run) == [(30, 40, 2, 3), (30, 30, 5, 5)]
    assert run.rows == 3
    with pytest.raises(UsageError, match="60:"):
        build_run(table, plan, first_step=60)


def test_a_table_without_steps_counts_its_rows() -> None:
    run = run_of({"loss": [3.0, 2.0, 1.0]})
    assert (run.axis, steps(run, "loss")) == ("row", [0, 1, 2])


def test_an_empty_table_gives_an_empty_run() -> None:
    run = run_of({"step": [], "loss": []})
    assert (run.rows, dict(run.series), run.segments) == (0, {}, ())
