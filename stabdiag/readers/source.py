"""Opening a log: file or pipe, compressed or not, any Unicode encoding; read as blocks of lines."""

from __future__ import annotations

import codecs
import io
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from stabdiag.errors import InputError
from stabdiag.model import Note
from stabdiag.readers.compression import CutShortError, compression_of, decompressed

# Large enough that a call of the Arrow parsers pays off, small enough to hold a few in memory.
BLOCK_BYTES = 16 << 20
HEAD_BYTES = 256 << 10
# The header of a wide table alone may be longer; its first rows must be seen too.
_HEAD_LINES = 10
_LONGEST_HEAD_BYTES = 8 << 20
# Project choices against hostile input: a line of a log is at most some MB (a header with 10,000
# layer names, a record with histograms); a document or a pipe is held in memory as a whole.
MAX_LINE_BYTES = 64 << 20
MAX_DOCUMENT_BYTES = 2 << 30

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Block:
    """Some whole lines of a log as UTF-8, ends of lines included; `first_line` is 1-based.

    Only the last block of a log may end without a newline.
    """

    first_line: int
    data: bytes

    @cached_property
    def newlines(self) -> int:
        """Number of newlines in it; counted once, since that takes a tenth of Arrow's parsing."""
        return self.data.count(b"\n")

    def parts(self, size: int) -> Iterator[Block]:
        """Yield the block again in blocks of about `size` bytes, of whole lines each."""
        line, start = self.first_line, 0
        while start < len(self.data):
            cut = self.data.rfind(b"\n", start, start + size) + 1
            cut = cut or self.data.find(b"\n", start) + 1 or len(self.data)
            part = Block(line, self.data[start:cut])
            yield part
            line += part.newlines
            start = cut


@dataclass(frozen=True)
class Source:
    """One opened log.

    `name` is what messages call it, `path` is None for standard input; `open_raw` gives its bytes
    from the start, as stored. `head` is the beginning of its text (decompressed, UTF-8, no byte
    order mark), at most HEAD_BYTES; `complete` says that this is all of it. `notes` gathers what a
    pass over the text had to repair, one entry a kind, so that two passes say it once. `rows` are
    the first row wanted of it and the one behind the last, where not all are.
    """

    name: str
    path: Path | None
    open_raw: Callable[[], IO[bytes]]
    compression: str = ""
    encoding: str = "utf-8"
    bom: int = 0
    head: bytes = b""
    complete: bool = False
    lone_returns: bool = False
    notes: dict[str, Note] = field(default_factory=dict, compare=False)
    rows: tuple[int, int] | None = None

    @property
    def stem(self) -> str:
        """The file's name without the suffixes of compression and format; "" for a pipe."""
        if self.path is None:
            return ""
        name = unpacked(self.path.name)
        return name.rsplit(".", 1)[0] if "." in name[1:] else name


def unpacked(name: str) -> str:
    """Return a file's name without the suffix of its compression."""
    for suffix in _COMPRESSION_SUFFIXES:
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


def open_source(path: Path | str) -> Source:
    """Open one log for reading; "-" is standard input.

    Raises:
        InputError: there is no such file, it can't be opened, it is empty, or it can't be
            decompressed.
    """
    if str(path) == "-":
        return source_of("<stdin>", None, _in_memory(sys.stdin.buffer, "<stdin>"))
    path, name = Path(path), str(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{name}: a folder, not a log file", "name the log file in it")
        with path.open("rb") as file:
            if not stat.S_ISREG(mode):  # a pipe can be read only once
                return source_of(name, path, _in_memory(file, name))
    except FileNotFoundError as err:
        raise InputError(f"{name}: no such file", "check the path of the log") from err
    except (OSError, ValueError) as err:  # ValueError: a NUL in the path
        reason = getattr(err, "strerror", None) or str(err)
        raise InputError(f"{name}: can't be opened: {reason}", "check the file") from err
    return source_of(name, path, lambda: path.open("rb"))


def _in_memory(stream: IO[bytes], name: str) -> Callable[[], IO[bytes]]:
    data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"{name}: more than {MAX_DOCUMENT_BYTES >> 30} GiB from a pipe",
            "write it to a file and name that",
        )
    return lambda: io.BytesIO(data)


def source_of(name: str, path: Path | None, open_raw: Callable[[], IO[bytes]]) -> Source:
    """Find compression, encoding and head of a log whose bytes `open_raw` gives.

    Raises:
        InputError: it is empty, or can't be decompressed.
    """
    with open_raw() as raw:
        compression = compression_of(raw.read(8))
    source = Source(name, path, open_raw, compression)
    start, complete = _start(source)
    if not start:
        raise InputError(
            f"{name}: the file is empty", "name the log that the run wrote; this one has no byte"
        )
    encoding, bom = _encoding(start)
    text = start[bom:]
    if encoding != "utf-8":
        text = text.decode(encoding, errors="replace").encode()
    return Source(
        name,
        path,
        open_raw,
        compression,
        encoding,
        bom,
        text,
        complete=complete,
        # Line ends of old Macintosh files; in other files a return alone redraws a progress bar.
        lone_returns=b"\r" in text and b"\n" not in text,
    )


def _encoding(start: bytes) -> tuple[str, int]:
    """Return the encoding of a text that begins so, and the length of its byte order mark."""
    for mark, encoding in _BOMS:
        if start.startswith(mark):
            return encoding, len(mark)
    for first, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):  # ASCII between NUL bytes
        nul, other = start[first:HEAD_BYTES:2], start[1 - first : HEAD_BYTES : 2]
        if len(nul) >= 4 and not nul.strip(b"\0") and b"\0" not in other:
            return encoding, 0
    return "utf-8", 0


def _start(source: Source) -> tuple[bytes, bool]:
    """Return the first bytes of a log, enough to know it by, and whether they are all of it."""
    start = b""
    for chunk in stored_chunks(source):
        start += chunk
        if len(start) > HEAD_BYTES and start.count(b"\n", 0, HEAD_BYTES) >= _HEAD_LINES:
            return start[:HEAD_BYTES], False
        if len(start) > HEAD_BYTES and start.count(b"\n") >= _HEAD_LINES:
            return start, False
        if len(start) > _LONGEST_HEAD_BYTES:
            return start[:_LONGEST_HEAD_BYTES], False
    return start, True


def stored_chunks(source: Source) -> Iterator[bytes]:
    """Yield the log's bytes, decompressed but otherwise as stored, in chunks of a MiB at most."""
    with source.open_raw() as raw:
        try:
            yield from decompressed(raw, source.compression, source.name)
        except CutShortError:
            source.notes["cut"] = Note(
                "dropped", f"{source.compression} data cut short: what follows is lost"
            )
        except OSError as err:
            raise InputError(f"{source.name}: can't be read: {err}", "check the file") from err


def _utf8_chunks(source: Source) -> Iterator[bytes]:
    """Yield the text in UTF-8 without its byte order mark, ends of lines as they are."""
    decoder = None
    if source.encoding != "utf-8":
        decoder = codecs.getincrementaldecoder(source.encoding)(errors="replace")
    skip = source.bom
    for stored in stored_chunks(source):
        chunk, skip = stored[skip:], max(0, skip - len(stored))
        if decoder:
            chunk = decoder.decode(chunk).encode(errors="replace")
        if source.lone_returns:
            chunk = chunk.replace(b"\r", b"\n")
        yield chunk


def blocks(source: Source, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the log's text as blocks of whole lines, each of about `size` bytes.

    All blocks are valid UTF-8: bytes that are not are replaced by U+FFFD and counted in
    `source.notes`.

    Raises:
        InputError: a line is longer than MAX_LINE_BYTES.
    """
    line = 1
    waiting: list[bytes] = []
    have = 0
    for chunk in _utf8_chunks(source):
        waiting.append(chunk)
        have += len(chunk)
        if have < size:
            continue
        cut = chunk.rfind(b"\n") + 1
        if cut:
            rest = chunk[cut:]
            waiting[-1] = chunk[:cut]
            block = Block(line, valid_text(source, b"".join(waiting), line))
            line += block.newlines
            yield block
            waiting, have = [rest], len(rest)
        elif have > MAX_LINE_BYTES + size:
            line += sum(chunk.count(b"\n") for chunk in waiting)
            raise InputError(
                f"{source.name}, line {line}: longer than {MAX_LINE_BYTES >> 20} MiB",
                "check that this is a training log",
            )
    last = b"".join(waiting)
    if last:
        yield Block(line, valid_text(source, last, line))


def valid_text(source: Source, data: bytes, line: int) -> bytes:
    """Replace the bytes that are not UTF-8, and count them in `source.notes`; `line` is the first."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError as err:
        good = data.decode(errors="ignore").encode()
        where = line + data.count(b"\n", 0, err.start)
        before = source.notes.get("undecodable")
        count = len(data) - len(good) + (before.count if before else 0)
        rows = before.rows if before else (where,)
        source.notes["undecodable"] = Note(
            "repaired", "bytes that are not UTF-8 text were replaced", count, rows
        )
        return data.decode(errors="replace").encode()
    return data


def whole_text(source: Source) -> str:
    """Return all of the log's text, with ends of lines as they are.

    Raises:
        InputError: it is longer than MAX_DOCUMENT_BYTES.
    """
    parts: list[bytes] = []
    have = 0
    for chunk in _utf8_chunks(source):
        have += len(chunk)
        if have > MAX_DOCUMENT_BYTES:
            raise InputError(
                f"{source.name}: a document of more than {MAX_DOCUMENT_BYTES >> 30} GiB",
                "write the log as JSON Lines or Parquet",
            )
        parts.append(chunk)
    return valid_text(source, b"".join(parts), 1).decode()


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (1-based number, text without its line end) of each line."""
    for block in blocks(source, 1 << 20):
        lines = block.data.decode().split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        for offset, text in enumerate(lines):
            yield block.first_line + offset, text.rstrip("\r")


def head_text(source: Source) -> str:
    """Return the whole lines at the start of the log (the last may be cut where it is all)."""
    text = source.head.decode(errors="replace")
    if source.lone_returns:
        text = text.replace("\r", "\n")
    if not source.complete and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    return text
