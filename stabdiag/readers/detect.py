"""Which format a log has, and by which sign; what can't be a log is refused by its name."""

from __future__ import annotations

from stabdiag.errors import InputError
from stabdiag.readers.event_files import recognise_events
from stabdiag.readers.registry import READERS, Reader
from stabdiag.readers.source import Source

_EXPORT = "export the run's metrics as CSV or JSON Lines and name that"
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (
        b":W&B",
        "a W&B transaction log",
        "run.history() or a chart's CSV export gives a readable log",
    ),
    (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint is one)", "unpack it, or name the log"),
    (b"\x89HDF", "an HDF5 file", _EXPORT),
    (b"SQLite format 3", "an SQLite database", _EXPORT),
    (b"FEA1", "a Feather file of version 1", "write it as Feather version 2 or Parquet"),
    (b"\x93NUMPY", "a NumPy array", _EXPORT),
    (b"%PDF", "a PDF", _EXPORT),
    (b"\x89PNG", "an image", _EXPORT),
    (b"\x80\x02", "a Python pickle", _EXPORT),
    (b"\x80\x03", "a Python pickle", _EXPORT),
    (b"\x80\x04", "a Python pickle", _EXPORT),
    (b"\x80\x05", "a Python pickle", _EXPORT),
)
# Bytes that no text has, beside NUL, which a log gets when its file is cut under an open writer.
_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\r\f\b\x1b"))


def detect(source: Source) -> tuple[Reader, str]:
    """Decide by content which format a log has; return its reader and the reason.

    Raises:
        InputError: it is binary data of another kind.
    """
    _refuse_foreign(source)
    for reader in READERS:
        reason = reader.recognise(source)
        if reason:
            return reader, reason
    raise AssertionError("the last reader takes any text")


def _refuse_foreign(source: Source) -> None:
    head = source.head
    for magic, what, todo in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{source.name}: {what}, not a log of text, JSON or Parquet", todo)
    if head.startswith((b"PAR1", b"ARROW1")) or recognise_events(source):
        return
    if not head.strip(b"\0"):
        raise InputError(f"{source.name}: nothing but NUL bytes", "name another copy of the log")
    odd = len(head) - len(head.translate(None, _CONTROL))
    if odd > 0.05 * len(head):
        raise InputError(f"{source.name}: binary data of an unknown kind", _EXPORT)
