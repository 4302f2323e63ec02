"""Where rows go: a JSON Lines file that a crash leaves whole, or nowhere."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stabdiag.errors import UsageError
from stabdiag.recorder.rows import Row, json_line

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Position:
    """Where an earlier run of the same log stopped: its last step and segment."""

    step: int
    segment: int


class Sink(Protocol):
    """What takes rows; `before` is where the log stood when it was opened, None if it was new."""

    before: Position | None

    def write(self, rows: Sequence[Row]) -> None:
        """Take whole rows; when it returns they survive the death of this process."""

    def close(self) -> None:
        """Finish the log."""


class Nowhere:
    """The sink of the ranks that do not write."""

    before: Position | None = None

    def write(self, rows: Sequence[Row]) -> None:
        """Drop the rows."""

    def close(self) -> None:
        """Do nothing."""


class JsonLines:
    """Append rows to a JSON Lines file, whole lines in one unbuffered write."""

    def __init__(self, path: Path) -> None:
        """Open the log for appending; a last line that an earlier crash cut is taken off.

        Raises:
            UsageError: the file can't be written, or is no log of JSON objects.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: io.FileIO = path.open("ab", buffering=0)
            last = whole_end(path, self._file)
        except OSError as err:
            raise UsageError(
                f"{path}: can't be written: {err.strerror or err}",
                "name a file in a folder of yours",
            ) from err
        try:
            self.before = position_of(last, path)
        except UsageError:
            self._file.close()
            raise

    def write(self, rows: Sequence[Row]) -> None:
        """Append the rows; where that fails, the file is left as it was."""
        left = memoryview(b"".join(json_line(row) for row in rows))
        size = os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(size)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def whole_end(path: Path, file: io.FileIO) -> bytes:
    """Cut `path` behind its last line end, where it goes on, and return its last whole line."""
    size = path.stat().st_size
    with path.open("rb") as reader:
        tail = b""
        start = size
        # the last line end, and the one before it
        while start > 0 and tail.count(b"\n") < 2:
            length = min(_BLOCK, start)
            start -= length
            reader.seek(start)
            tail = reader.read(length) + tail
    whole, _, cut = tail.rpartition(b"\n")
    if cut:
        file.truncate(size - len(cut))
    return whole.rpartition(b"\n")[2]


def position_of(line: bytes, path: Path) -> Position | None:
    """Return the step and segment of a log's last line; None for an empty log.

    Raises:
        UsageError: the line is no JSON object with a step.
    """
    if not line.strip():
        return None
    try:
        row = json.loads(line)
        return Position(int(row["step"]), int(row.get("segment", 0)))
    except (ValueError, TypeError, KeyError, AttributeError) as err:
        raise UsageError(
            f"{path}: exists, and is no log of this recorder", "name another file"
        ) from err


def open_sink(path: Path, part_rows: int) -> Sink:
    """Open the log whose format the end of its name says.

    Raises:
        UsageError: another end, or the log can't be written or continued.
    """
    if path.suffix == ".jsonl":
        return JsonLines(path)
    if path.suffix == ".parquet":
        from stabdiag.recorder.parquet_parts import ParquetParts

        return ParquetParts(path, part_rows)
    raise UsageError(f"{path}: neither .jsonl nor .parquet", "name the log run.jsonl")
