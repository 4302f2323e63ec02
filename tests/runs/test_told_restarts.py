"""Restarts that the recorder counts in a column of its own, also where no step repeats."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stabdiag.columns import understand
from stabdiag.model import Run
from stabdiag.runs import list_runs
from tests.tables import falling, run_of, steps, table_of, values

NONE = None


def recorded(step: Sequence[int], segment: Sequence[int], **more: list[object]) -> dict[str, list]:
    """The columns of a recorder's log, in its order."""
    size = len(step)
    return {
        "step": list(step),
        "segment": list(segment),
        "loss": falling(9.0, size),
        "grad_norm": falling(1.5, size),
        "lr": [0.1] * size,
        "grad_norm/0.weight": falling(1.0, size),
    } | more


def segments(run: Run) -> list[tuple[int, int]]:
    return [(s.first_step, s.last_step) for s in run.segments]


def counted_on() -> dict[str, list]:
    return recorded(range(60), [0] * 20 + [1] * 30 + [2] * 10)


def test_a_resume_that_goes_on_at_the_next_step_is_a_restart() -> None:
    run = run_of(counted_on())
    assert segments(run) == [(0, 19), (20, 49), (50, 59)]
    assert run.series["loss"].segment.tolist() == [0] * 20 + [1] * 30 + [2] * 10
    assert not run.abandoned
    assert not run.notes


def test_it_is_no_series_and_says_why_it_is_read() -> None:
    plan = understand(table_of(counted_on()))
    assert plan.restart_column == "segment"
    role = next(role for role in plan.roles if role.column == "segment")
    assert (role.kind, role.name) == ("restart", "segment")
    assert "other/segment" not in run_of(counted_on()).series


def test_steps_that_repeat_are_one_restart_not_two() -> None:
    run = run_of(recorded([*range(60), *range(50, 80)], [0] * 60 + [1] * 30))
    assert segments(run) == [(0, 59), (50, 79)]
    assert steps(run, "loss") == list(range(80))
    assert run.abandoned["loss"].step.tolist() == list(range(50, 60))


def test_many_short_segments_are_not_taken_for_rows_out_of_order() -> None:
    """Each is four records long and trains two of them again."""
    step = [first + i for first in range(0, 40, 2) for i in range(4)]
    run = run_of(recorded(step, [i // 4 for i in range(len(step))]))
    assert len(run.segments) == 20
    assert steps(run, "loss") == list(range(42))
    assert not any("out of order" in note.text for note in run.notes)


def test_a_row_of_its_own_belongs_to_the_segment_that_wrote_it() -> None:
    """An evaluation at the resume has the step of the last one trained."""
    table = recorded([0, 1, 2, 3, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1, 1, 1])
    for name in ("loss", "grad_norm", "lr", "grad_norm/0.weight"):
        table[name][4] = NONE
    run = run_of(table | {"val_loss": [NONE] * 4 + [5.0] + [NONE] * 3})
    assert steps(run, "val_loss") == [3]
    assert run.series["val_loss"].segment.tolist() == [1]
    assert values(run, "val_loss") == [5.0]


def test_a_run_begun_anew_in_the_same_log_is_another_run() -> None:
    table = table_of(
        recorded([*range(50), *range(40)], [0] * 50 + [1] * 40)
        | {"loss": [*falling(9.0, 50), *falling(9.1, 40)]}
    )
    found = [(run.first_step, run.last_step) for run in list_runs(table, understand(table))]
    assert found == [(0, 49), (0, 39)]


def put_together(*logs: tuple[Sequence[int], Sequence[int]]) -> dict[str, list]:
    """Several logs of the recorder in one file, as `cat` puts them; layers every ten steps."""
    step = [s for steps_, _ in logs for s in steps_]
    first = {sum(len(steps_) for steps_, _ in logs[:k]) for k in range(len(logs))}
    table = recorded(step, [s for _, counts in logs for s in counts])
    norm = table["grad_norm/0.weight"]
    table["grad_norm/0.weight"] = [
        value if row in first or at % 10 == 0 else NONE
        for row, (value, at) in enumerate(zip(norm, step, strict=True))
    ]
    return table


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param([(range(43), [0] * 43), (range(43, 80), [43] * 37)], id="a log each"),
        pytest.param(
            [(range(43), [0] * 20 + [1] * 23), (range(43, 80), [0] * 37)], id="counted anew"
        ),
        pytest.param(
            [(range(30), [0] * 30), (range(30, 55), [30] * 25), (range(55, 80), [55] * 25)],
            id="three",
        ),
    ],
)
def test_logs_put_behind_one_another_are_restarts(
    logs: list[tuple[Sequence[int], Sequence[int]]],
) -> None:
    run = run_of(put_together(*logs))
    starts = {s.first_step for s in run.segments}
    assert {first for log, _ in logs for first in log[:1]} <= starts
    assert (run.segments[0].first_step, run.segments[-1].last_step) == (0, 79)
    assert steps(run, "loss") == list(range(80))


def test_logs_put_together_in_the_wrong_order_are_sorted() -> None:
    run = run_of(put_together((range(43, 80), [43] * 37), (range(43), [0] * 43)))
    assert steps(run, "loss") == list(range(80))
    assert any("out of order" in note.text for note in run.notes)


def test_a_later_log_may_overwrite_the_end_of_the_first() -> None:
    run = run_of(put_together((range(60), [0] * 60), (range(43, 80), [43] * 37)))
    assert segments(run) == [(0, 59), (43, 79)]


def test_a_count_that_falls_elsewhere_than_at_the_first_row_of_a_log_is_none() -> None:
    """A curriculum's phases, with norms every ten steps."""
    table = put_together((range(80), [0] * 15 + [1] * 20 + [0] * 20 + [1] * 25))
    assert understand(table_of(table)).restart_column is None


def others(**changed: list[object]) -> dict[str, list]:
    return counted_on() | changed


@pytest.mark.parametrize(
    "table",
    [
        # not behind the step
        {name: counted_on()[name] for name in ("step", "loss", "segment", "lr", "grad_norm")},
        # nothing else that the recorder writes
        {name: counted_on()[name] for name in ("step", "segment", "loss", "lr", "grad_norm")},
        {name: c for name, c in counted_on().items() if name != "lr"},
        # cells that count no restarts
        others(segment=[0, 1] * 30),
        others(segment=[0] * 30 + [2] * 30),
        others(segment=[0.0] * 30 + [0.5] * 30),
        others(segment=[0] * 30 + [NONE] * 10 + [1] * 20),
        others(segment=[7] * 60),
        others(segment=["train"] * 30 + ["tune"] * 30),
        # another counter of the rows
        {"iter": [*range(60)]} | {n: c for n, c in counted_on().items() if n != "step"},
    ],
    ids=lambda table: ",".join(list(table)[:3]),
)
def test_the_segment_of_others_is_no_restart(table: dict[str, list]) -> None:
    assert understand(table_of(table)).restart_column is None
    assert len(run_of(table).segments) == 1
