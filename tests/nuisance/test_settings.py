"""What a user sets does what it says: thresholds order the findings, ranges and shards cut."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from stabdiag import analyze
from stabdiag.findings import Report
from stabdiag.settings import Settings
from tests.make_runs import F64, healthy, spike, write_log

POINTS = 600
SPIKES = {200: 0.6, 300: 1.2, 400: 2.4, 500: 4.8}


@pytest.fixture
def spiking(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.csv", with_spikes())


def with_spikes() -> dict[str, F64]:
    columns = healthy(POINTS, noise=0.04)
    for at, height in SPIKES.items():
        spike(columns, "loss", at, height, 2)
    return columns


def spiked(report: Report) -> set[int]:
    return {f.step for f in report.findings if f.rule == "SD101" and f.step is not None}


def test_a_higher_threshold_finds_no_other_spikes(spiking: Path) -> None:
    found = [
        spiked(analyze(spiking, settings=Settings(spike_threshold=z)))
        for z in (3.0, 8.0, 20.0, 45.0, 1000.0)
    ]
    assert found[1] >= {300, 400, 500}
    assert found[-1] == set()
    for low, high in itertools.pairwise(found):
        assert all(any(abs(s - h) <= 3 for s in low) for h in high)


def test_the_default_finds_what_stands_out(spiking: Path) -> None:
    assert spiked(analyze(spiking)) >= {400, 500}


@pytest.mark.parametrize(("first", "last"), [(250, None), (None, 350), (250, 450)])
def test_a_range_of_steps_is_all_that_is_judged(
    spiking: Path, first: int | None, last: int | None
) -> None:
    report = analyze(spiking, settings=Settings(first_step=first, last_step=last))
    low, high = first or 0, POINTS - 1 if last is None else last
    assert (report.run.first_step, report.run.last_step) == (low, high)
    assert {s for s in (400, 500) if low <= s <= high} <= spiked(report)
    assert all(low <= s <= high for s in spiked(report))


@pytest.mark.parametrize("cut", [100, 401, 550])
def test_shards_are_one_run(tmp_path: Path, spiking: Path, cut: int) -> None:
    columns = with_spikes()
    one = write_log(tmp_path / "one.csv", {k: v[:cut] for k, v in columns.items()})
    two = write_log(tmp_path / "two.csv", {k: v[cut:] for k, v in columns.items()})
    whole, joined = analyze(spiking), analyze(one, two)
    assert joined.verdict.cause == whole.verdict.cause
    assert joined.verdict.onset_step == whole.verdict.onset_step
    assert spiked(joined) == spiked(whole)


def test_a_column_may_be_named(tmp_path: Path) -> None:
    columns = healthy(POINTS)
    other = columns["loss"] + np.where(np.arange(POINTS) == 400, 5.0, 0.0)
    log = write_log(tmp_path / "log.csv", {**columns, "objective_b": other})
    assert spiked(analyze(log)) == set()
    named = analyze(log, settings=Settings(column_map={"loss": "objective_b"}))
    assert spiked(named) == {400}
    assert named.run.series["loss"].column == "objective_b"
