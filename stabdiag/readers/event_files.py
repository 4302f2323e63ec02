"""TensorBoard event files: each scalar tag a column; the files of one folder are one run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stabdiag.errors import InputError, MissingPackageError
from stabdiag.model import I64, Column, LogTable, Note
from stabdiag.readers.source import MAX_DOCUMENT_BYTES, Source, open_source, stored_chunks

_MARK = "tfevents"  # in the name of every event file
_SIGN = b"brain.Event:"
_FRAME_BYTES = 16  # length, two checksums
_SCALARS = ("", "scalars")  # plugins whose tensors are scalars; older writers name none
# Folders that Keras and others make beside each other for one run; other folders are other runs.
_SPLITS = frozenset(("train", "training", "validation", "valid", "val", "eval", "test"))
_LISTED = 10


@dataclass
class _Tag:
    """The points of one tag in the order written; `part` numbers files and falls of the step."""

    part: list[tuple[int, int]] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def add(self, file: int, step: int, value: float, wall: float) -> None:
        """Append a point; a step that falls back within a file is a restart."""
        falls = 0
        if self.part and self.part[-1][0] == file:
            falls = self.part[-1][1] + (step < self.step[-1])
        self.part.append((file, falls))
        self.step.append(step)
        self.value.append(value)
        self.wall.append(wall)


def recognise_events(source: Source) -> str:
    """Know an event file by the version in its first record."""
    return "the record brain.Event at its start" if _SIGN in source.head[:64] else ""


def is_event_file(file: Path) -> bool:
    """Say whether a file is an event file by its name."""
    return _MARK in file.name


def read_events(source: Source) -> LogTable:
    """Read one event file.

    Raises:
        InputError: the tensorboard package is not installed, or the file has no scalar.
    """
    return _table([(source, "", 0)], source.name)


def read_event_folder(folder: Path, files: Sequence[Path]) -> LogTable:
    """Read the event files of one run's folder, restarts in the order of the files' names.

    Files in folders like `train` and `validation` below it are of the same run: their tags get
    the folder's name.

    Raises:
        InputError: the folder has those of several runs, or as `read_events`.
    """
    parents = sorted({file.parent for file in files})
    apart = [parent for parent in parents if parent.name not in _SPLITS]
    if len(apart) > 1:
        names = [parent.relative_to(folder).as_posix() for parent in apart]
        shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise InputError(
            f"{folder}: event files of {len(names)} runs: {shown}", "name the folder of one run"
        )
    found = []
    for parent in parents:
        prefix = f"{parent.name}/" if len(parents) > 1 and parent.name in _SPLITS else ""
        own = sorted(file for file in files if file.parent == parent)
        # A file of no byte is what a writer leaves that died at once.
        filled = [file for file in own if file.stat().st_size]
        found += [(open_source(file), prefix, index) for index, file in enumerate(filled)]
    return _table(found, str(folder))


def _table(sources: Sequence[tuple[Source, str, int]], name: str) -> LogTable:
    tags: dict[str, _Tag] = {}
    notes: list[Note] = []
    for source, prefix, index in sources:
        _gather(source, prefix, index, tags, notes)
        notes += source.notes.values()
    if not tags:
        raise InputError(
            f"{name}: TensorBoard event files without a scalar", "name the run's own log folder"
        )
    row_of, step = _rows(list(tags.values()))
    rows = len(step)
    wall = np.full(rows, np.inf)
    columns = {"step": Column("number", step.astype(np.float64), np.ones(rows, dtype=np.bool_))}
    for tag, points, at in zip(tags, tags.values(), row_of, strict=True):
        value = np.full(rows, np.nan)
        logged = np.zeros(rows, dtype=np.bool_)
        value[at], logged[at] = points.value, True
        np.fmin.at(wall, at, points.wall)
        columns[tag] = Column("number", value, logged)
    columns["Wall time"] = Column("number", np.where(np.isinf(wall), np.nan, wall), wall < np.inf)

    def load(names: Sequence[str]) -> dict[str, Column]:
        return {name: columns[name] for name in names}

    return LogTable(
        files=tuple(source.name for source, _, _ in sources),
        format="tensorboard events",
        names=tuple(columns),
        kinds=dict.fromkeys(columns, "number"),
        rows=rows,
        load=load,
        line=np.arange(1, rows + 1, dtype=np.int64),
        notes=tuple(notes),
        detection=f"tensorboard events: {len(sources)} event files, joined on step",
    )


def _rows(tags: Sequence[_Tag]) -> tuple[list[I64], I64]:
    """Lay all tags on common rows by file, restart and step; the n-th write of a step apart."""
    keys = []
    for tag in tags:
        part = np.array(tag.part, dtype=np.int64)
        step = np.array(tag.step, dtype=np.int64)
        key = np.column_stack([part, step])
        same = np.concatenate(([False], (key[1:] == key[:-1]).all(axis=1)))
        start = np.maximum.accumulate(np.where(same, 0, np.arange(len(step))))
        keys.append(np.column_stack([key, np.arange(len(step)) - start]))
    rows, inverse = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    ends = np.cumsum([len(key) for key in keys])[:-1]
    return np.split(inverse.reshape(-1), ends), rows[:, 2]


def _gather(
    source: Source, prefix: str, index: int, tags: dict[str, _Tag], notes: list[Note]
) -> None:
    """Add the scalars of one file to `tags`; what can't be read is noted."""
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event
    except ImportError as err:
        raise MissingPackageError(
            f"{source.name}: a TensorBoard event file; the package that reads it is missing",
            "pip install 'stabdiag[tensorboard]', or export its scalars as CSV and name those",
        ) from err
    unreadable: list[int] = []
    plugins: dict[str, str] = {}
    have = 0
    with _on_disk(source) as (path, size):
        records = RawEventFileLoader(path).Load()
        number = 0
        try:
            for number, record in enumerate(records, start=1):
                have += len(record) + _FRAME_BYTES
                try:
                    event = Event.FromString(record)
                except DecodeError:
                    unreadable.append(number)
                    continue
                for tag, value in _scalars(event, plugins):
                    tags.setdefault(_column(prefix + tag), _Tag()).add(
                        index, event.step, value, event.wall_time
                    )
        except (MemoryError, OverflowError):
            pass  # a record that says it is longer than any: its length is damaged
    if have < size:
        text = f"{source.name}: record {number + 1} is cut short or damaged: it and what follows"
        notes.append(Note("dropped", f"{text} ({size - have} bytes) is lost", 1, (number + 1,)))
    if unreadable:
        text = f"{source.name}: records that are no events"
        notes.append(Note("dropped", text, len(unreadable), tuple(unreadable[:20])))


def _column(tag: str) -> str:
    return f"tag/{tag}" if tag in ("step", "Wall time") else tag


def _scalars(event: Any, plugins: dict[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the scalars of an event; `plugins` keeps what the first value of a tag said of it."""
    from tensorboard.util.tensor_util import make_ndarray

    for value in event.summary.value:
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            yield value.tag, float(value.simple_value)
            continue
        plugin = plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name)
        if kind != "tensor" or plugin not in _SCALARS:
            continue
        try:
            array = make_ndarray(value.tensor)
        except (TypeError, ValueError):  # a type without a counterpart in numpy
            continue
        if array.size == 1 and array.dtype.kind in "biuf":
            yield value.tag, float(array.reshape(-1)[0])


@contextmanager
def _on_disk(source: Source) -> Iterator[tuple[str, int]]:
    """Give the path and size of the stored bytes; the loader reads files only."""
    if source.path is not None and source.path.is_file() and not source.compression:
        yield str(source.path), source.path.stat().st_size
        return
    folder = tempfile.mkdtemp(prefix="stabdiag-")
    try:
        copy = Path(folder, "events.out.tfevents")
        size = 0
        with copy.open("wb") as file:
            for chunk in stored_chunks(source):
                size += file.write(chunk)
                if size > MAX_DOCUMENT_BYTES:
                    raise InputError(
                        f"{source.name}: more than {MAX_DOCUMENT_BYTES >> 30} GiB of events",
                        "unpack it to a file and name that",
                    )
        yield str(copy), size
    finally:
        shutil.rmtree(folder, ignore_errors=True)
