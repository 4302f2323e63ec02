"""Corpora in tables: Parquet by row groups, CSV as a stream."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from stabdiag.batches.sources.records import columns_wanted, id_text, sample_of
from stabdiag.batches.sources.samples import Scan, Shard
from stabdiag.errors import InputError
from stabdiag.readers.source import Source, head_text, open_source

T = TypeVar("T")
ROWS_AT_ONCE = 256
BLOCK_BYTES = 8 << 20  # a row must fit into it
_STREAMED = {"": None, "gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}


def scan_parquet(shard: Shard[T]) -> Scan[T]:
    """Look through a Parquet file: only row groups with a wanted row, only the needed columns.

    Raises:
        InputError: it is damaged, or a wanted row has no text.
    """
    try:
        with pq.ParquetFile(shard.path, pre_buffer=False, buffer_size=BLOCK_BYTES) as file:
            return _scan_groups(shard, file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
        raise InputError(
            f"{shard.path}: not a readable Parquet file: {str(err).splitlines()[0]}",
            "Copy the file again, or name another.",
        ) from err


def _scan_groups(shard: Shard[T], file: Any) -> Scan[T]:
    found: Scan[T] = Scan(size=file.metadata.num_rows)
    names = list(file.schema_arrow.names)
    ids = _id_columns(shard, names)
    named = _named_rows(shard, file, ids) if ids else {}
    first = 0
    for group in range(file.metadata.num_row_groups):
        stop = first + file.metadata.row_group(group).num_rows
        placed = {
            p - shard.first for p in shard.wanted.within(shard.first + first, shard.first + stop)
        }
        rows = sorted(placed | {row for row in named if first <= row < stop})
        if rows:
            columns = columns_wanted(names, shard.options)
            for row, record in _records(file, group, columns, [row - first for row in rows]):
                where = f"{shard.path}, row {first + row}"
                sample = shard.take(sample_of(record, where, shard.options))
                here = first + row
                found.add(shard.first + here, sample, placed=here in placed, name=named.get(here))
        first = stop
    return found


def _id_columns(shard: Shard[T], names: Sequence[str]) -> list[str]:
    if not shard.wanted.names:
        return []
    return [name for name in shard.options.id_fields if name in names]


def _named_rows(shard: Shard[T], file: Any, columns: Sequence[str]) -> dict[int, str]:
    """The rows that have a wanted id, with that id; the id columns alone are read."""
    rows: dict[int, str] = {}
    at = 0
    for batch in file.iter_batches(batch_size=1 << 16, columns=list(columns)):
        _add_named(rows, shard, batch, columns, at)
        at += batch.num_rows
    return rows


def _add_named(
    rows: dict[int, str], shard: Shard[T], batch: Any, columns: Sequence[str], first: int
) -> None:
    for name in columns:
        for offset, value in enumerate(batch.column(batch.schema.names.index(name)).to_pylist()):
            text = id_text(value)
            if text is not None and text in shard.wanted.names:
                rows.setdefault(first + offset, text)


def _records(
    file: Any, group: int, columns: Sequence[str], rows: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of some rows of a row group, a few hundred rows in memory at a time."""
    left = list(rows)
    at = 0
    batches = file.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group], columns=list(columns))
    for batch in batches:
        while left and left[0] < at + batch.num_rows:
            row = left.pop(0)
            yield row, batch.slice(row - at, 1).to_pylist()[0]
        if not left:
            return
        at += batch.num_rows


def scan_csv(shard: Shard[T]) -> Scan[T]:
    """Look through a CSV or TSV file with a header; a quoted cell may hold line ends.

    Raises:
        InputError: it is no table, or a wanted row has no text.
    """
    source = open_source(shard.path)
    if source.compression not in _STREAMED:
        raise InputError(
            f"{shard.path}: a table compressed with {source.compression} can't be streamed",
            "Uncompress it first.",
        )
    reading = pa_csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
    try:
        delimiter, names = _header(source)
        types = {name: pa.binary() for name in names}  # as written; decoded when taken
        parsing = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        converting = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        with pa.input_stream(str(shard.path), _STREAMED[source.compression]) as stream:
            return _scan_rows(shard, pa_csv.open_csv(stream, reading, parsing, converting))
    except (pa.ArrowException, csv.Error, OSError, UnicodeDecodeError) as err:
        raise InputError(
            f"{shard.path}: not a readable CSV table: {str(err).splitlines()[0][:200]}",
            "Correct that row, or write the corpus as JSON Lines.",
        ) from err


def _header(source: Source) -> tuple[str, list[str]]:
    """The delimiter of a table and its columns' names."""
    text = head_text(source)
    first = text.partition("\n")[0]
    delimiter = "\t" if first.count("\t") > first.count(",") else ","
    return delimiter, next(csv.reader(io.StringIO(text), delimiter=delimiter), [])


def _scan_rows(shard: Shard[T], batches: Any) -> Scan[T]:
    found: Scan[T] = Scan()
    at = 0
    for batch in batches:
        names = batch.schema.names
        named: dict[int, str] = {}
        _add_named(named, shard, batch, _id_columns(shard, names), at)
        placed = shard.wanted.within(shard.first + at, shard.first + at + batch.num_rows)
        for row in sorted({place - shard.first for place in placed} | set(named)):
            record = batch.slice(row - at, 1).to_pylist()[0]
            sample = shard.take(sample_of(record, f"{shard.path}, row {row}", shard.options))
            place = shard.first + row
            found.add(place, sample, placed=place in placed, name=named.get(row))
        at += batch.num_rows
    found.size = at
    return found
