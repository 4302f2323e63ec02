"""Spikes that a reader of the chart sees at once are found, whatever the length and the cadence."""

from __future__ import annotations

import pytest

from stabdiag.diagnose import diagnose
from stabdiag.settings import Settings
from tests.make_runs import healthy, run_of, spike

RUNS = 8


@pytest.mark.parametrize("cadence", [1, 50])
@pytest.mark.parametrize(
    ("points", "noise", "height"),
    [
        (200, 0.02, 0.8),  # on a course that was steep 100 points before
        (200, 0.05, 1.0),
        (400, 0.02, 0.4),
        (1000, 0.05, 0.8),
        (5000, 0.05, 0.8),
    ],
)
def test_a_spike_of_many_spreads_is_found_at_its_step(
    points: int, noise: float, height: float, cadence: int
) -> None:
    at = int(0.6 * points)
    hits = others = 0
    for seed in range(RUNS):
        columns = healthy(points, seed=seed, noise=noise, cadence=cadence)
        spike(columns, "loss", at, height, 2)
        report = diagnose(run_of(step=columns["step"], loss=columns["loss"]), Settings())
        found = [f.step for f in report.findings if f.rule in ("SD101", "SD104")]
        near = [s for s in found if s is not None and abs(s - at * cadence) <= cadence]
        hits += bool(near)
        others += len(found) - len(near)
    assert hits == RUNS
    assert others == 0


@pytest.mark.parametrize("points", [1, 2])
def test_one_and_two_points_are_not_judged(points: int) -> None:
    report = diagnose(run_of(loss=[1.0, 900.0][:points]), Settings())
    assert [f.rule for f in report.findings if f.rule in ("SD101", "SD103", "SD104")] == []
    assert report.verdict.cause == "inconclusive"
