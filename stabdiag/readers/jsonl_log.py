"""JSON Lines: one object a line. Clean blocks go through Arrow, odd ones line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.assembled import assemble
from stabdiag.readers.gathered import Gathered
from stabdiag.readers.jsonl_fast import fast_piece
from stabdiag.readers.pieces import Piece
from stabdiag.readers.records import Record, records_piece, row_kinds, tree_order
from stabdiag.readers.source import Block, Source, blocks
from stabdiag.readers.tally import Tally
from stabdiag.threads import ahead

# A block that Arrow refuses is tried again in parts of this size: one bad line then costs little.
_PART_BYTES = 1 << 20
_MOST_KEYS = 100_000
_MOST_DIGITS = 20  # of a whole number of 64 bits, with its sign
_DECODER = json.JSONDecoder()
# What Python's str() and C's printf write where JSON has no such word; strings are skipped over.
_ODD_WORD = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|\Z)|(?<![\w.])[+-]?(?:nan|inf|infinity|none|true|false)(?!\w)', re.I
)
_WORDS = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity", "none": "null"}


@dataclass
class JsonLines:
    """A log of JSON Lines being read; `as_text` are keys whose text looks like a time to Arrow."""

    name: str
    tally: Tally = field(default_factory=Tally)
    as_text: dict[str, object] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)


def read_jsonl(source: Source) -> LogTable:
    """Read a log of one JSON object a line.

    Lines that can't be read are skipped and counted; a last line without newline that can't be
    read was cut by the end of the run.

    Raises:
        InputError: no line holds a record.
    """
    log = begun(source)
    return table_of(source, log, pieces_of(ahead(blocks(source)), log))


def begun(source: Source) -> JsonLines:
    """Return a log of which nothing is read yet."""
    return JsonLines(source.name)


def gathering(log: JsonLines) -> Gathered:
    """Return what the pieces of this log can be added to, to be `begun` with."""
    return Gathered()


def table_of(
    source: Source, log: JsonLines, pieces: Iterable[Piece], begun: Gathered | None = None
) -> LogTable:
    """Make a log of its pieces, and of those that are in `begun` already.

    Raises:
        InputError: they hold no record.
    """
    cells = assemble(pieces, rows=source.rows, begun=begun)
    if cells.rows == 0:
        raise InputError(
            f"{source.name}: no line holds a JSON object",
            'name a log with one JSON object a line, such as {"step": 1, "loss": 2.5}',
        )
    names = tree_order(cells)
    return LogTable(
        files=(source.name,),
        format="jsonl",
        names=names,
        kinds={name: cells.kinds[name] for name in names},
        rows=cells.rows,
        load=cells.load,
        line=cells.line,
        place=cells.place,
        notes=(*source.notes.values(), *log.tally.notes(), *cells.notes),
        row_kind=row_kinds(cells),
    )


def pieces_of(lines: Iterable[Block], log: JsonLines) -> Iterator[Piece]:
    """Yield the records of blocks.

    Raises:
        InputError: there are more keys than a log has.
    """
    for block in lines:
        for piece in _block_pieces(block, log):
            log.keys |= piece.columns.keys()
            if len(log.keys) > _MOST_KEYS:
                raise InputError(
                    f"{log.name}, line {piece.line[-1]}: more than {_MOST_KEYS} different keys",
                    "write a value under the same key in each record",
                )
            yield piece


def settled_pieces(block: Block, log: JsonLines) -> tuple[list[Piece], Block]:
    """Return the records of whole lines that more will follow, and what is left: nothing."""
    return list(pieces_of([block], log)), Block(block.first_line + block.newlines, b"")


def _block_pieces(block: Block, log: JsonLines) -> Iterator[Piece]:
    piece = fast_piece(block, log.as_text)
    if piece is not None:
        yield piece
    elif len(block.data) <= _PART_BYTES or block.newlines <= 1:
        records = list(_records(block, log.tally))
        if records:
            yield records_piece(records, log.tally)
    else:
        for part in block.parts(_PART_BYTES):
            yield from _block_pieces(part, log)


def _records(block: Block, tally: Tally) -> Iterator[tuple[int, Record]]:
    lines = block.data.decode().split("\n")
    for line, text in enumerate(lines, start=block.first_line):
        whole = text.strip()
        if not whole:
            continue
        records = records_in(whole)
        if records is None:
            last = line == block.first_line + len(lines) - 1
            why = "the last line, cut short" if last else "a line that is no JSON object"
            tally.add("dropped", why, [line])
            continue
        if "\0" in whole:
            tally.add("repaired", "NUL bytes in a line: what they replaced is lost", [line])
        for record in records:
            if record:
                yield line, record
            else:
                tally.add("dropped", "an empty record {}", [line])


def records_in(text: str) -> list[Record] | None:
    """Return the record of a line (several where newlines were lost); None if it is none."""
    try:
        value = json.loads(text)
    except RecursionError:
        return None
    except ValueError:
        return _repaired(text)
    return [value] if isinstance(value, dict) else None


def _repaired(text: str) -> list[Record] | None:
    """Read a line with words such as nan and None, NUL bytes around it, or two objects on it."""
    text = _ODD_WORD.sub(_json_word, text.strip("\0 \t\r"))
    decoder = json.JSONDecoder(parse_int=_whole)
    records: list[Record] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        records.append(value)
        while position < len(text) and text[position] in " \t\0\r":
            position += 1
    return records or None


def _whole(digits: str) -> float:
    """A whole number; Python's own `int` refuses one of thousands of digits."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _json_word(match: re.Match[str]) -> str:
    word = match[0]
    if word.startswith('"'):
        return word
    sign, bare = ("-", word[1:]) if word[0] == "-" else ("", word.lstrip("+"))
    json_word = _WORDS.get(bare.lower(), bare.lower())
    return f"-{json_word}" if sign and json_word == "Infinity" else json_word
