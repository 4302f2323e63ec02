"""What an earlier survey found, kept in a file, so that a finished run is not read twice."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stabdiag import __version__
from stabdiag.errors import UsageError
from stabdiag.fleet.judge import Job
from stabdiag.fleet.rows import HEALTHS, FleetRow

_FORMAT = 2
_TODO = "Name a file that may be written, or none."
_BEGINS = '{"key": '  # each line of such a file
_TUPLES = ("layers", "findings", "unchecked")
_NUMBERS = ("probability", "onset_step", "rows", "last_step")
_KEPT = ("analysed", "unreadable")  # what a fault or a death left out is tried again


class State:
    """The rows known by content, tool version and configuration; new ones are appended as lines.

    Each line is whole and flushed before the next; a line that a crash cut is passed over when it
    is read again, and counted in `damaged`.
    """

    def __init__(self, path: Path | None, job: Job) -> None:
        self.path = path
        self.damaged = 0
        self._salt = _salt(job)
        self._known: dict[str, tuple[FleetRow, ...]] = {}
        self._cut = False
        if path is not None:
            self._load(path)

    def rows(self, log: str, content: str) -> tuple[FleetRow, ...] | None:
        """Return the rows of a log that held `content` before, under its present name."""
        known = self._known.get(content) if content else None
        if known is None:
            return None
        return tuple(replace(r, log=log, error=_renamed(r, log)) for r in known)

    def keep(self, content: str, rows: Sequence[FleetRow]) -> None:
        """Append the rows of a log that was judged.

        Raises:
            UsageError: the file can't be written.
        """
        if self.path is None or not content or any(r.status not in _KEPT for r in rows):
            return
        self._known[content] = tuple(rows)
        record = {"key": content, "of": self._salt, "rows": [vars(row) for row in rows]}
        line = ("\n" if self._cut else "") + json.dumps(record) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as err:
            raise _unusable(self.path, err) from err
        self._cut = False

    def _load(self, path: Path) -> None:
        try:
            if path.exists() and not path.is_file():
                raise UsageError(f"--state {path}: not a plain file", _TODO)
            text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
        except OSError as err:
            raise _unusable(path, err) from err
        if text.strip("\0\n") and not any(one.startswith(_BEGINS) for one in text.splitlines()):
            raise UsageError(f"--state {path}: something else is in that file", _TODO)
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                record = json.loads(line)
                if record["of"] == self._salt:
                    self._known[record["key"]] = _rows(record["rows"])
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += 1


def _rows(records: Any) -> tuple[FleetRow, ...]:
    """Return the rows of a line.

    Raises:
        ValueError, TypeError: they are none.
    """
    rows = tuple(_row(fields) for fields in records)
    if not rows:
        raise ValueError
    return rows


def _row(fields: Any) -> FleetRow:
    if not isinstance(fields, dict):
        raise TypeError
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    row = FleetRow(**values)
    for name, value in vars(row).items():
        if name in _TUPLES:
            sound = isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        elif name in _NUMBERS:
            sound = value is None or (isinstance(value, int | float) and value == value)
        else:
            sound = isinstance(value, str)
        if not sound:
            raise TypeError
    if row.status not in _KEPT or (row.health not in HEALTHS and row.status == "analysed"):
        raise ValueError
    return row


def _renamed(row: FleetRow, log: str) -> str:
    """Return what is wrong with a log that has another name by now."""
    name = re.compile(rf"(?<![\w./-]){re.escape(row.log)}(?![\w/-])")
    return name.sub(lambda _: log, row.error)


def _salt(job: Job) -> str:
    """A hash of everything beside the log that decides its rows."""
    settings = {k: dict(v) if hasattr(v, "items") else v for k, v in vars(job.settings).items()}
    text = json.dumps([_FORMAT, __version__, settings, job.strict, job.required], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _unusable(path: Path, err: OSError) -> UsageError:
    return UsageError(f"--state {path}: {err.strerror or err}", _TODO)
