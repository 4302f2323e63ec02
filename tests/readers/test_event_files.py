"""TensorBoard event files, written by TensorBoard's own writer."""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from stabdiag import read_run
from stabdiag.errors import InputError
from stabdiag.readers import read_log

MISSING = "tensorboard is not installed"
EVENT = b"\x18\0\0\0\0\0\0\0\xa3\x7fK\x22\x09\0\0\xc0\x01\x02\x1a\x0dbrain.Event:2\xec"


def write(file: Path, points: list[tuple[int, dict[str, float]]], *, tensors: bool = False) -> Path:
    """Write one event file: an event for each step, its scalars plain or as tensors."""
    pytest.importorskip("tensorboard", reason=MISSING)
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        writer = RecordWriter(stream)
        writer.write(Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString())
        for number, (step, scalars) in enumerate(points):
            summary = Summary()
            for tag, value in scalars.items():
                if not tensors:
                    summary.value.add(tag=tag, simple_value=value)
                    continue
                one = summary.value.add(tag=tag, tensor=make_tensor_proto(np.float32(value)))
                if number == 0:  # writers say what a tag is once
                    one.metadata.plugin_data.plugin_name = "scalars"
            event = Event(wall_time=100.0 + step, step=step, summary=summary)
            writer.write(event.SerializeToString())
    return file


def losses(steps: range, start: float = 8.0) -> list[tuple[int, dict[str, float]]]:
    return [(s, {"train/loss": start - s / 4, "train/grad_norm": 1.5}) for s in steps]


@pytest.mark.parametrize("tensors", [False, True], ids=["plain", "tensors"])
def test_tags_become_columns(tmp_path: Path, tensors: bool) -> None:
    points = losses(range(0, 20, 2))
    points[4] = (8, {"train/loss": math.nan, "train/grad_norm": math.inf})
    points.append((18, {"val/loss": 6.5}))
    table = read_log([write(tmp_path / "events.out.tfevents.1.h", points, tensors=tensors)])
    assert table.names == ("step", "train/loss", "train/grad_norm", "val/loss", "Wall time")
    assert table.rows == 10  # the validation loss stands in the row of its step
    columns = table.load(table.names)
    assert columns["step"].value.tolist() == list(range(0, 20, 2))
    loss, norm, val = (columns[n] for n in ("train/loss", "train/grad_norm", "val/loss"))
    assert loss.logged.all()
    assert np.isnan(loss.value).nonzero()[0].tolist() == [4]
    assert norm.value[4] == math.inf
    assert val.logged.nonzero()[0].tolist() == [9]
    assert columns["Wall time"].value.tolist() == [100.0 + s for s in range(0, 20, 2)]
    assert not table.notes


def test_the_files_of_a_folder_are_one_run_with_its_restarts(tmp_path: Path) -> None:
    write(tmp_path / "events.out.tfevents.1700000000.h", losses(range(40)))
    write(tmp_path / "events.out.tfevents.1700009999.h", losses(range(30, 80), start=9.0))
    run = read_run(tmp_path)
    assert [(s.first_step, s.last_step) for s in run.segments] == [(0, 39), (30, 79)]
    assert run.series["loss"].step.tolist() == list(range(80))
    assert run.series["loss"].value[30] == 9.0 - 30 / 4  # the later write counts
    assert run.abandoned["loss"].step.tolist() == list(range(30, 40))


def test_splits_of_one_run_are_told_by_their_folder(tmp_path: Path) -> None:
    for split, start in (("train", 4.0), ("validation", 5.0)):
        points = [(s, {"epoch_loss": start - s / 10}) for s in range(12)]
        write(tmp_path / split / "events.out.tfevents.1.h", points)
    table = read_log([tmp_path])
    assert {"train/epoch_loss", "validation/epoch_loss"} <= set(table.names)
    assert table.rows == 12


def test_folders_of_several_runs_are_refused(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / run / "events.out.tfevents.1.h", losses(range(5)))
    with pytest.raises(InputError, match="event files of 2 runs: a, b"):
        read_log([tmp_path])


def test_a_cut_last_record_is_dropped_and_said(tmp_path: Path) -> None:
    file = write(tmp_path / "events.out.tfevents.1.h", losses(range(10)))
    file.write_bytes(file.read_bytes()[:-5])
    table = read_log([file])
    assert table.load(["step"])["step"].value.tolist() == list(range(9))
    (note,) = table.notes
    assert (note.kind, note.rows) == ("dropped", (11,))
    assert "cut short or damaged" in note.text


def test_damage_in_the_middle_is_said_too(tmp_path: Path) -> None:
    file = write(tmp_path / "events.out.tfevents.1.h", losses(range(10)))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    table = read_log([file])
    assert 0 < table.rows < 10
    assert table.notes[0].kind == "dropped"


def test_compressed(tmp_path: Path) -> None:
    file = write(tmp_path / "events.out.tfevents.1.h", losses(range(10)))
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_log([packed]).rows == 10


def test_nothing_but_a_version_is_no_log(tmp_path: Path) -> None:
    file = write(tmp_path / "events.out.tfevents.1.h", [])
    with pytest.raises(InputError, match="without a scalar"):
        read_log([file])


def test_without_the_package_its_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = "tensorboard.backend.event_processing.event_file_loader"
    monkeypatch.setitem(sys.modules, loader, None)
    monkeypatch.setitem(sys.modules, "google.protobuf.message", None)
    (tmp_path / "events.out.tfevents.1.h").write_bytes(EVENT)
    for log in (tmp_path / "events.out.tfevents.1.h", tmp_path):
        with pytest.raises(InputError, match="a TensorBoard event file") as caught:
            read_log([log])
        assert "stabdiag[tensorboard]" in caught.value.todo
