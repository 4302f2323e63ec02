"""A real Dask cluster of processes on this machine: a killed worker loses and doubles nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stabdiag.errors import UsageError
from stabdiag.fleet.cluster import Cluster
from tests.cli.small_logs import write_csv
from tests.command_line import Command
from tests.fleet import doing

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own, of ports and closed comms


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    """Two worker processes, each brought back by its nanny when it dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made


def kill_a_worker(address: str, after_s: float, killed: list[int]) -> None:
    """Kill one worker process of the cluster, as the kernel does when memory runs out."""
    with distributed.Client(address, set_as_default=False) as client:
        pids = client.run(os.getpid)
        time.sleep(after_s)
        killed.append(next(iter(pids.values())))
        os.kill(killed[0], signal.SIGKILL)


def test_a_worker_killed_midway_loses_and_doubles_nothing(
    cluster: distributed.LocalCluster,
) -> None:
    address = cluster.scheduler_address
    logs = [f"log-{place:03}" for place in range(120)]  # of 50 ms each
    killed: list[int] = []
    killer = threading.Thread(target=kill_a_worker, args=(address, 0.7, killed))
    killer.start()
    answers = list(Cluster(address)(doing.noted, logs))
    killer.join(30)
    assert sorted(log for log, _ in answers) == logs
    assert all(result[0] == log for log, result in answers)
    done_by = {pid for _, (_, pid) in answers}
    assert len(killed) == 1
    assert done_by - set(killed), "others took over"


def test_the_survey_is_that_of_local_processes(
    cluster: distributed.LocalCluster,
    command: Command,
    folder: Path,
) -> None:
    for place in range(4):
        write_csv(folder / f"run{place}.csv", jump=place == 2)
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    here = command("fleet", ".", "--format", "json", "--state", "none")
    there = command(
        *("fleet", ".", "--format", "json", "--state", "none"),
        *("--cluster", cluster.scheduler_address),
    )
    assert (here.code, there.code) == (0, 0)
    rows, others = json.loads(here.out)["runs"], json.loads(there.out)["runs"]
    for row in (*rows, *others):
        row["error"] = row["error"].replace(f"{folder}/", "")
    assert rows == others
    assert rows[0]["log"] == "run2.csv"
    assert [row["status"] for row in rows].count("unreadable") == 1


def test_no_scheduler_is_said() -> None:
    with pytest.raises(UsageError, match="no scheduler answers there"):
        list(Cluster("tcp://127.0.0.1:9", connect_s=0.5)(doing.named, ["log"]))
