"""Restarts: repeated steps and a loss that jumps exactly there are no spike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stabdiag import analyze, read_run
from stabdiag.errors import ManyRunsError
from stabdiag.settings import Settings
from tests.make_runs import F64, healthy, spike, write_log
from tests.traps.said import findings, quiet, report_of, serious

AT = 300  # row at which the process starts again
BACK = 20  # steps that it repeats


def restarted(points: int = 500, *, seed: int = 0) -> dict[str, F64]:
    """A run that stops after step 299 and goes on from step 280 with fresh noise."""
    one, two = healthy(points, seed=seed), healthy(points, seed=seed + 50)
    return {k: np.concatenate([one[k][:AT], two[k][AT - BACK :]]) for k in one}


def test_a_restart_that_goes_on_is_no_trouble(tmp_path: Path) -> None:
    report = report_of(tmp_path, restarted())
    assert quiet(report)
    assert len(report.run.segments) == 2
    assert report.run.series["loss"].points == 500


def jumping(change: float) -> dict[str, F64]:
    columns = restarted()
    columns["loss"][AT:] += change
    return columns


@pytest.mark.parametrize(
    ("change", "causes"), [(-0.5, {"data"}), (0.5, {"state_corruption", "data"})]
)
def test_a_jump_exactly_at_the_resume_is_told_as_one(
    tmp_path: Path, change: float, causes: set[str]
) -> None:
    report = report_of(tmp_path, jumping(change))
    assert "SD105" in serious(report)
    assert findings(report, "SD105")[0].step == AT - BACK
    assert report.verdict.cause in causes
    assert report.verdict.onset_step == AT - BACK


@pytest.mark.parametrize("change", [-0.5, 0.5])
def test_a_jump_exactly_at_the_resume_is_no_spike(tmp_path: Path, change: float) -> None:
    assert serious(report_of(tmp_path, jumping(change))) == {"SD105"}


def test_the_same_jump_without_a_restart_is_a_shift_of_the_loss(tmp_path: Path) -> None:
    columns = healthy(500)
    columns["loss"][AT:] += 0.5
    report = report_of(tmp_path, columns)
    assert serious(report) & {"SD101", "SD104"}
    assert "SD105" not in serious(report)


def test_a_spike_in_steps_that_were_overwritten_is_still_seen(tmp_path: Path) -> None:
    columns = restarted()
    spike(columns, "loss", AT - 10, 4.0, 8)
    report = report_of(tmp_path, columns)
    assert "SD101" in serious(report)
    assert findings(report, "SD101")[0].step == AT - 10


def test_a_spike_does_not_reach_back_across_a_restart(tmp_path: Path) -> None:
    columns = restarted()
    spike(columns, "loss", AT + 40, 4.0, 3)
    step = int(columns["step"][AT + 40])
    report = report_of(tmp_path, columns)
    (found,) = findings(report, "SD101")
    assert found.step in (step - 1, step)


def test_a_schedule_that_starts_again_is_the_root(tmp_path: Path) -> None:
    columns = restarted()
    after = columns["lr"].size - AT
    columns["lr"][AT:] = 1e-3 * np.minimum(1.0, np.arange(1, after + 1) / 150.0)
    spike(columns, "loss", AT + 150, 2.0, 30)
    columns["grad_norm"][AT + 145 : AT + 180] *= 10.0
    report = report_of(tmp_path, columns)
    assert "SD107" in serious(report)
    assert findings(report, "SD107")[0].step == AT - BACK
    assert report.verdict.cause in ("state_corruption", "optimizer")
    if report.verdict.cause == "optimizer":
        assert report.verdict.root is not None
        assert report.verdict.root.step == AT - BACK


def test_a_schedule_that_was_restored_is_no_reset(tmp_path: Path) -> None:
    assert "SD107" not in serious(report_of(tmp_path, restarted()))


def test_two_runs_in_one_file_are_not_one_run_that_spiked(tmp_path: Path) -> None:
    one, two = healthy(300, seed=1), healthy(300, seed=2)
    both = {k: np.concatenate([one[k], two[k]]) for k in one}
    path = write_log(tmp_path / "log.jsonl", both)
    with pytest.raises(ManyRunsError) as caught:
        read_run(path)
    assert len(caught.value.runs) == 2
    for name in caught.value.runs:
        assert quiet(analyze(path, settings=Settings(run=name)))


def test_twenty_restarts_are_told_apart(tmp_path: Path) -> None:
    one = healthy(1000)
    order = np.concatenate([np.arange(max(0, 50 * i - 5), 50 * (i + 1)) for i in range(20)])
    report = report_of(tmp_path, {k: v[order] for k, v in one.items()})
    assert len(report.run.segments) == 20
    assert quiet(report)


def test_an_episode_before_a_restart_ends_no_earlier_than_it_began(tmp_path: Path) -> None:
    columns = restarted()
    columns["loss"][AT - 1] = np.nan
    for episode in report_of(tmp_path, columns).episodes:
        assert episode.end_step is None or episode.end_step >= episode.onset_step


def test_infinite_losses_on_both_sides_of_a_restart(tmp_path: Path) -> None:
    columns = restarted()
    columns["loss"][[AT - 5, AT + BACK - 5]] = np.inf
    assert report_of(tmp_path, columns).run.series["loss"].non_finite == 1
