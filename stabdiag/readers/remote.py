"""A log that lies elsewhere (s3://, gs://, https://): fetched once, then read like any file."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from stabdiag.errors import InputError
from stabdiag.readers.source import Source, open_source

# A path object keeps one slash of the two; a scheme of one letter is a drive.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")
_WEB = ("http", "https")
_CHUNK_BYTES = 1 << 20
MAX_REMOTE_BYTES = 8 << 30  # project choice: a server that never ends must not fill the disk
_INSTALL = "pip install 'stabdiag[remote]', or fetch the log and name the file"


def remote_uri(path: Path | str) -> str:
    """Return the URI that a path is; "" for a path of this machine."""
    found = _URI.match(str(path))
    if not found or os.path.exists(path):
        return ""
    return f"{found[1].lower()}://{str(path)[found.end() :]}"


def open_remote(uri: str) -> Source:
    """Fetch a log by pyarrow's or fsspec's filesystem for its scheme, and open it.

    Credentials and endpoints are those that the filesystem finds by itself, in its variables and
    files.

    Raises:
        InputError: no filesystem is installed for the scheme, the log can't be fetched, or as
            `open_source`.
    """
    folder = tempfile.mkdtemp(prefix="stabdiag-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = Path(folder, PurePosixPath(urlsplit(uri).path).name or "log")
    have = 0
    with copy.open("wb") as file:
        for chunk in _chunks(uri):
            have += file.write(chunk)
            if have > MAX_REMOTE_BYTES:
                raise InputError(
                    f"{uri}: more than {MAX_REMOTE_BYTES >> 30} GiB",
                    "fetch the log and name the file",
                )
    try:
        return replace(open_source(copy), name=uri)
    except InputError as err:
        raise InputError(err.what.replace(str(copy), uri), err.todo) from err


def _chunks(uri: str) -> Iterator[bytes]:
    """Yield the stored bytes.

    A filesystem raises what the libraries under it raise (of the network, of credentials, of the
    service), which share no base class: whatever it is, the log can't be fetched.
    """
    try:
        with closing(_opened(uri)) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk
    except (InputError, GeneratorExit):
        raise
    except FileNotFoundError as err:
        # fsspec says this also where access is refused
        raise InputError(
            f"{uri}: no such file, or no access to it", "check the address and the credentials"
        ) from err
    except Exception as err:
        reason = " ".join(str(err).split()) or type(err).__name__
        raise InputError(
            f"{uri}: can't be fetched: {reason[:300]}", "check the address and the credentials"
        ) from err


def _opened(uri: str) -> IO[bytes] | Any:
    """Open by pyarrow, which knows the object stores; what it does not know by fsspec."""
    if urlsplit(uri).scheme not in _WEB:
        import pyarrow as pa
        from pyarrow import fs

        try:
            system, path = fs.FileSystem.from_uri(uri)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        else:
            return system.open_input_stream(path, compression=None)
    return _opened_by_fsspec(uri)


def _opened_by_fsspec(uri: str) -> Any:
    scheme = urlsplit(uri).scheme
    try:
        import fsspec
    except ImportError as err:
        raise InputError(f"{uri}: reading {scheme}:// needs fsspec", _INSTALL) from err
    if scheme not in fsspec.available_protocols():
        raise InputError(f"{uri}: no filesystem is known for {scheme}://", "check the address")
    try:
        system, path = fsspec.core.url_to_fs(uri)
    except ImportError as err:
        raise InputError(f"{uri}: {' '.join(str(err).split())}", _INSTALL) from err
    return system.open(path, "rb", block_size=0) if scheme in _WEB else system.open(path, "rb")
