"""A log that lies elsewhere (s3://, gs://, https://): fetched once, then read like any other."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from stabdiag.errors import InputError
from stabdiag.readers.event_files import is_event_file
from stabdiag.readers.folder import LOG_SUFFIXES, MOST_FILES
from stabdiag.readers.source import Source, open_source, unpacked
from stabdiag.readers.store import chunks, listed

MAX_REMOTE_BYTES = 8 << 30  # project choice: a server that never ends must not fill the disk


def open_remote(uri: str) -> Source:
    """Fetch a log by pyarrow's or fsspec's filesystem for its scheme, and open it.

    Raises:
        InputError: no filesystem is installed for the scheme, the log can't be fetched, or as
            `open_source`.
    """
    copy = Path(_folder(), PurePosixPath(urlsplit(uri).path).name or "log")
    _fetch(uri, copy, MAX_REMOTE_BYTES, uri)
    try:
        return replace(open_source(copy), name=uri)
    except InputError as err:
        raise InputError(err.what.replace(str(copy), uri), err.todo) from err


def fetched_folder(uri: str) -> Path:
    """Fetch the files below an address that may be logs by their names, and return the copy.

    Checkpoints and the like, which lie beside them, stay where they are.

    Raises:
        InputError: as `listed`; nothing there may be a log, or it is more than a folder of one run.
    """
    files = [file for file in listed(uri) if _may_be_log(file.below)]
    if not files:
        raise InputError(
            f"{uri}: no file there may be a log", "name the folder of one run's metrics"
        )
    if len(files) > MOST_FILES:
        raise InputError(
            f"{uri}: a folder of more than {MOST_FILES} files",
            "name the folder of one run's metrics",
        )
    root = Path(_folder(), PurePosixPath(urlsplit(uri).path).name or "log")
    left = MAX_REMOTE_BYTES
    for file in files:
        copy = root / file.below
        copy.parent.mkdir(parents=True, exist_ok=True)
        left -= _fetch(file.uri, copy, left, uri)
    return root


def _may_be_log(path: str) -> bool:
    parts = PurePosixPath(path).parts
    if any(part.startswith(".") for part in parts) or not parts:
        return False
    suffix = PurePosixPath(unpacked(parts[-1].lower())).suffix
    return is_event_file(Path(parts[-1])) or suffix in LOG_SUFFIXES or not suffix


def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="stabdiag-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _fetch(uri: str, copy: Path, most: int, named: str) -> int:
    """Copy a file, and return its bytes, no more than `most`."""
    have = 0
    with copy.open("wb") as file:
        for chunk in chunks(uri):
            have += file.write(chunk)
            if have > most:
                raise InputError(
                    f"{named}: more than {MAX_REMOTE_BYTES >> 30} GiB",
                    "fetch the log and name the file",
                )
    return have
