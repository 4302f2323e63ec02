"""A folder of one-metric files (TensorBoard exports, MLflow, DVCLive) as one table by step."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stabdiag.errors import InputError, StabdiagError
from stabdiag.model import F64, I64, Column, LogTable, Mask, Note
from stabdiag.readers.detect import detect
from stabdiag.readers.event_files import is_event_file, read_event_folder
from stabdiag.readers.series_name import series_name
from stabdiag.readers.source import open_source

MOST_FILES = 5000
_LISTED = 10
LOG_SUFFIXES = (
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".parquet",
    ".feather",
    ".arrow",
    ".log",
    ".txt",
)
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
_STEP_NAMES = frozenset(("step", "Step", "global_step", "iteration", "iter", "epoch"))
_TIME_NAMES = frozenset(("Wall time", "timestamp", "time", "wall_time"))
_MLFLOW = ("column 1", "column 2", "column 3")  # timestamp in ms, value, step


@dataclass(frozen=True)
class Metric:
    """One series of a folder: shape [N] each; `wall` is None where the file has no time."""

    name: str
    file: str
    step: F64
    value: F64
    logged: Mask
    wall: F64 | None
    notes: tuple[Note, ...]


def read_folder(folder: Path) -> LogTable:
    """Join the one-metric files of a folder, also of folders in it.

    Raises:
        InputError: there are no such files; logs of other kinds in the folder are named.
    """
    files = _files(folder)
    if len(files) > MOST_FILES:
        raise InputError(
            f"{folder}: a folder of more than {MOST_FILES} files",
            "name the folder of one run's metrics",
        )
    events = [file for file in files if is_event_file(file)]
    if events and not any(file.suffix in _TABLE_SUFFIXES for file in files):
        return read_event_folder(folder, events)
    found = [metric for file in files if (metric := _metric(file, folder)) is not None]
    of_metrics = {metric.file for metric in found}
    others = [f for f in files if f.suffix in _TABLE_SUFFIXES and str(f) not in of_metrics]
    if not found or others:  # a table beside them may be the same run's, or another's
        raise _no_metrics(folder, files)
    metrics = _uniquely_named(found, folder)
    row_of, step = _rows(metrics)
    rows = len(step)
    columns = {"step": Column("number", step.astype(np.float64), np.ones(rows, dtype=np.bool_))}
    wall = _wall(metrics, row_of, rows)
    if wall is not None:
        columns["Wall time"] = Column("number", wall, np.isfinite(wall))
    for metric, at in zip(metrics, row_of, strict=True):
        value = np.full(rows, np.nan)
        logged = np.zeros(rows, dtype=np.bool_)
        value[at], logged[at] = metric.value, metric.logged
        columns[metric.name] = Column("number", value, logged)

    def load(names: Sequence[str]) -> dict[str, Column]:
        return {name: columns[name] for name in names}

    return LogTable(
        files=tuple(metric.file for metric in metrics),
        format="folder",
        names=tuple(columns),
        kinds=dict.fromkeys(columns, "number"),
        rows=rows,
        load=load,
        line=np.arange(1, rows + 1, dtype=np.int64),
        notes=tuple(note for metric in metrics for note in metric.notes),
        detection=f"folder: {len(metrics)} files of one metric each, joined on step",
    )


def _files(folder: Path) -> list[Path]:
    try:
        os.listdir(folder)  # rglob passes over what it may not read
        return sorted(
            p
            for p in folder.rglob("*")
            if p.is_file() and not any(part.startswith(".") for part in p.relative_to(folder).parts)
        )
    except OSError as err:
        raise InputError(f"{folder}: can't be listed: {err.strerror}", "check the folder") from err


def _metric(file: Path, folder: Path) -> Metric | None:
    """Read a file as one metric over steps; None where it is something else."""
    try:
        source = open_source(file)
        reader, _ = detect(source)
        if reader.name not in ("csv", "json"):
            return None
        table = reader.read(source)
    except StabdiagError:
        return None
    names = table.names
    if any(table.kinds[name] != "number" for name in names):
        return None
    relative = file.relative_to(folder).with_suffix("").as_posix()
    if table.format == "tensorboard":
        name = value = series_name(source)
        step, wall, second = "Step", "Wall time", 1.0
    elif names == _MLFLOW and not file.suffix:
        wall, value, step = names
        second = 1000.0
        name = file.relative_to(folder).as_posix()
    else:
        steps = [n for n in names if n in _STEP_NAMES]
        times = [n for n in names if n in _TIME_NAMES]
        values = [n for n in names if n not in (*steps, *times)]
        if len(steps) != 1 or len(values) != 1 or len(times) > 1:
            return None
        step, wall, value, name = steps[0], (times or [""])[0], values[0], relative
        second = 1.0
    columns = table.load(names)
    known = columns[step].logged & np.isfinite(columns[step].value)
    return Metric(
        name,
        source.name,
        columns[step].value[known],
        columns[value].value[known],
        columns[value].logged[known],
        columns[wall].value[known] / second if wall else None,
        tuple(n for n in table.notes if not n.text.startswith("no header")),
    )


def _uniquely_named(found: Sequence[Metric], folder: Path) -> list[Metric]:
    """Name metrics after their paths below the folder that holds them all; tags stay if unique."""
    parents = {Path(m.file).parent.relative_to(folder) for m in found}
    shared = os.path.commonpath(parents)
    prefix = "" if shared in ("", ".") else f"{Path(shared).as_posix()}/"
    named = [replace(m, name=m.name.removeprefix(prefix)) for m in found]
    count = Counter(m.name for m in named)
    return [
        m
        if count[m.name] == 1 and m.name not in ("step", "Wall time")
        else replace(m, name=Path(m.file).relative_to(folder).with_suffix("").as_posix())
        for m in named
    ]


def _rows(metrics: Sequence[Metric]) -> tuple[list[I64], I64]:
    """Lay all metrics on common rows; return each one's rows, and the step of each row.

    A step that falls back is a restart: rows are ordered by restart, then step. The n-th value of
    a metric at one step stands in the n-th row of that step.
    """
    keys = []
    for metric in metrics:
        step = np.round(metric.step).astype(np.int64)
        segment = np.concatenate(([0], np.cumsum(np.diff(step) < 0)))[: len(step)]
        keys.append(np.stack([segment, step, _repeats(step)], axis=1))
    rows, inverse = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    ends = np.cumsum([len(key) for key in keys])[:-1]
    return np.split(inverse.reshape(-1), ends), rows[:, 1]


def _repeats(step: I64) -> I64:
    """Count how often the same step stood just before, [N]: 0, 1, 2 ... within equal steps."""
    if not step.size:
        return step
    first = np.concatenate(([True], np.diff(step) != 0))
    start = np.maximum.accumulate(np.where(first, np.arange(step.size), 0))
    return np.arange(step.size) - start


def _wall(metrics: Sequence[Metric], row_of: Sequence[I64], rows: int) -> F64 | None:
    """Return the earliest wall time of each row in seconds; None where no file has times."""
    wall = np.full(rows, np.inf)
    for metric, at in zip(metrics, row_of, strict=True):
        if metric.wall is not None:
            np.fmin.at(wall, at, metric.wall)
    return wall if np.isfinite(wall).any() else None


def _no_metrics(folder: Path, files: Sequence[Path]) -> InputError:
    names = [str(file.relative_to(folder)) for file in files if file.suffix in LOG_SUFFIXES]
    if not names:
        return InputError(f"{folder}: a folder without a log", "name the log that the run wrote")
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return InputError(f"{folder}: a folder, not a log; in it: {shown}", "name one of these files")
