"""Signs by which a format is known: first bytes, then shape; the suffix only where both fail."""

from __future__ import annotations

import json
import re

from stabdiag.readers.csv_dialect import dialect_of
from stabdiag.readers.json_shapes import holds_series
from stabdiag.readers.jsonl_log import records_in
from stabdiag.readers.source import Source, head_text

_LINES_TRIED = 50
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity)|NaN|null|true|false"
_OBJECT = re.compile(r'\s*\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\})')
_LIST = re.compile(rf"\s*\[\s*(?:[\[{{\]\"]|(?:{_NUMBER})\s*[,\]])")
_TABLE_SUFFIXES = (".csv", ".tsv")


def parquet(source: Source) -> str:
    """Know Parquet by its magic bytes."""
    return "the bytes PAR1 at its start" if source.head.startswith(b"PAR1") else ""


def arrow(source: Source) -> str:
    """Know Arrow's file format by its magic bytes."""
    return "the bytes ARROW1 at its start" if source.head.startswith(b"ARROW1") else ""


def json_lines(source: Source) -> str:
    """Know JSON Lines by half of its first lines being JSON objects."""
    text = head_text(source).replace("\0", "")
    if not source.complete and "\n" not in text:
        return ""
    lines = [line.strip() for line in text.split("\n", _LINES_TRIED)[:_LINES_TRIED]]
    lines = [line for line in lines if line]
    objects = [r for line in lines if _OBJECT.match(line) and (r := records_in(line)) is not None]
    if not objects or 2 * len(objects) < len(lines):
        return ""
    if len(lines) == 1 and holds_series(objects[0][0]):
        return ""
    return f"{len(objects)} of its first {len(lines)} lines are JSON objects"


def json_document(source: Source) -> str:
    """Know a JSON document by its beginning, unless other text follows its first value."""
    text = head_text(source)
    start = _OBJECT.match(text) or _LIST.match(text)
    if not start:
        return ""
    try:
        _, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        end = len(text)  # longer than the head, or cut: the reader will tell
    if text[end:].strip()[:1] not in ("", "{", "["):
        return ""
    return f"it begins with a JSON {'object' if '{' in start[0][:2] else 'list'}"


def table_of_text(source: Source) -> str:
    """Know a table by a header over rows of numbers that fit it."""
    text = head_text(source).replace("\0", "")
    dialect = dialect_of(text)
    if dialect:
        return dialect.reason
    name = source.path.name.lower() if source.path else ""
    of_tables = any(suffix in name for suffix in _TABLE_SUFFIXES)
    return "its suffix" if of_tables and not _is_console(text) else ""


def text(source: Source) -> str:
    """Take what is left for text, if it is text at all."""
    return "it is text in no other format"


def _is_console(head: str) -> bool:
    from stabdiag.readers.text_log import looks_like_text_log

    return looks_like_text_log(head)
