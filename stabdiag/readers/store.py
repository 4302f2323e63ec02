"""What lies at an address (s3://, gs://, https://): its filesystem, its files, its bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stabdiag.errors import InputError, MissingPackageError

# A path object keeps one slash of the two; a scheme of one letter is a drive.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")
_WEB = ("http", "https")
_CHUNK_BYTES = 1 << 20
_INSTALL = "pip install 'stabdiag[remote]', or fetch the log and name the file"
_ADVICE = "check the address and the credentials"


@dataclass(frozen=True)
class Stored:
    """A file in a store: its address, its path below what was listed, its size (-1: not told)."""

    uri: str
    below: str
    size: int


def remote_uri(path: Path | str) -> str:
    """Return the URI that a path is; "" for a path of this machine."""
    found = _URI.match(str(path))
    if not found or os.path.exists(path):
        return ""
    return f"{found[1].lower()}://{str(path)[found.end() :]}"


def is_folder(uri: str) -> bool:
    """Say whether files lie below an address; the web has no folders.

    Credentials and endpoints are those that the filesystem finds by itself, in its variables and
    files. A store that can't be asked has no folder: the reading of the file says why.
    """
    if urlsplit(uri).scheme in _WEB:
        return False
    from pyarrow import fs

    try:
        system, path = _filesystem(uri)
        return bool(system.get_file_info(path).type == fs.FileType.Directory)
    except Exception:  # what the libraries under a filesystem raise shares no base class
        return False


def listed(uri: str) -> tuple[Stored, ...]:
    """Return the files below `uri`, sorted by path; `uri` alone where it is a file.

    Raises:
        InputError: the store can't be asked, or has nothing there.
    """
    from pyarrow import fs

    system, path = _filesystem(uri)
    try:
        found = system.get_file_info(path)
        if found.type == fs.FileType.File:
            return (Stored(uri, found.base_name, _size(found)),)
        below = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as err:
        raise InputError(f"{uri}: can't be listed: {_reason(err)}", _ADVICE) from err
    files = sorted((f for f in below if f.type == fs.FileType.File), key=lambda f: f.path)
    if not files:
        raise InputError(f"{uri}: no files below this address", _ADVICE)
    parts = urlsplit(uri)
    query = f"?{parts.query}" if parts.query else ""
    root = path.strip("/") + "/"
    return tuple(
        Stored(f"{parts.scheme}://{f.path}{query}", f.path.lstrip("/").removeprefix(root), _size(f))
        for f in files
    )


def stamp(uri: str) -> str:
    """Return address, size and time of change of what is stored as text; "" where not known."""
    from pyarrow import fs

    try:
        system, path = _filesystem(uri)
        found = [system.get_file_info(path)]
        if found[0].type == fs.FileType.Directory:
            found = system.get_file_info(fs.FileSelector(path, recursive=True))
    except (OSError, InputError):
        return ""
    files = sorted((f for f in found if f.type == fs.FileType.File), key=lambda f: f.path)
    if not files or any(f.mtime_ns is None or f.size is None for f in files):
        return ""
    return "\0".join([uri, *(f"{f.path}\0{f.size}\0{f.mtime_ns}" for f in files)])


def chunks(uri: str) -> Iterator[bytes]:
    """Yield the stored bytes of a file.

    Raises:
        InputError: no filesystem is installed for the scheme, or the file can't be fetched. A
            filesystem raises what the libraries under it raise (of the network, of credentials, of
            the service), which share no base class.
    """
    try:
        with closing(_opened(uri)) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk
    except (InputError, GeneratorExit):
        raise
    except FileNotFoundError as err:
        # fsspec says this also where access is refused
        raise InputError(f"{uri}: no such file, or no access to it", _ADVICE) from err
    except Exception as err:
        raise InputError(f"{uri}: can't be fetched: {_reason(err)}", _ADVICE) from err


def _opened(uri: str) -> Any:
    if urlsplit(uri).scheme in _WEB:  # in one go: not each server gives parts of a file
        system, path = _by_fsspec(uri)
        return system.open(path, "rb", block_size=0)
    system, path = _filesystem(uri)
    return system.open_input_stream(path, compression=None)


def _filesystem(uri: str) -> tuple[Any, str]:
    """Return pyarrow's filesystem and the path in it; fsspec's for what pyarrow does not know."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        system, path = _by_fsspec(uri)
        system = fs.PyFileSystem(fs.FSSpecHandler(system))
    except OSError as err:
        raise InputError(f"{uri}: can't be reached: {_reason(err)}", _ADVICE) from err
    return system, path


def _by_fsspec(uri: str) -> tuple[Any, str]:
    scheme = urlsplit(uri).scheme
    try:
        import fsspec
    except ImportError as err:
        raise MissingPackageError(f"{uri}: reading {scheme}:// needs fsspec", _INSTALL) from err
    if scheme not in fsspec.available_protocols():
        raise InputError(f"{uri}: no filesystem is known for {scheme}://", "check the address")
    try:
        system, path = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as err:
        raise InputError(f"{uri}: {_reason(err)}", _INSTALL) from err
    return system, path


def _size(found: Any) -> int:
    return -1 if found.size is None else int(found.size)


def _reason(err: Exception) -> str:
    return (" ".join(str(err).split()) or type(err).__name__)[:300]
