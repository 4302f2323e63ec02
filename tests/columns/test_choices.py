"""Several columns for one series, the step column, and what the user says of them."""

from __future__ import annotations

import pytest

from stabdiag.columns import ColumnPlan, understand
from stabdiag.errors import UsageError
from tests.tables import column_of, table_of

UP: list[object] = [1.0, 2.0, 3.0, 4.0]


def plan_of(*names: str, **cells: list[object]) -> ColumnPlan:
    return understand(table_of({name: UP for name in names} | cells))


def column_for(plan: ColumnPlan, name: str) -> str | None:
    return next((role.column for role in plan.roles if role.name == name and not role.layer), None)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("train_loss_epoch", "train_loss_step"), "train_loss_step"),
        (("loss_q0", "loss", "loss_q1"), "loss"),
        (("loss_cls", "loss_box_reg", "total_loss"), "total_loss"),
        (("value_loss", "policy_gradient_loss", "total_loss"), "total_loss"),
        (("train/loss", "loss"), "loss"),
        (("decode.loss_ce", "aux.loss_ce", "loss"), "loss"),
        (("loss_0", "loss_1"), "loss_1"),
        (("head/loss", "train/loss"), "train/loss"),
    ],
)
def test_the_whole_loss_of_each_step_is_preferred(names: tuple[str, ...], chosen: str) -> None:
    plan = plan_of("step", *names)
    assert column_for(plan, "loss") == chosen
    others = {role.name for role in plan.roles if role.column in set(names) - {chosen}}
    assert others == {f"loss/{name}" for name in names if name != chosen}


def test_a_column_with_few_points_gives_way() -> None:
    cells = {"step": range(100), "loss": [1.0] * 3 + [None] * 97, "train/loss": [1.0] * 100}
    assert column_for(understand(table_of(cells)), "loss") == "train/loss"


def test_series_of_two_optimizers_belong_together() -> None:
    plan = plan_of(
        "GLOBAL_STEP",
        "loss_0",
        "grad_norm_0",
        "current_lr_0",
        "loss_1",
        "grad_norm_1",
        "current_lr_1",
    )
    assert column_for(plan, "grad_norm") == "grad_norm_1"
    assert column_for(plan, "lr") == "current_lr_1"
    assert column_for(plan, "other/grad_norm_0") == "grad_norm_0"


@pytest.mark.parametrize("before", ["learning/raw_grad_norm", "learning/grad_norm_before_clip"])
def test_of_two_norms_one_is_named_as_before_clipping(before: str) -> None:
    plan = plan_of("step", "learning/loss", "learning/grad_norm", before)
    assert column_for(plan, "grad_norm") == before
    assert column_for(plan, "grad_norm_clipped") == "learning/grad_norm"


def test_detection_losses_are_summed() -> None:
    plan = plan_of("epoch", "train/box_loss", "train/cls_loss", "val/box_loss", "val/cls_loss")
    assert plan.sums == {
        "loss": ("train/box_loss", "train/cls_loss"),
        "val_loss": ("val/box_loss", "val/cls_loss"),
    }
    assert "train/box_loss" in plan.notes[0].text


def test_the_only_loss_is_the_loss_and_of_several_parts_the_first_is_said() -> None:
    only = plan_of("step", "speech_loss")
    assert column_for(only, "loss") == "speech_loss"
    assert not only.notes
    several = plan_of("step", "speech_loss", "text_loss")
    assert column_for(several, "loss") == "speech_loss"
    assert "text_loss" in several.notes[0].text


@pytest.mark.parametrize(
    ("names", "step", "axis"),
    [
        (("_step", "trainer/global_step", "loss"), "trainer/global_step", "step"),
        (("_step", "train/global_step", "loss"), "train/global_step", "step"),
        (("_step", "loss"), "_step", "step"),
        (("epoch", "step", "loss"), "step", "step"),
        (("epoch", "loss"), "epoch", "epoch"),
        (("tokens", "loss"), "tokens", "tokens"),
        (("loss", "lr"), None, "row"),
        (("time/total_timesteps", "time/iterations", "train/loss"), "time/total_timesteps", "step"),
    ],
)
def test_the_step_column(names: tuple[str, ...], step: str | None, axis: str) -> None:
    plan = plan_of(*names)
    assert (plan.step, plan.axis) == (step, axis)


def test_a_counter_that_does_not_count_is_passed_over() -> None:
    constant = plan_of("loss", "iter", global_step=[5.0, 5.0, 5.0, 5.0])
    assert constant.step == "iter"
    absent = plan_of("loss", "iter", global_step=[1.0, None, None, None])
    assert absent.step == "iter"
    many_rows = understand(table_of({"epoch": [1] * 5 + [2] * 5, "loss": [1.0] * 10}))
    assert (many_rows.step, many_rows.axis) == (None, "row")
    within = understand(table_of({"epoch": [1] * 5 + [2] * 5, "batch": [*range(5)] * 2}))
    assert within.step == "batch"
    fractions = plan_of("loss", epoch=[0.1, 0.2, 0.3, 0.4])
    assert (fractions.step, fractions.axis) == (None, "row")


def test_tokens_that_are_never_counted_are_ignored() -> None:
    plan = plan_of("step", "loss", total_tokens=[0.0, 0.0, 0.0, 0.0])
    assert column_for(plan, "tokens") is None


def test_samples_of_each_batch_are_no_count() -> None:
    plan = plan_of("step", "loss", samples=[512.0] * 4)
    assert column_for(plan, "other/samples") == "samples"


def test_time_is_a_clock_only_when_it_rises() -> None:
    assert column_for(plan_of("step", "loss", time=[1.0, 2.0, 3.0, 9.0]), "wall_time") == "time"
    assert column_for(plan_of("step", "loss", time=[0.5, 0.4, 0.5, 0.3]), "wall_time") is None


def test_the_user_decides() -> None:
    table = table_of({"step": UP, "loss": UP, "my_norm": UP, "n": UP, "l": UP})
    plan = understand(
        table, {"grad_norm": "my_norm", "loss": "l", "param_norm/fc": "loss"}, step_column="n"
    )
    roles = {role.column: (role.kind, role.name, role.layer) for role in plan.roles}
    assert plan.step == "n"
    assert roles["my_norm"] == ("metric", "grad_norm", None)
    assert roles["l"] == ("metric", "loss", None)
    assert roles["loss"] == ("layer", "param_norm", "fc")
    assert roles["step"][0] == "ignored"


@pytest.mark.parametrize(
    ("column_map", "step_column", "nearest"),
    [
        ({"loss": "train/los"}, None, "'train/loss'"),
        ({"gradnorm": "train/loss"}, None, "'grad_norm'"),
        ({}, "stepp", "'step'"),
    ],
)
def test_a_wrong_override_names_the_nearest(
    column_map: dict[str, str], step_column: str | None, nearest: str
) -> None:
    table = table_of({"step": UP, "train/loss": UP})
    with pytest.raises(UsageError) as error:
        understand(table, column_map, step_column)
    assert nearest in error.value.todo


def test_steps_must_be_whole_numbers() -> None:
    table = table_of({"step": UP, "loss": [0.5, 1.5, 2.5, 3.5], "words": ["a", "b", "c", "d"]})
    with pytest.raises(UsageError, match="row 2"):
        understand(table, step_column="loss")
    with pytest.raises(UsageError, match="holds no number"):
        understand(table, step_column="words")


def test_a_chart_export_has_the_runs_in_its_column_names() -> None:
    names = [f"a - b.{run} - train/loss{end}" for run in (1, 2) for end in ("", "__MIN", "__MAX")]
    plan = plan_of("Step", *names)
    assert plan.wide_runs == ("a - b.1", "a - b.2")
    kept = [(role.run, role.name) for role in plan.roles if role.kind == "metric"]
    assert kept == [("a - b.1", "loss"), ("a - b.2", "loss")]


def test_the_metric_of_a_chart_export_can_be_said_for_all_runs() -> None:
    table = table_of(
        {"Step": UP} | {f"{run} - {name}": UP for run in "ab" for name in ("x", "loss")}
    )
    roles = {r.column: r.name for r in understand(table, {"loss": "x"}).roles}
    assert (roles["a - x"], roles["b - x"]) == ("loss", "loss")
    roles = {r.column: r.name for r in understand(table, {"loss": "a - x"}).roles}
    assert (roles["a - x"], roles["a - loss"], roles["b - loss"]) == ("loss", "loss/loss", "loss")


def test_a_dash_in_one_name_is_no_chart_export() -> None:
    plan = plan_of("step", "loss", "left - right")
    assert plan.wide_runs == ()
    assert column_for(plan, "loss") == "loss"


def test_stacked_runs_are_told_apart_by_their_column() -> None:
    step: list[object] = [1, 2, 3, 1, 2, 3]
    loss: list[object] = [3.0, 2.0, 1.0] * 2
    stacked: list[object] = ["a", "a", "a", "b", "b", "b"]
    assert plan_of(step=step, loss=loss, run_id=stacked).run_column == "run_id"
    assert plan_of(step=step, loss=loss, seed=[1, 1, 1, 2, 2, 2]).run_column == "seed"
    # The same columns where they tell no runs apart: one value; restarts; a seed for each batch.
    assert plan_of(step=step, loss=loss, run_id=["a"] * 6).run_column is None
    onward: list[object] = [1, 2, 3, 4, 5, 6]
    assert plan_of(step=onward, loss=loss, run_id=stacked).run_column is None
    assert plan_of(step=onward, loss=loss, seed=[9, 4, 7, 1, 3, 8]).run_column is None


def test_steps_written_as_text_count() -> None:
    plan = plan_of(loss=UP, step=["1/400", "2/400", "1,003/400", "1,004/400"])
    assert plan.step == "step"
    assert column_of(["1/400"]).kind == "text"
