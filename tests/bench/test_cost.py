"""The measuring of commands, on commands whose cost is known; the generated logs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.bench.cost import CommandFailedError, cost_of, cost_of_pair
from tests.bench.logs import rounded, training_columns, write_log

MIB = 1024 * 1024


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_peak_memory_and_time_are_those_of_the_command() -> None:
    hungry = cost_of(python("x = b'1' * (1 << 30)"), os.environ)
    assert hungry.peak_bytes > 1000 * MIB
    sleepy = cost_of(python("import time; time.sleep(0.3)"), os.environ)
    assert sleepy.wall_s >= 0.3
    assert sleepy.cpu_s < sleepy.wall_s
    assert sleepy.peak_bytes < hungry.peak_bytes


def test_a_failed_command_is_no_measurement() -> None:
    with pytest.raises(CommandFailedError, match="exit code 3: last words"):
        cost_of(python("import sys; print('last words', file=sys.stderr); sys.exit(3)"), os.environ)


def test_the_ratio_compares_the_pair() -> None:
    slow, fast = python("import time; time.sleep(0.4)"), python("")
    assert cost_of_pair(slow, fast, os.environ, times=1).wall_ratio > 1.5


def test_generated_logs_hold_the_same_numbers_in_every_format(tmp_path: Path) -> None:
    truth = training_columns(50, 7)
    assert list(truth)[:3] == ["step", "loss", "grad_norm"]
    assert len(truth) == 7
    for kind in ("csv", "parquet", "jsonl", "trainer_state"):
        write_log(kind, 50, 7, tmp_path / kind)
    lines = (tmp_path / "jsonl").read_text(encoding="utf-8").splitlines()
    state = json.loads((tmp_path / "trainer_state").read_text(encoding="utf-8"))
    losses = {
        "csv": pyarrow.csv.read_csv(tmp_path / "csv")["loss"].to_pylist(),
        "parquet": pyarrow.parquet.read_table(tmp_path / "parquet")["loss"].to_pylist(),
        "jsonl": [json.loads(line)["loss"] for line in lines],
        "trainer_state": [record["loss"] for record in state["log_history"]],
    }
    for kind, loss in losses.items():
        np.testing.assert_allclose(loss, truth["loss"], rtol=1e-12, err_msg=kind)
    assert int(np.argmax(truth["grad_norm"])) == 2 * 50 // 3


def test_numbers_have_six_digits() -> None:
    np.testing.assert_allclose(
        rounded(np.array([0.0, 1.23456789, -98765.4321])), [0.0, 1.23457, -98765.4], rtol=1e-14
    )
