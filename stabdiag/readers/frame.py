"""Tables in memory: Arrow tables as they are, pandas frames with their NaN told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from stabdiag.errors import InputError
from stabdiag.model import LogTable, Mask
from stabdiag.readers.columnar import in_memory, read_columnar
from stabdiag.readers.lists import MixedLists
from stabdiag.readers.records import column_cells

_NAME = "<table>"


def read_table(table: Any) -> LogTable:
    """Make a log of a pandas DataFrame or an Arrow table, one row a logged point.

    An Arrow null is missing and a NaN was logged. pandas has one NaN for both in columns of
    floats: there it is missing in a column that is filled in some rows only (see `_missing`).

    Raises:
        InputError: it is neither, or has no column or row.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return read_columnar(in_memory(table, _NAME, "arrow"))
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        raise InputError(
            f"{_NAME}: a {type(table).__name__} is no table",
            "pass a path, a DataFrame or an Arrow table",
        )
    return read_columnar(in_memory(_from_frame(table), _NAME, "pandas"))


def _from_frame(frame: Any) -> pa.Table:
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
    for position, column in enumerate(series):
        mask = nan.get(position)
        if mask is None:
            arrays.append(_other_cells(column))
        else:
            missing = _missing(mask, other_kind, position in sparse)
            arrays.append(pa.array(column.to_numpy(), mask=missing))
    return pa.Table.from_arrays(arrays, names=names)


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
