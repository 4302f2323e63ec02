"""The local pool: every log comes back once, whatever becomes of a worker."""

from __future__ import annotations

from pathlib import Path

from stabdiag.fleet.processes import Pool
from stabdiag.fleet.runner import Lost
from tests.fleet import doing

LOGS = [f"log-{place}" for place in range(6)]


def test_every_log_comes_back_once() -> None:
    answers = list(Pool(2)(doing.named, LOGS))
    assert sorted(answers) == [(log, log.upper()) for log in LOGS]


def test_no_logs_start_no_worker() -> None:
    assert list(Pool(2)(doing.named, [])) == []


def test_the_death_of_a_worker_costs_one_log() -> None:
    answers = dict(Pool(2)(doing.deadly, [*LOGS[:3], "dead", *LOGS[3:]]))
    lost = answers.pop("dead")
    assert lost == Lost("its worker was killed by SIGKILL: out of memory, perhaps")
    assert answers == {log: log.upper() for log in LOGS}


def test_a_log_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    assert list(Pool(1)(doing.deadly_once, [log])) == [(log, log.upper())]


def test_a_log_that_takes_too_long_is_given_up() -> None:
    answers = dict(Pool(2, limit_s=2.5)(doing.slow, [*LOGS[:2], "slow"]))
    assert answers.pop("slow") == Lost("took longer than 2.5 s")
    assert answers == {log: log.upper() for log in LOGS[:2]}
