"""Parquet and Arrow files, plain or compressed as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.columnar import Columnar, read_columnar
from stabdiag.readers.source import MAX_DOCUMENT_BYTES, Source, stored_chunks

# Project choice: a row group of more rows is read in parts (writers make them of a million or so).
MOST_ROWS_AT_ONCE = 1 << 21
ROWS_AT_ONCE = 1 << 18


def read_parquet(source: Source) -> LogTable:
    """Read a Parquet file, by row group and column.

    Raises:
        InputError: the footer is cut off or damaged, or there is no column or row.
    """
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(_random_access(source))
        schema = file.schema_arrow
        names = schema.names  # built anew by each look at it; may be no text in a damaged file
    except (pa.ArrowException, OSError, ValueError) as err:
        raise _damaged(source, "Parquet", err) from err

    ordinals = _ordinals(names)

    def read(fields: Sequence[int]) -> Iterator[list[pa.Array]]:
        wanted = [names[index] for index in fields]
        positions: list[int] | None = None
        for batch in _batches(file, wanted):
            if positions is None:
                # "a" brings "a.b" with it, and a name that stands twice brings both fields
                places: dict[str, list[int]] = {}
                for position, name in enumerate(batch.schema.names):
                    places.setdefault(name, []).append(position)
                positions = [places[names[i]][ordinals[i]] for i in fields]
            yield [batch.column(position) for position in positions]

    return read_columnar(
        Columnar(source.name, "parquet", schema, file.metadata.num_rows, read, source.rows)
    )


def _batches(file: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some rows at a time: a row group where it is not very large, else parts of it."""
    for group in range(file.num_row_groups):
        if file.metadata.row_group(group).num_rows > MOST_ROWS_AT_ONCE:
            yield from file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=columns)
        else:
            yield from file.read_row_group(group, columns=columns).to_batches()


def _ordinals(names: Sequence[str]) -> list[int]:
    """Count for each field how many before it have the same name."""
    seen: Counter[str] = Counter()
    ordinals = []
    for name in names:
        ordinals.append(seen[name])
        seen[name] += 1
    return ordinals


def read_arrow(source: Source) -> LogTable:
    """Read an Arrow IPC file (Feather version 2).

    Raises:
        InputError: it is damaged, or there is no column or row.
    """
    import pyarrow.ipc as ipc

    opened = _random_access(source)

    def reader(fields: Sequence[int] | None) -> Any:
        options = ipc.IpcReadOptions(included_fields=None if fields is None else list(fields))
        return ipc.open_file(opened, options=options)

    try:
        whole = reader(None)
        _ = whole.schema.names  # decoded only when looked at; no text in a damaged file
        rows = sum(whole.get_batch(i).num_rows for i in range(whole.num_record_batches))
    except (pa.ArrowException, OSError, ValueError) as err:
        raise _damaged(source, "Arrow", err) from err

    def read(fields: Sequence[int]) -> Iterator[list[pa.Array]]:
        some = reader(fields)
        for index in range(some.num_record_batches):
            batch = some.get_batch(index)
            batch.validate(full=True)  # offsets as stored may lead anywhere: unsafe to follow
            yield list(batch.columns)

    return read_columnar(Columnar(source.name, "arrow", whole.schema, rows, read, source.rows))


def _random_access(source: Source) -> Any:
    """Open a file for reading at any place: on the disk where it can be, else in memory."""
    if source.path is not None and not source.compression and source.path.is_file():
        return pa.OSFile(str(source.path))
    parts: list[bytes] = []
    have = 0
    for chunk in stored_chunks(source):
        parts.append(chunk)
        have += len(chunk)
        if have > MAX_DOCUMENT_BYTES:
            raise InputError(
                f"{source.name}: more than {MAX_DOCUMENT_BYTES >> 30} GiB to hold in memory",
                "name the file itself, uncompressed",
            )
    return pa.BufferReader(b"".join(parts))


def _damaged(source: Source, kind: str, err: Exception) -> InputError:
    reason = str(err).splitlines()[0][:200] if str(err) else type(err).__name__
    return InputError(
        f"{source.name}: not a whole {kind} file: {reason}",
        "the run may have died before it was closed: name another copy, or a log written as CSV or"
        " JSON Lines",
    )
