"""Rows as Parquet parts: `run.parquet` becomes run-00000.parquet, run-00001.parquet, ...

Rows that no part holds yet are in run-tail.jsonl, so a crash loses none of them; the next opening
of the log makes a part of them. `stabdiag analyze run-*` reads parts and tail as one run.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stabdiag.errors import UsageError
from stabdiag.recorder.rows import Row
from stabdiag.recorder.sinks import JsonLines, Position

_WHOLE_NUMBERS = frozenset({"step", "segment", "skipped"})
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ParquetParts:
    """Write a part for every `part_rows` rows, each under its name only when it is whole."""

    def __init__(self, path: Path, part_rows: int) -> None:
        """Open the log; rows that a crash left in the tail become a part.

        Raises:
            UsageError: the folder can't be written, or what is there is no log of this recorder.
        """
        self._path = path
        self._part_rows = part_rows
        self._tail_path = path.with_name(f"{path.stem}-tail.jsonl")
        parts = part_paths(path)
        self._number = 1 + int(parts[-1].stem.rpartition("-")[2]) if parts else 0
        self._rows: list[Row] = []
        # of the parts before, so that all have the same columns; grows where a row brings one more
        self._types: dict[str, pa.DataType] = {}
        before = _position_in(parts[-1], self._types) if parts else None
        self._tail = JsonLines(self._tail_path)
        self.before = self._tail.before or before
        if self._tail.before == before:
            # Not empty: the crash came between the part and the removal of the tail.
            self._empty_tail()
        elif self._tail.before is not None:
            lines = self._tail_path.read_text(encoding="utf-8").splitlines()
            self._rows = [_as_numbers(json.loads(line)) for line in lines]
            self._write_part()

    def write(self, rows: Sequence[Row]) -> None:
        """Take the rows into the tail, and into a part where they fill one."""
        self._tail.write(rows)
        self._rows.extend(rows)
        if len(self._rows) >= self._part_rows:
            self._write_part()

    def close(self) -> None:
        """Make a part of the last rows and remove the tail."""
        self._write_part()
        self._tail.close()
        self._tail_path.unlink(missing_ok=True)

    def _write_part(self) -> None:
        if not self._rows:
            return
        for row in self._rows:
            for name, value in row.items():
                if name not in self._types:
                    self._types[name] = _type_of(name, value)
        columns = {
            name: pa.array([_cell(row.get(name), kind) for row in self._rows], kind)
            for name, kind in self._types.items()
        }
        path = self._path.with_name(f"{self._path.stem}-{self._number:05d}.parquet")
        unfinished = path.with_name(path.name + ".unfinished")
        pq.write_table(pa.table(columns), unfinished)
        os.replace(unfinished, path)
        self._number += 1
        self._rows = []
        self._empty_tail()

    def _empty_tail(self) -> None:
        self._tail.close()
        self._tail_path.unlink()
        self._tail = JsonLines(self._tail_path)


def part_paths(path: Path) -> list[Path]:
    """Return the parts of the log `path` that exist, in order."""
    name = re.compile(re.escape(path.stem) + r"-[0-9]{5,}\.parquet")
    found = [p for p in path.parent.glob("*.parquet") if name.fullmatch(p.name)]
    return sorted(found, key=lambda p: (len(p.name), p.name))


def _position_in(part: Path, types: dict[str, pa.DataType]) -> Position:
    try:
        schema = pq.read_schema(part)
        table = pq.read_table(part, columns=["step", "segment"])
        types.update({field.name: field.type for field in schema})
        return Position(int(table["step"][-1].as_py()), int(table["segment"][-1].as_py()))
    except (OSError, pa.ArrowException, KeyError, IndexError, TypeError) as err:
        raise UsageError(
            f"{part}: exists, and is no log of this recorder", "name another file"
        ) from err


def _type_of(name: str, value: Any) -> pa.DataType:
    if name in _WHOLE_NUMBERS:
        return pa.int64()
    if isinstance(value, str):
        return pa.string()
    # Ids are text: one that is a number may be followed by one that is not.
    if isinstance(value, list | tuple):
        return pa.list_(pa.string())
    return pa.string() if name == "batch_id" else pa.float64()


def _cell(value: Any, kind: pa.DataType) -> Any:
    """Fit a value to its column's type, which an earlier row decided."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return str(value)
    if pa.types.is_list(kind):
        return [str(item) for item in (value if isinstance(value, list | tuple) else [value])]
    return value


def _as_numbers(row: Mapping[str, Any]) -> Row:
    """Turn the words that stand for numbers in JSON back; batch ids are left as they are."""
    return {
        name: _WORDS.get(value, value) if isinstance(value, str) and name != "batch_id" else value
        for name, value in row.items()
    }
