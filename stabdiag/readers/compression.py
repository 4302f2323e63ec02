"""Undoing gzip, bzip2, xz and zstd as a stream of bounded chunks, known by their first bytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

from stabdiag.errors import InputError, MissingPackageError

CHUNK_BYTES = 1 << 20
# Project choice against decompression bombs: logs shrink 5 to 50 times; gzip can reach 1000 times.
ALWAYS_ALLOWED_BYTES = 1 << 30
LARGEST_RATIO = 200

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


class CutShortError(Exception):
    """The compressed stream ends before its end mark; what came before it is good."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def compression_of(first_bytes: bytes) -> str:
    """Name the compression that these first bytes show; "" for none."""
    for magic, name in _MAGIC:
        if first_bytes.startswith(magic):
            return name
    return ""


def decompressed(raw: IO[bytes], compression: str, name: str) -> Iterator[bytes]:
    """Yield the uncompressed bytes of `raw` in chunks of at most CHUNK_BYTES.

    Raises:
        InputError: the stream is damaged, grows past all proportion, or its module is missing.
        CutShortError: the stream ends early; all that could be read was yielded before.
    """
    if compression == "":
        while chunk := raw.read(CHUNK_BYTES):
            yield chunk
        return
    stream = _zstd(raw, name) if compression == "zstd" else _members(raw, compression)
    total = 0
    try:
        for chunk in stream:
            total += len(chunk)
            if total > max(ALWAYS_ALLOWED_BYTES, LARGEST_RATIO * raw.tell()):
                raise InputError(
                    f"{name}: {compression} data that grows more than {LARGEST_RATIO} times"
                    f" (past {total >> 20} MiB)",
                    "check that this is a log; if it is, uncompress it first",
                )
            yield chunk
    except (zlib.error, lzma.LZMAError, OSError, ValueError) as err:
        raise InputError(
            f"{name}: damaged {compression} data after {total} uncompressed bytes: {err}",
            "copy the file again, or uncompress what can be saved",
        ) from err


def _members(raw: IO[bytes], compression: str) -> Iterator[bytes]:
    """Yield the data of all compressed members that stand one after another."""
    new: dict[str, Callable[[], _Decompressor]] = {
        "gzip": _Gzip,
        "bzip2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    rest = b""
    first = True
    while rest or (rest := raw.read(CHUNK_BYTES)):
        if not first:
            # gzip allows zero padding after a member; anything else there is ignored like gzip does
            rest = rest.lstrip(b"\0")
            if rest and not compression_of(rest):
                return
            if not rest:
                continue
        member = new[compression]()
        yield from _member(member, raw, rest)
        rest = member.unused_data
        first = False


def _member(member: _Decompressor, raw: IO[bytes], waiting: bytes) -> Iterator[bytes]:
    while not member.eof:
        chunk = member.decompress(waiting, CHUNK_BYTES)
        if chunk:
            yield chunk
        waiting = b""
        if not chunk and not member.eof:
            waiting = raw.read(CHUNK_BYTES)
            if not waiting:
                raise CutShortError


class _Gzip:
    """zlib's decompressor with the interface of bz2's and lzma's: it keeps what it has not used."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        out = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._zlib.eof, self._zlib.unused_data
        return out


def _zstd(raw: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as err:
        raise MissingPackageError(
            f"{name}: compressed with zstd, which needs the package zstandard",
            "pip install zstandard, or uncompress the file first",
        ) from err
    reader: Any = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    try:
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk
    except zstandard.ZstdError as err:
        raise ValueError(str(err)) from err
