"""Where text goes: the report to standard output or a file, remarks to standard error."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TextIO

from stabdiag.errors import UsageError
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

PIPED_WIDTH = 80
NARROWEST, WIDEST = 40, 100  # narrower breaks every word, wider is hard on the eye
_NEEDED = "─│█▁±→"


def view_for(*, color: bool, to_file: bool) -> View:
    """Return how a page should look where it goes: a terminal, a pipe or a file."""
    if to_file:
        return View(width=PIPED_WIDTH)
    terminal = sys.stdout.isatty()
    # COLUMNS is exported by those alone who want that width; a shell keeps its own to itself.
    asked = terminal or "COLUMNS" in os.environ
    columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if asked else PIPED_WIDTH
    return View(
        width=min(WIDEST, max(NARROWEST, columns)),
        color=color and terminal and _terminal_has_color(),
        ascii_only=not _encodes(sys.stdout, _NEEDED)
        or (terminal and os.environ.get("TERM") == "dumb"),
    )


def _terminal_has_color() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def remark(line: str) -> None:
    """Write one line to standard error, whatever characters a log put into it."""
    _write(sys.stderr, printable(line) + "\n")


def deliver(text: str | bytes, output: Path | None) -> None:
    """Write the report to `output`, or to standard output where that is None.

    Raises:
        UsageError: it can't be written; a file that was there before is left as it was.
    """
    try:
        if output is not None:
            _write_file(text, output)
        elif isinstance(text, str):
            _write(sys.stdout, text)
        else:
            sys.stdout.buffer.write(text)
    except OSError as err:
        if output is None:
            where, todo = "standard output", "See where it leads, and that there is room."
        else:
            where = str(output)
            todo = "Name a file in a folder that may be written, with --output FILE."
        raise UsageError(f"can't write the report to {where}: {err.strerror or err}", todo) from err


def reader_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more, as after `| head`."""
    try:
        import select

        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(events & select.POLLERR for _, events in poll.poll(0))
    except (ImportError, AttributeError, OSError, ValueError):  # Windows, or no file at all
        return False


def add_to(path: Path, text: str) -> None:
    """Append `text` to a file, as a job's summary is gathered.

    Raises:
        UsageError: it can't be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as err:
        raise UsageError(
            f"can't write the summary to {path}: {err.strerror or err}", "Name another --summary."
        ) from err


def _write(stream: TextIO, text: str) -> None:
    """Write and flush; a reader that went away (`| head`) ends the output, not the command."""
    encoding = stream.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(safe)
        stream.flush()
    except BrokenPipeError:
        # What is still in the buffer must go somewhere when the interpreter flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_file(text: str | bytes, output: Path) -> None:
    """Write beside the target and rename, so that the target is whole at any moment."""
    target = output.resolve()
    data = text.encode("utf-8") if isinstance(text, str) else text
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:  # a device or a pipe; a folder says so
            stream.write(data)
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
