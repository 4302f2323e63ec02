"""The log as a file: resumed, crashed, full, in JSON Lines and in Parquet parts."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import errno
import io
import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)

import stabdiag
from stabdiag.errors import UsageError
from stabdiag.recorder import Recorder
from stabdiag.recorder.parquet_parts import ParquetParts, part_paths
from stabdiag.recorder.rows import json_line
from stabdiag.recorder.sinks import JsonLines, Position
from tests.recorder.loops import batch_of, loss_of, tiny_model, train

ROOT = Path(__file__).resolve().parents[2]


def steps_and_segments(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["step"], row["segment"]) for row in rows]


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    tables = [pq.read_table(part) for part in part_paths(path)]
    return [
        {n: v for n, v in row.items() if v is not None} for t in tables for row in t.to_pylist()
    ]


def test_a_log_that_exists_goes_on_in_a_new_segment(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    train(path, 3)
    train(path, 2)
    train(path, 2, start_step=2)
    expected = [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (2, 2), (3, 2)]
    assert steps_and_segments(strict_rows(path)) == expected


def test_a_log_of_its_own_that_goes_on_with_a_run(tmp_path: Path) -> None:
    """Put behind that of the first process, it shows where it begins."""
    train(tmp_path / "a.jsonl", 13)
    train(tmp_path / "b.jsonl", 12, start_step=13)
    train(tmp_path / "b.jsonl", 5)
    both = tmp_path / "both.jsonl"
    both.write_bytes((tmp_path / "a.jsonl").read_bytes() + (tmp_path / "b.jsonl").read_bytes())
    run = stabdiag.read_run(both)
    assert [(s.first_step, s.last_step) for s in run.segments] == [(0, 12), (13, 24), (25, 29)]


def test_a_checkpoint_keeps_the_step(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, path) as rec:
        for step in range(5):
            rec.after_backward(loss_of(model, batch_of(step)))
            rec.after_step()
            if step == 2:
                checkpoint = rec.state_dict()
    with Recorder(model, optimizer, path) as rec:
        rec.load_state_dict(json.loads(json.dumps(checkpoint)))
        rec.after_backward(1.0)
        rec.after_step()
    assert steps_and_segments(strict_rows(path))[-2:] == [(4, 0), (3, 1)]


def test_a_loop_may_count_itself(tmp_path: Path) -> None:
    model = tiny_model()
    path = tmp_path / "run.jsonl"
    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), path) as rec:
        for step in (7, 8, 20):
            rec.after_backward(1.0, step=step)
            rec.after_step()
    assert [row["step"] for row in strict_rows(path)] == [7, 8, 20]


def test_a_line_that_a_crash_cut_is_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    train(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"step": 2, "segment": 0, "lo')
    train(path, 1)
    assert path.read_bytes().startswith(whole)
    assert steps_and_segments(strict_rows(path)) == [(0, 0), (1, 0), (2, 1)]


def test_the_last_line_is_found_behind_long_ones(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    long = json.dumps({"step": 4, "segment": 3, "text": "x" * 200_000}).encode() + b"\n"
    for cut in (b"", b'{"step": 5' + b" " * 100_000):
        path.write_bytes(b'{"step": 1}\n' + long + cut)
        sink = JsonLines(path)
        sink.close()
        assert sink.before == Position(4, 3)
        assert path.read_bytes() == b'{"step": 1}\n' + long


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.jsonl", b"epoch,loss\n1,2\n", "is no log of this recorder"),
        ("run.jsonl", b"[1, 2]\n", "is no log of this recorder"),
        ("run-00000.parquet", b"not parquet", "is no log of this recorder"),
        ("run.csv", b"", "neither .jsonl nor .parquet"),
    ],
)
def test_another_file_is_never_written_into(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        train(tmp_path / name.replace("-00000", ""), 1)
    assert (tmp_path / name).read_bytes() == content


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't be written"):
        train(tmp_path / "file" / "run.jsonl", 1)


def test_lines_are_strict_json() -> None:
    line = json_line({"step": 1, "loss": math.nan, "grad_norm": -math.inf, "lr": math.inf})
    assert line == b'{"step": 1, "loss": "NaN", "grad_norm": "-Infinity", "lr": "Infinity"}\n'


def fails_in_a_step(path: Path) -> None:
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, path, late_steps=100) as rec:
        for step in range(5):
            rec.after_backward(loss_of(model, batch_of(step)))
            if step == 3:
                raise ZeroDivisionError
            rec.after_step()


def ends_before_its_step(path: Path, *, fails: bool) -> None:
    model = tiny_model()
    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), path) as rec:
        rec.after_backward(1.0, last=False)
        if fails:
            raise ZeroDivisionError


def test_a_step_that_fails_is_still_written(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fails_in_a_step(tmp_path / "run.jsonl")
    assert [row["step"] for row in strict_rows(tmp_path / "run.jsonl")] == [0, 1, 2, 3]


def test_micro_batches_without_a_step_are_written_only_after_an_error(tmp_path: Path) -> None:
    ends_before_its_step(tmp_path / "whole.jsonl", fails=False)
    assert strict_rows(tmp_path / "whole.jsonl") == []
    with pytest.raises(ZeroDivisionError):
        ends_before_its_step(tmp_path / "failed.jsonl", fails=True)
    assert strict_rows(tmp_path / "failed.jsonl") == [{"step": 0, "segment": 0, "loss": 1.0}]


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {root!r})
import torch
from stabdiag.recorder import Recorder
from tests.recorder.loops import tiny_model
model = tiny_model()
rec = Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), {path!r}, late_steps={late})
for step in range(7):
    rec.after_backward(torch.tensor(float(step)))
    rec.after_step()
{end}
"""


FORKED = """
pid = os.fork()
if pid == 0:
    sys.exit(0)
os.waitpid(pid, 0)
raise ValueError("out of luck")
"""


@pytest.mark.parametrize(
    ("end", "late", "code"),
    [("os.kill(os.getpid(), signal.SIGKILL)", 0, -signal.SIGKILL), (FORKED, 100, 1)],
    ids=["killed", "fails after a fork"],
)
def test_no_line_is_lost_or_doubled_when_the_process_ends(
    tmp_path: Path, end: str, late: int, code: int
) -> None:
    path = tmp_path / "run.jsonl"
    script = SCRIPT.format(root=str(ROOT), path=str(path), late=late, end=end)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=240
    )
    assert done.returncode == code
    assert [row["loss"] for row in strict_rows(path)] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_full_disk_does_not_end_the_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model()
    path = tmp_path / "run.jsonl"

    def full(self: io.FileIO, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), path) as rec:
        rec.after_backward(1.0)
        rec.after_step()
        monkeypatch.setattr(JsonLines, "write", full)
        for _ in range(3):
            rec.after_backward(1.0)
            rec.after_step()
        monkeypatch.undo()
        rec.after_backward(1.0)
        rec.after_step()
    assert [row["step"] for row in strict_rows(path)] == [0, 4]
    (record,) = caplog.records
    assert "No space left" in record.getMessage()


def test_a_disk_that_fills_within_a_line_leaves_whole_lines(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "run.jsonl")
    sink.write([{"step": 0}])
    whole = (tmp_path / "run.jsonl").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            sink.write([{"step": 1}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "run.jsonl").read_bytes() == whole
    sink.write([{"step": 2}])
    sink.close()
    assert [row["step"] for row in strict_rows(tmp_path / "run.jsonl")] == [0, 2]


def test_a_device_that_fails_leaves_what_the_host_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered\nmore of it")

    path = tmp_path / "run.jsonl"
    model = tiny_model()
    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), path, late_steps=5) as rec:
        rec._on_host = False  # as for a model on a device
        rec.after_backward(torch.tensor(1.0), indices="shard 7")
        rec.after_step()
        monkeypatch.setattr("stabdiag.recorder.measured.fetched", fail)
    assert strict_rows(path) == [{"step": 0, "segment": 0, "lr": 0.1, "batch_id": "shard 7"}]
    assert "device-side assert triggered" in caplog.text


def test_after_close_nothing_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = tiny_model()
    with Recorder(model, torch.optim.SGD(model.parameters(), lr=0.1), path) as rec:
        pass
    rec.after_backward(1.0)
    rec.after_step()
    rec.log(val_loss=1.0)
    rec.close()
    assert path.read_bytes() == b""


def test_parquet_parts_hold_what_json_lines_hold(tmp_path: Path) -> None:
    def nan(step: int, model: torch.nn.Module) -> None:
        if step == 9:
            model[0].weight.grad[0] = math.inf

    for end in ("jsonl", "parquet"):
        train(tmp_path / f"run.{end}", 25, before_recording=nan, part_rows=10)
    words = {"NaN": math.nan, "Infinity": math.inf}
    expected = [
        {n: words.get(v, v) if isinstance(v, str) else v for n, v in row.items()}
        for row in strict_rows(tmp_path / "run.jsonl")
    ]
    for row in expected:
        row["batch_id"] = str(row["batch_id"])
    got = parquet_rows(tmp_path / "run.parquet")
    assert [str(sorted(row.items())) for row in got] == [
        str(sorted(row.items())) for row in expected
    ]
    names = [p.name for p in part_paths(tmp_path / "run.parquet")]
    assert names == ["run-00000.parquet", "run-00001.parquet", "run-00002.parquet"]
    left = {p.name for p in tmp_path.iterdir()} - {"run.jsonl"}
    assert left == set(names)


def test_rows_of_no_part_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    sink = ParquetParts(path, part_rows=3)
    for step in range(5):
        sink.write([{"step": step, "segment": 0, "loss": math.nan if step == 4 else 1.0}])
    sink._tail.close()  # killed here: nothing else happens
    assert [row["step"] for row in parquet_rows(path)] == [0, 1, 2]
    assert [row["step"] for row in strict_rows(tmp_path / "run-tail.jsonl")] == [3, 4]
    again = ParquetParts(path, part_rows=3)
    assert again.before == Position(4, 0)
    again.close()
    rows = parquet_rows(path)
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert math.isnan(rows[4]["loss"])
    assert not (tmp_path / "run-tail.jsonl").exists()


def test_a_kill_between_part_and_tail_doubles_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    sink = ParquetParts(path, part_rows=100)
    sink.write([{"step": 0, "segment": 0}, {"step": 1, "segment": 0}])
    tail = (tmp_path / "run-tail.jsonl").read_bytes()
    sink.close()
    (tmp_path / "run-tail.jsonl").write_bytes(tail)
    again = ParquetParts(path, part_rows=100)
    assert again.before == Position(1, 0)
    assert (tmp_path / "run-tail.jsonl").read_bytes() == b""
    again.write([{"step": 2, "segment": 1}])
    again.close()
    assert [row["step"] for row in parquet_rows(path)] == [0, 1, 2]


def test_parts_share_their_types(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    sink = ParquetParts(path, part_rows=1)
    sink.write([{"step": 0, "segment": 0, "loss": 1, "batch_id": 7}])
    sink.write([{"step": 1, "segment": 0, "batch_id": "a", "sample_ids": [1, 2]}])
    sink.close()
    second = ParquetParts(path, part_rows=1)
    second.write([{"step": 2, "segment": 1, "sample_ids": ["x"]}])
    second.close()
    schemas = [pq.read_schema(part) for part in part_paths(path)]
    merged = pa.unify_schemas(schemas)
    assert merged.field("loss").type == pa.float64()
    assert [row.get("batch_id") for row in parquet_rows(path)] == ["7", "a", None]
    assert parquet_rows(path)[2]["sample_ids"] == ["x"]
