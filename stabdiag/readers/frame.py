"""Tables in memory: what gives itself as Arrow, pandas frames with their NaN told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from stabdiag.errors import InputError
from stabdiag.model import LogTable, Mask, Note
from stabdiag.readers.columnar import in_memory, read_columnar
from stabdiag.readers.lists import MixedLists
from stabdiag.readers.records import column_cells

_NAME = "<table>"


def read_table(table: Any) -> LogTable:
    """Make a log of a frame or a table, one row a logged point.

    A pandas DataFrame, or what gives itself as an Arrow stream (the PyCapsule interface): Arrow and
    Polars tables, DuckDB relations, readers of batches. An Arrow null is missing and a NaN was
    logged. pandas has one NaN for both in columns of floats: there it is missing in a column that
    is filled in some rows only (see `_missing`), and a note says what was taken for what.

    Raises:
        InputError: it is no table, or has no column or row.
    """
    if hasattr(table, "iloc") and hasattr(table, "dtypes"):  # newer pandas gives streams, too
        frame, notes = _from_frame(table)
        log = read_columnar(in_memory(frame, _NAME, "pandas"))
        return replace(log, notes=(*log.notes, *notes))
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        table = _from_stream(table)
    return read_columnar(in_memory(table, _NAME, "arrow"))


def _from_stream(table: Any) -> pa.Table:
    if not hasattr(table, "__arrow_c_stream__"):
        raise InputError(
            f"{_NAME}: a {type(table).__name__} is no table",
            "pass a path, a DataFrame or an Arrow table",
        )
    try:
        return pa.RecordBatchReader.from_stream(table).read_all()
    except (pa.ArrowException, TypeError, ValueError) as err:
        reason = " ".join(str(err).split())[:200]
        raise InputError(
            f"{_NAME}: a {type(table).__name__} that is no table: {reason}",
            "pass a path, a DataFrame or an Arrow table",
        ) from err


def _from_frame(frame: Any) -> tuple[pa.Table, tuple[Note, ...]]:
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = [
        "/".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in frame.columns
    ]
    series = [frame.iloc[:, position] for position in range(len(names))]
    nan = {
        position: np.isnan(column.to_numpy())
        for position, column in enumerate(series)
        if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    }
    sparse = {position for position, mask in nan.items() if _is_sparse(mask)}
    other_kind = np.zeros(len(frame), dtype=np.bool_)  # rows in which a sparse column has a cell
    for position in sparse:
        other_kind |= ~nan[position]
    arrays = []
    logged = unlogged = 0
    for position, column in enumerate(series):
        mask = nan.get(position)
        if mask is None:
            arrays.append(_other_cells(column))
        else:
            missing = _missing(mask, other_kind, position in sparse)
            arrays.append(pa.array(column.to_numpy(), mask=missing))
            unlogged += int(np.count_nonzero(missing))
            logged += int(np.count_nonzero(mask & ~missing))
    return pa.Table.from_arrays(arrays, names=names), _one_nan(logged, unlogged)


def _one_nan(logged: int, unlogged: int) -> tuple[Note, ...]:
    """Say what the NaN of plain float columns were taken for, where there are any."""
    if not logged + unlogged:
        return ()
    text = (
        f"pandas has one NaN for missing and logged: {logged} taken as logged, {unlogged} as "
        "missing; columns of Float64 keep them apart"
    )
    return (Note("guessed", text, logged + unlogged),)


def _is_sparse(nan: Mask) -> bool:
    """Say whether a column is filled now and then (an evaluation): no two rows in a row have it."""
    filled = ~nan
    return bool(nan.any() and not (filled[1:] & filled[:-1]).any())


def _missing(nan: Mask, other_kind: Mask, sparse: bool) -> Mask:
    """Say which NaN of a float column of pandas mean "not logged".

    All of a sparse column; in another column those in rows of another kind (where a sparse column
    has its cells), if the column has no value in any of these rows. The rest was logged as NaN.
    """
    if sparse:
        return nan
    apart = other_kind.any() and nan[other_kind].all() and not nan[~other_kind].all()
    return nan & other_kind if apart else np.zeros(len(nan), dtype=np.bool_)


def _other_cells(column: Any) -> pa.Array:
    """Bring a column that is not of plain floats to Arrow; its missing cells are null."""
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        cells = column_cells(column.tolist())
        if isinstance(cells, MixedLists):
            return pa.array([None if c is None else str(list(c)) for c in cells.cells])
        return cells
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
