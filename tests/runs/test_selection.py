"""Runs beside each other: a chart export, stacked runs."""

from __future__ import annotations

import pytest

from stabdiag.columns import understand
from stabdiag.errors import ManyRunsError
from stabdiag.runs import build_run, list_runs
from tests.tables import run_of, steps, table_of, values

NONE = None


def chart() -> dict[str, list[object]]:
    return {
        "Step": [0, 10, 20, 30],
        "a-1.5 - train/loss": [5.0, 4.0, NONE, NONE],
        "a-1.5 - train/loss__MIN": [5.0, 4.0, NONE, NONE],
        "a-1.5 - train/loss__MAX": [5.0, 4.0, NONE, NONE],
        "b - c - train/loss": [6.0, 5.0, 4.0, 3.0],
        "b - c - train/loss__MIN": [6.0, 5.0, 4.0, 3.0],
        "b - c - train/loss__MAX": [6.0, 5.0, 4.0, 3.0],
    }


def test_a_chart_export_holds_a_run_for_each_column() -> None:
    table = table_of(chart())
    plan = understand(table)
    assert [run.name for run in list_runs(table, plan)] == ["a-1.5", "b - c"]
    with pytest.raises(ManyRunsError):
        build_run(table, plan)
    short = build_run(table, plan, run="a-1.5")
    # The rows behind its end belong to the longer run: missing, not NaN.
    assert (steps(short, "loss"), values(short, "loss")) == ([0, 10], [5.0, 4.0])
    assert (short.rows, len(short.series)) == (2, 1)
    assert steps(build_run(table, plan, run="2"), "loss") == [0, 10, 20, 30]


def test_stacked_runs_may_alternate() -> None:
    table = table_of(
        {
            "run": ["a", "b", "a", "b", "a", "b"],
            "step": [0, 0, 1, 1, 2, 2],
            "loss": [5.0, 6.0, 4.0, 5.5, 3.0, 5.0],
        }
    )
    run = build_run(table, understand(table), run="b")
    assert (steps(run, "loss"), values(run, "loss")) == ([0, 1, 2], [6.0, 5.5, 5.0])
    assert run.siblings == ("a", "b")


def test_a_name_that_is_a_number_is_the_name() -> None:
    table = table_of({"seed": [2, 2, 1, 1], "step": [0, 1, 0, 1], "loss": [2.0, 1.5, 1.0, 0.5]})
    run = build_run(table, understand(table), run="1")
    assert (run.name, values(run, "loss")) == ("1", [1.0, 0.5])


def test_one_run_has_the_name_of_its_file_and_no_siblings() -> None:
    run = run_of({"step": [1, 2], "loss": [2.0, 1.0]})
    assert (run.name, run.siblings) == ("run", ())
