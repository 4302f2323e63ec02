"""A log that is still written: what was appended is read, what was read before is kept."""

from __future__ import annotations

import io
import os
import stat
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers import csv_log, jsonl_log
from stabdiag.readers.detect import detect
from stabdiag.readers.gathered import Gathered
from stabdiag.readers.registry import Reader
from stabdiag.readers.source import BLOCK_BYTES, HEAD_BYTES, Block, Source, source_of, valid_text

# Formats whose rows are kept once read; of other text all bytes are, and looked at again.
_BY_LINE: dict[str, ModuleType] = {"csv": csv_log, "json lines": jsonl_log}
_BY_APPENDING = ("csv", "json lines", "json", "text")
_OPEN_BYTES = 64 << 10  # at the end, looked at again: a row there may still be cut or go on
_SETTLED_BYTES = 1 << 20
# At the beginning and before what is new: other bytes there, and the file was written anew.
_COMPARED_BYTES = 4096
_TODO = "name a plain CSV, JSON Lines or text log, or use `stabdiag analyze`"


class NotGrowingError(InputError):
    """A log of a kind to which nothing is appended: waiting helps nothing."""


@dataclass
class _Rows:
    """What is known of a log by line: its reader's state, its settled rows, what is behind them."""

    source: Source
    reader: Reader
    reason: str
    state: Any
    gathered: Gathered
    line: int = 1


class GrowingLog:
    """A plain file that a training run appends to.

    `read_bytes` counts what was read from it, `restarts` how often it was cut or written anew.
    `trouble` says why it can't be read for now, where it could be before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0
        self.restarts = 0
        self.trouble = ""
        self._began_anew()

    def _began_anew(self) -> None:
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._data = b""  # all of it, or what is behind the settled rows
        self._first = b""
        self._last = b""
        self._rows: _Rows | None = None

    @property
    def holds_bytes(self) -> bool:
        """Whether the file held anything when it was last read."""
        return self._offset > 0

    def update(self) -> bool:
        """Read what was appended since the last time, and say whether that was anything.

        A file that was read before and can't be for now is no news.

        Raises:
            InputError: the file is there and can't be read.
            NotGrowingError: it is no file that is appended to.
        """
        self.trouble = ""
        try:
            return self._updated()
        except InputError as err:
            if not self.read_bytes:
                raise
            self.trouble = err.what
            return False

    def _updated(self) -> bool:
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):  # a pipe would wait for its writer
                raise NotGrowingError(f"{self.path}: not a plain file", _TODO)
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                identity = (status.st_dev, status.st_ino)
                if self._offset and not self._goes_on(file, identity, status.st_size):
                    self.restarts += 1
                    self._began_anew()
                self._identity = identity
                file.seek(self._offset)
                before = self.read_bytes
                while chunk := file.read(BLOCK_BYTES):
                    self._take(chunk)
        except FileNotFoundError:
            return False
        except OSError as err:
            raise InputError(
                f"{self.path}: can't be read: {err.strerror}", "check the file"
            ) from err
        return self.read_bytes > before

    def _goes_on(self, file: io.BufferedReader, identity: tuple[int, int], size: int) -> bool:
        """Whether the file is the one that was read, with what was read still in it."""
        if identity != self._identity or size < self._offset:
            return False
        if file.read(len(self._first)) != self._first:
            return False
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last

    def _take(self, chunk: bytes) -> None:
        self.read_bytes += len(chunk)
        self._offset += len(chunk)
        self._first += chunk[: _COMPARED_BYTES - len(self._first)]
        self._last = (self._last + chunk)[-_COMPARED_BYTES:]
        self._data += chunk
        if self._rows is None and self._offset == len(self._data) > HEAD_BYTES + _SETTLED_BYTES:
            self._rows = self._by_line()
        if self._rows is not None:
            self._settle(self._rows)

    @property
    def settled_rows(self) -> int:
        """Rows that are not looked at again."""
        return 0 if self._rows is None else self._rows.gathered.seen

    def table(self) -> LogTable:
        """Return the log as it stands: what `read_log` gives of the whole file.

        Raises:
            InputError: as `read_log`.
            NotGrowingError: the file is not one that is appended to.
        """
        if self._rows is None:
            source = source_of(str(self.path), self.path, lambda: io.BytesIO(self._data))
            reader, reason = detect(source)
            _refuse(source, reader)
            return replace(reader.read(source), detection=f"{reader.name}: {reason}")
        known = self._rows
        module, state = _BY_LINE[known.reader.name], deepcopy(known.state)
        source = replace(known.source, notes=dict(known.source.notes))
        end = Block(known.line, valid_text(source, self._data, known.line))
        pieces = module.pieces_of([end] if end.data else [], state)
        table: LogTable = module.table_of(source, state, pieces, known.gathered)
        return replace(table, detection=f"{known.reader.name}: {known.reason}")

    def _by_line(self) -> _Rows | None:
        """Begin to keep rows, where the format allows it; its beginning says all of that."""
        source = source_of(str(self.path), self.path, lambda: io.BytesIO(self._data))
        reader, reason = detect(source)
        _refuse(source, reader)
        plain = source.encoding == "utf-8" and not source.bom and not source.lone_returns
        if source.complete or not plain or reader.name not in _BY_LINE:
            return None
        module = _BY_LINE[reader.name]
        state = module.begun(source)
        return _Rows(source, reader, reason, state, module.gathering(state))

    def _settle(self, known: _Rows) -> None:
        """Turn whole lines into rows that stay, all but those near the end."""
        if len(self._data) < _SETTLED_BYTES:
            return
        cut = self._data.rfind(b"\n", 0, len(self._data) - _OPEN_BYTES) + 1
        if not cut:
            return
        whole = Block(known.line, valid_text(known.source, self._data[:cut], known.line))
        pieces, left = _BY_LINE[known.reader.name].settled_pieces(whole, known.state)
        for piece in pieces:
            known.gathered.add(piece)
        known.line = left.first_line
        self._data = left.data + self._data[cut:]


def _refuse(source: Source, reader: Reader) -> None:
    if source.compression or reader.name not in _BY_APPENDING:
        what = f"{source.compression} data" if source.compression else f"a file of {reader.name}"
        raise NotGrowingError(f"{source.name}: {what}, which is not written line by line", _TODO)
