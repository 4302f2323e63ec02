"""A separate index: a file that names the samples of each step or batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stabdiag.batches.indices import BatchIds, Indices, batch_keys, exact
from stabdiag.batches.sources.tokens import mapped_array
from stabdiag.errors import InputError
from stabdiag.model import Column, LogTable, Run
from stabdiag.readers import read_log
from stabdiag.runs.batches import cell_parts

_STEPS = ("step", "global_step", "iteration", "iter")
_BATCHES = ("batch_id", "batch_idx", "batch_index", "batch")
_IDS = ("sample_ids", "ids", "indices", "sample_indices", "data_indices", "doc_ids", "example_ids")
_ONE_ID = ("sample_id", "id", "index", "sample_idx", "data_index", "doc_id", "example_id")


def read_index(path: Path, run: Run) -> Indices:
    """Read a JSON Lines, CSV or Parquet index, or a .npy array [steps, B] whose row is the step.

    A table has a column of the step or batch id, and one of sample ids: a list a row, or a row for
    each sample.

    Raises:
        InputError: the file is missing, or has no such columns.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file", "Check the path given with --index.")
    with path.open("rb") as file:
        is_array = file.read(6) == b"\x93NUMPY"
    return _array_index(path, run) if is_array else _table_index(path, run)


def _array_index(path: Path, run: Run) -> Indices:
    array = mapped_array(path)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {array.dtype} with {array.ndim} dimensions, not whole numbers [steps, B]",
            "Save the sample ids of each step as one row of integers.",
        )

    def row(number: int) -> tuple[str, ...]:
        return tuple(map(str, array[number].tolist()))

    logged = batch_keys(run)
    first = run.batch.step[:1].tolist() if run.batch is not None else []
    if any(step in logged for step in first):
        own = {str(number) for number in range(len(array))}.intersection(logged.values())
        return _by_batch(path, run, {key: row(int(key)) for key in own})
    steps = np.arange(len(array), dtype=np.int64)

    def at(place: int) -> BatchIds:
        return BatchIds(place, row(place))

    return Indices(f"{path.name}: row s is step s", "ids", steps, at)


def _table_index(path: Path, run: Run) -> Indices:
    table = read_log([path])
    step, batch = _first(table, _STEPS), _first(table, _BATCHES)
    ids = _first(table, _IDS) or _first(table, _ONE_ID)
    key = step if step is not None else batch
    if key is None or ids is None:
        what = "step or batch id" if key is None else "sample ids"
        raise InputError(
            f"{path}: no column of the {what}; it has {', '.join(map(repr, table.names[:12]))}",
            f"Call one {_STEPS[0]!r} or {_BATCHES[0]!r}, and one {_IDS[0]!r}.",
        )
    columns = table.load([key, ids])
    gathered = _gathered(path, columns[key], columns[ids], table.rows)
    if step is None:
        return _by_batch(path, run, gathered)
    whole = {int(k): v for k, v in gathered.items() if k.lstrip("-").isdecimal()}
    steps = np.array(sorted(whole), dtype=np.int64)

    def at(place: int) -> BatchIds:
        own = int(steps[place])
        return BatchIds(own, whole[own])

    return Indices(f"{path.name}: {ids!r} by {step!r}", "ids", steps, at)


def _first(table: LogTable, names: tuple[str, ...]) -> str | None:
    lower = {name.lower(): name for name in table.names}
    return next((lower[name] for name in names if name in lower), None)


def _gathered(path: Path, keys: Column, ids: Column, rows: int) -> dict[str, tuple[str, ...]]:
    """The ids by key; rows of the same key follow one another."""
    every = np.arange(rows, dtype=np.int64)
    out: dict[str, list[str]] = {}
    for key, parts in zip(cell_parts(keys, every), cell_parts(ids, every), strict=True):
        if key and parts:
            out.setdefault(key[0], []).extend(exact(parts, f"{path}, {key[0]}"))
    return {key: tuple(parts) for key, parts in out.items()}


def _by_batch(path: Path, run: Run, gathered: dict[str, tuple[str, ...]]) -> Indices:
    """Join the index on the batch ids of the log.

    Raises:
        InputError: the log has no batch id, or none that the index knows.
    """
    rows = [(step, key) for step, key in batch_keys(run).items() if key in gathered]
    if not rows:
        raise InputError(
            f"{path}: an index by batch id, and the log has no batch id that is in it",
            "Log `batch_id` at each step, or write the index by step.",
        )
    steps = np.array([step for step, _ in rows], dtype=np.int64)

    def at(place: int) -> BatchIds:
        return BatchIds(rows[place][0], gathered[rows[place][1]])

    return Indices(f"{path.name}: sample ids by batch id", "ids", steps, at)
