"""Corpora of lines: JSON Lines, and plain text with a document a line or between blank lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from stabdiag.batches.sources.records import names_of, sample_of
from stabdiag.batches.sources.samples import Documents, Sample, Scan, Shard
from stabdiag.errors import InputError
from stabdiag.readers.source import Source, blocks, head_text, numbered_lines, open_source

T = TypeVar("T")
BLOCK_BYTES = 4 << 20
_BLANK = re.compile(r"\n[ \t\r]*\n")


def scan_json_lines(shard: Shard[T]) -> Scan[T]:
    """Look through a JSON Lines file; lines without any character count for nothing.

    Raises:
        InputError: a wanted line is no JSON object, or has no text.
    """
    found: Scan[T] = Scan()
    source = open_source(shard.path)
    quick = _quick(shard, source)
    place = shard.first
    for number, lines in _filled_lines(source):
        wanted = set(shard.wanted.within(place, place + len(lines)))
        if wanted or quick is not None:
            for offset, line in enumerate(lines):
                here = place + offset
                if here in wanted or (quick is not None and quick.search(line)):
                    where = f"{shard.path}, sample {here - shard.first} (from line {number})"
                    _take(shard, found, line, here, where, placed=here in wanted)
        place += len(lines)
    found.size = place - shard.first
    return found


def _quick(shard: Shard[T], source: Source) -> re.Pattern[bytes] | None:
    """A pattern that a line with one of the wanted ids must hold: most lines need no parsing.

    None where no id is wanted, or the first record has no field for one.
    """
    if not shard.wanted.names or not shard.options.id_fields:
        return None
    present = _first_keys(source, shard.options.id_fields)
    fields = [name for name in shard.options.id_fields if name in present]
    if not fields:
        return None
    forms = {
        form
        for name in shard.wanted.names
        for form in (name.encode(errors="replace"), json.dumps(name)[1:-1].encode())
    }
    keys = b"|".join(re.escape(json.dumps(name).encode()) for name in fields)
    ids = b"|".join(re.escape(form) for form in sorted(forms))
    return re.compile(b"(?:" + keys + rb")\s*:\s*\"?(?:" + ids + rb")[\s\",}.]")


def _first_keys(source: Source, names: Sequence[str]) -> set[str]:
    """The fields of the first record; of the text's beginning where that record is very long."""
    line = source.head.lstrip().partition(b"\n")[0]
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {name for name in names if json.dumps(name).encode() in line}
    return set(record) if isinstance(record, dict) else set()


def _take(
    shard: Shard[T], found: Scan[T], line: bytes, place: int, where: str, *, placed: bool
) -> None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as err:
        if not placed:
            return
        raise InputError(f"{where}: not JSON: {err}", "Correct or leave out that line.") from err
    if not isinstance(record, dict):
        if not placed:
            return
        raise InputError(f"{where}: not a JSON object", "Write one object a line.")
    own = [name for name in names_of(record, shard.options) if name in shard.wanted.names]
    if placed or own:
        sample = shard.take(sample_of(record, where, shard.options))
        found.add(place, sample, placed=placed, name=own[0] if own else None)


def _filled_lines(source: Source) -> Iterator[tuple[int, Sequence[bytes]]]:
    """The lines of each block that hold a character, with the block's first line number."""
    for block in blocks(source, BLOCK_BYTES):
        lines = block.data.split(b"\n")
        yield block.first_line, [line for line in lines if line and not line.isspace()]


def scan_text_lines(shard: Shard[T]) -> Scan[T]:
    """Look through plain text with a document a line; every line counts, empty ones too."""
    found: Scan[T] = Scan()
    place = shard.first
    for block in blocks(open_source(shard.path), BLOCK_BYTES):
        lines = block.data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        for here in shard.wanted.within(place, place + len(lines)):
            text = lines[here - place].rstrip(b"\r").decode()
            found.add(here, shard.take(Sample(text=text)), placed=True, name=None)
        place += len(lines)
    found.size = place - shard.first
    return found


def scan_text_paragraphs(shard: Shard[T]) -> Scan[T]:
    """Look through plain text whose documents stand between blank lines."""
    found: Scan[T] = Scan()
    place = shard.first
    for lines in _paragraphs(open_source(shard.path)):
        if shard.wanted.within(place, place + 1):
            sample = shard.take(Sample(text="\n".join(lines)))
            found.add(place, sample, placed=True, name=None)
        place += 1
    found.size = place - shard.first
    return found


def _paragraphs(source: Source) -> Iterator[list[str]]:
    lines: list[str] = []
    for _, line in numbered_lines(source):
        if line.strip():
            lines.append(line)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def documents_of(source: Source) -> Documents:
    """How a text seems to be split: at blank lines where its head has some between longer parts."""
    text = head_text(source).strip("\n")
    parts = [part for part in _BLANK.split(text) if part.strip()]
    long_parts = sum("\n" in part.strip("\n") for part in parts)
    return "blank" if len(parts) > 1 and 2 * long_parts >= len(parts) else "lines"
