"""Logs in an object store: listed below an address, and known again by size and time of change."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from stabdiag.errors import InputError

_ADVICE = "check the address and the credentials"


def listed(uri: str) -> tuple[str, ...]:
    """Return the addresses of the files below `uri`, sorted; `uri` alone where it is a file.

    Raises:
        InputError: the store can't be asked, or has nothing there.
    """
    system, path = _store(uri)
    from pyarrow import fs

    try:
        found = system.get_file_info(path)
        if found.type == fs.FileType.File:
            return (uri,)
        below = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as err:
        raise _unreachable(uri, err) from err
    files = sorted(one.path for one in below if one.type == fs.FileType.File)
    if not files:
        raise InputError(f"{uri}: no files below this address", _ADVICE)
    parts = urlsplit(uri)
    query = f"?{parts.query}" if parts.query else ""
    return tuple(f"{parts.scheme}://{file}{query}" for file in files)


def stamp(uri: str) -> str:
    """Return address, size and time of change of a stored file as text; "" where not known."""
    try:
        system, path = _store(uri)
        found = system.get_file_info(path)
    except (OSError, InputError):
        return ""
    if found.mtime_ns is None or found.size is None:
        return ""
    return f"{uri}\0{found.size}\0{found.mtime_ns}"


def _store(uri: str) -> tuple[Any, str]:
    """Return pyarrow's filesystem for an address, and the path in it."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _store_by_fsspec(uri)
    except OSError as err:
        raise _unreachable(uri, err) from err
    return system, path


def _store_by_fsspec(uri: str) -> tuple[Any, str]:
    from pyarrow import fs

    scheme = urlsplit(uri).scheme
    todo = f"fetch the logs of {scheme}:// first, or pip install 'stabdiag[remote]'"
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as err:
        raise InputError(f"{uri}: {' '.join(str(err).split())}", todo) from err
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def _unreachable(uri: str, err: OSError) -> InputError:
    reason = " ".join(str(err).split())
    return InputError(f"{uri}: can't be listed: {reason[:300]}", _ADVICE)
