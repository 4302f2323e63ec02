"""How a run ended, as the text after its last metric line says."""

from __future__ import annotations

import re

from stabdiag.model import Note
from stabdiag.readers.text_patterns.collect import ESCAPE, lines_of

LONGEST_TAIL = 2_000_000  # characters
MOST_ENDINGS = 5
EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Za-z_]\w{0,80}(?:Error|Exception|Interrupt|Exit|Failure)\b"
    r"[^\n]{0,200}"
)
TRACEBACK = "Traceback (most recent call last)"
SIGNS = (
    ("out of memory", re.compile(r"(?i)cuda out of memory|outofmemoryerror|\boom[- ]?kill")),
    (
        "loss scale at its minimum",
        re.compile(r"(?i)loss scale already at minimum|minimum loss scale"),
    ),
    (
        "NCCL error",
        re.compile(r"NCCL (?:error|WARN)|ncclUnhandled|ncclSystemError|Watchdog caught"),
    ),
    ("CUDA error", re.compile(r"CUDA error|CUBLAS_STATUS_|device-side assert")),
    ("killed", re.compile(r"(?:^|\s|:)Killed\s{0,9}$|SIGKILL|exitcode\s?: -9|signal 9\b")),
    ("terminated", re.compile(r"SIGTERM|Terminated\s{0,9}$|CANCELLED AT|DUE TO TIME LIMIT")),
    ("segmentation fault", re.compile(r"Segmentation fault|SIGSEGV")),
    ("interrupted", re.compile(r"KeyboardInterrupt")),
)
PREFIX = re.compile(
    r"\s{0,9}(?:\[?(?:rank|default)[0-9]{1,6}\]?:\s?|[0-9]{1,5}: ?|\(\w{1,60} pid=[^)]{1,60}\) ?)"
)


def endings(text: str, tail: int, tail_line: int) -> tuple[Note, ...]:
    """Return how the log says that the run ended; empty when it says nothing.

    Args:
        text: the whole log.
        tail: the character after the last line that gave a row.
        tail_line: the 1-based number of that line.

    The exception of a traceback is named by its last line; the same one from several ranks once.
    """
    said: dict[str, list[int]] = {}
    in_traceback = False
    for number, _, piece in lines_of(text[tail : tail + LONGEST_TAIL]):
        piece = ESCAPE.sub("", piece[:2000])
        prefix = PREFIX.match(piece)
        body = piece[prefix.end() :] if prefix else piece
        line = tail_line + number
        if TRACEBACK in body:
            in_traceback = True
            continue
        exception = EXCEPTION.match(body)
        if exception is not None and in_traceback:
            in_traceback = False
            said.setdefault(f"Python exception: {exception[0].strip()}", []).append(line)
            continue
        for name, pattern in SIGNS:
            found = pattern.search(body)
            if found is not None:
                said.setdefault(f"{name}: {body.strip()[:160]}", []).append(line)
                break
    if in_traceback and not said:
        said["a Python traceback that is cut off"] = [tail_line]
    return tuple(
        Note(
            "ending", f"after the last metrics the log says: {what}", len(lines), tuple(lines[:20])
        )
        for what, lines in list(said.items())[:MOST_ENDINGS]
    )
