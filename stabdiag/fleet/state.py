"""What an earlier survey found, kept in a file, so that a finished run is not read twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stabdiag import __version__
from stabdiag.errors import UsageError
from stabdiag.fleet.judge import Job
from stabdiag.fleet.rows import FleetRow

_FORMAT = 1
_TUPLES = ("layers", "findings")
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
        return tuple(replace(r, log=log, error=r.error.replace(r.log, log)) for r in known)

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
            text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
        except OSError as err:
            raise _unusable(path, err) from err
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                record = json.loads(line)
                if record["of"] == self._salt:
                    self._known[record["key"]] = tuple(map(_row, record["rows"]))
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += 1


def _row(fields: Any) -> FleetRow:
    values: dict[str, Any] = {k: tuple(v) if k in _TUPLES else v for k, v in fields.items()}
    return FleetRow(**values)


def _salt(job: Job) -> str:
    """A hash of everything beside the log that decides its rows."""
    settings = {k: dict(v) if hasattr(v, "items") else v for k, v in vars(job.settings).items()}
    text = json.dumps([_FORMAT, __version__, settings, job.strict], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _unusable(path: Path, err: OSError) -> UsageError:
    return UsageError(
        f"--state {path}: {err.strerror or err}", "Name a file that may be written, or none."
    )
