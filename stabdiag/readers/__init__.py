"""Readers: a path in, a LogTable out; one module a format, one line in the registry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.detect import detect
from stabdiag.readers.folder import read_folder
from stabdiag.readers.frame import read_table
from stabdiag.readers.remote import fetched_folder, open_remote
from stabdiag.readers.shards import joined
from stabdiag.readers.source import open_source
from stabdiag.readers.store import is_folder, remote_uri

__all__ = ["read_log", "read_table"]


def read_log(paths: Sequence[Path | str], rows: tuple[int, int] | None = None) -> LogTable:
    """Read the log of one run; several paths are its shards, joined in the given order.

    A path may be a file (also compressed), a folder of event files or one-metric files, the
    address of either (s3://, gs://, https://), or "-" for standard input. With `rows`, only the
    rows from one to before another are read, of a single file of CSV, JSON Lines, Parquet or Arrow.

    Raises:
        InputError: a path can't be read, or holds nothing that is recognised as a log.
    """
    if not paths:
        raise InputError("no log was named", "name the file that the run wrote")
    tables = [_read_one(path, rows if len(paths) == 1 else None) for path in paths]
    return tables[0] if len(tables) == 1 else joined(tables)


def _read_one(path: Path | str, rows: tuple[int, int] | None) -> LogTable:
    if str(path) != "-" and os.path.isdir(path):
        return read_folder(Path(path))
    uri = remote_uri(path)
    if uri and is_folder(uri):
        return _read_remote_folder(uri)
    source = open_remote(uri) if uri else open_source(path)
    reader, reason = detect(source)
    source = replace(source, rows=rows)
    table = replace(reader.read(source), detection=f"{reader.name}: {reason}")
    return replace(table, files=(uri,)) if uri else table


def _read_remote_folder(uri: str) -> LogTable:
    """Read a folder elsewhere from a copy; what is said of it names the address."""
    copy = fetched_folder(uri)
    try:
        table = read_folder(copy)
    except InputError as err:
        raise InputError(err.what.replace(str(copy), uri), err.todo) from err
    files = tuple(file.replace(str(copy), uri) for file in table.files)
    notes = tuple(replace(n, text=n.text.replace(str(copy), uri)) for n in table.notes)
    return replace(table, files=files, notes=notes)
