"""A hash of what a log holds, by which a later survey knows it again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from stabdiag.fleet.judge import Job, place_of
from stabdiag.readers.store import remote_uri, stamp

_BLOCK_BYTES = 1 << 20


def digest(log: str, job: Job) -> str:
    """Return a hash of the bytes of `log`: of all files of a folder, with their names.

    A log that lies elsewhere is known by its address, size and time of change. "" where it can't
    be read, or its store tells neither.
    """
    made = hashlib.blake2b(digest_size=20)
    log = place_of(log, job)
    try:
        uri = remote_uri(log)
        if uri:
            known = stamp(uri)
            if not known:
                return ""
            made.update(known.encode())
        elif os.path.isdir(log):
            for file in sorted(path for path in Path(log).rglob("*") if path.is_file()):
                made.update(f"\0{file.relative_to(log).as_posix()}\0".encode())
                _add(made, file)
        elif os.path.isfile(log):
            _add(made, Path(log))
        else:  # a pipe gives its bytes once
            return ""
    except (OSError, ValueError):
        return ""
    return made.hexdigest()


def _add(made: Any, file: Path) -> None:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            made.update(block)
