"""From text to rows: the lines of a log, offered to each format, and what each made of them."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import NO_STEP, LogSoFar, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import is_timing

LONGEST_LINE = 65536  # characters; the longest metric line seen has 34 thousand
SHOWN_LINES = 20
LARGEST_STEP = 2**53  # beyond it a step is a slip, and no float holds it
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|[@-Z\\-_])|[\x00\x08\x7f]")
BAR = re.compile(r"\s{0,20}[0-9]{1,3}%\|[^|\n]{0,400}\|\s{0,9}([0-9]{1,12})/([0-9]{1,12}) ?\[")
METRIC_LIKE = re.compile(
    r"(?i)(?:loss|grad_?\s?norm|gnorm)[\w ]{0,20}[\"']?\s{0,3}[:= ]\s{0,6}[\"']?"
    r"[-+]?(?:[0-9]|\.[0-9]|nan\b|inf\b)"
)
RANK_TAG = re.compile(
    r"\[(?:default|rank|Rank |RANK )[0-9]{1,6}\]|\(\w{1,60} pid=[0-9]{1,10}"
    r"|\[[0-9]{1,4},[0-9]{1,6}\]<std"
)
RANK_NUMBER = re.compile(r"\s{0,20}[0-9]{1,5}(?=: )")
RANK_WORDS = ("ank", "RANK", "[default", " pid=", "]<std")
ARGUMENT_DUMP = ("TrainingArguments(", "Namespace(", "TrainingArguments:")
FACT = re.compile(
    r"[\"']?\b(fp16|bf16|max_grad_norm|clip_grad|clip_norm|grad_clip|gradient_clipping|dtype|"
    r"logging_steps|logging_strategy|logging_nan_inf_filter|gradient_accumulation_steps)[\"']?"
    r"(?:\s?[=:]\s?|\s\.{3,60}\s)[\"']?([A-Za-z0-9_.+-]{1,40})"
)
FACT_WORDS = ("fp16", "bf16", "grad_norm", "clip", "dtype", "logging_", "gradient_acc")
CLIP_NAMES = frozenset(("clip_grad", "clip_norm", "grad_clip", "gradient_clipping"))
DUMPED = re.compile(
    r"\s{0,20}(?:Overriding: )?[\"']?\w{1,60}[\"']?(?:\s?[=:]|\s\.{3,60})\s?\S{1,60},?\s{0,9}"
)


class Cells(NamedTuple):
    """The rows that hold a field, and their values."""

    rows: array[int]
    values: array[float]


@dataclass
class Rows:
    """The rows of one format in file order, column by column.

    `kind`, `step`, `line`, `stream`, `shape`, `digest` have one entry a row; `cells` maps a field
    to the rows that hold it and their values. `streams` numbers the writers (rank and spelling),
    `shapes` the sets of field names, `kinds` the kinds. Rows with equal `digest` say the same,
    whatever their times and speeds (`measured`: the places of the other fields in a shape).
    `columns` are the cells of each field of a shape.
    """

    kind: array[int] = field(default_factory=lambda: array("b"))
    step: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    stream: array[int] = field(default_factory=lambda: array("i"))
    shape: array[int] = field(default_factory=lambda: array("i"))
    digest: array[int] = field(default_factory=lambda: array("q"))
    cells: dict[str, Cells] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    streams: dict[tuple[str, str], int] = field(default_factory=dict)
    shapes: dict[tuple[str, ...], int] = field(default_factory=dict)
    measured: list[list[int]] = field(default_factory=list)
    columns: list[list[Cells]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.step)

    def add(self, row: Row, line: int, rank: str) -> None:
        """Append one row."""
        index = len(self.step)
        names, values = tuple(row.fields), list(row.fields.values())
        shape = self.shapes.get(names)
        if shape is None:
            shape = self.new_shape(names)
        self.kind.append(self.kinds.setdefault(row.kind, len(self.kinds)))
        self.step.append(row.step if row.step < LARGEST_STEP else NO_STEP)
        self.line.append(line)
        self.stream.append(self.streams.setdefault((rank, row.spelling), len(self.streams)))
        self.shape.append(shape)
        measured = [values[place] for place in self.measured[shape]]
        packed = struct.pack(f"{len(measured)}d", *measured)
        self.digest.append(hash((row.kind, row.step, shape, packed)))
        for (rows, found), value in zip(self.columns[shape], values, strict=True):
            rows.append(index)
            found.append(value)

    def new_shape(self, names: tuple[str, ...]) -> int:
        """Number a set of field names that no row had before."""
        self.shapes[names] = len(self.shapes)
        self.measured.append([i for i, name in enumerate(names) if not is_timing(name)])
        self.columns.append(
            [self.cells.setdefault(name, Cells(array("q"), array("d"))) for name in names]
        )
        return self.shapes[names]


@dataclass
class Found:
    """What one format found in a file; `rows_before` is how many rows it had a line ago."""

    pattern: Pattern
    memory: Memory
    rows: Rows = field(default_factory=Rows)
    rows_before: int = 0


@dataclass
class Collected:
    """What all formats found, and the lines that none of them could use.

    `unread` counts lines that look like metrics but match no format, `unread_lines` are the first
    of them; `too_long` those over LONGEST_LINE. `lines` is the number of lines. `tail` is the
    character position after the last line that gave a row, `tail_line` its number.
    `last_line_rows` are the numbers of rows from a last line that has no line end.
    """

    found: list[Found]
    log: LogSoFar
    lines: int = 0
    unread: int = 0
    unread_lines: list[int] = field(default_factory=list)
    unread_text: str = ""
    too_long: int = 0
    tail: int = 0
    tail_line: int = 0


def lines_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (line number from 1, position after the line, piece); carriage returns split pieces."""
    start, number, length = 0, 0, len(text)
    while start < length:
        end = text.find("\n", start)
        if end < 0:
            end = length
        number += 1
        piece = text[start:end]
        start = end + 1
        if "\r" in piece:
            for part in piece.split("\r"):
                if part:
                    yield number, start, part
        else:
            yield number, start, piece


def collect(text: str, patterns: Sequence[Pattern]) -> Collected:
    """Offer each line to the formats, the one that read the last row first."""
    log = LogSoFar()
    result = Collected([Found(p, Memory(log)) for p in patterns], log)
    order = list(result.found)
    for number, end, piece in lines_of(text):
        result.lines = log.line = number
        if len(piece) > LONGEST_LINE:
            result.too_long += 1
            continue
        if "\x1b" in piece or "\x08" in piece or "\x00" in piece:
            piece = ESCAPE.sub("", piece)
        if "%|" in piece:
            note_bar(piece, log)
        reader = offer(piece, order)
        if reader is None:
            note_other_line(piece, result)
            continue
        if reader.memory.block is None and len(reader.rows) == reader.rows_before:
            continue  # a line of the format without metrics
        reader.rows_before = len(reader.rows)
        result.tail, result.tail_line = end, number
        if reader is not order[0]:
            order.remove(reader)
            order.insert(0, reader)
    for found in result.found:
        for row in found.memory.close_block():
            found.rows.add(row, row.line or log.line, "")
    return result


def offer(piece: str, order: list[Found]) -> Found | None:
    """Let the formats read one piece of a line; return the one that did."""
    for found in order:
        memory = found.memory
        if memory.block is None and not memory.names:
            for hint in found.pattern.hints:
                if hint in piece:
                    break
            else:
                continue
        rows = found.pattern.read(piece, memory)
        if rows is None:
            continue
        for row in rows:
            if row.fields:
                found.rows.add(row, row.line or memory.log.line, rank_of(piece))
        return found
    return None


def rank_of(piece: str) -> str:
    """Return the mark of the process that printed a line (`[rank0]`, `511`, a pid), else ""."""
    head = piece[:200]
    match = RANK_NUMBER.match(head) if head[:1].isdigit() or head[:1] == " " else None
    if match is None and any(word in head for word in RANK_WORDS):
        match = RANK_TAG.search(head)
    return match[0].strip() if match else ""


def note_bar(piece: str, log: LogSoFar) -> None:
    """Remember the count of a tqdm bar without a description: a Trainer's steps."""
    match = BAR.match(without_prefix(piece))
    if match is not None and (int(match[2]) in log.bars or len(log.bars) < 64):
        log.bar = int(match[2])
        log.bars[log.bar] = int(match[1])


def note_other_line(piece: str, result: Collected) -> None:
    """Keep what a line without metrics says: settings, a new run, or metrics in an unknown form."""
    log = result.log
    if "TrainingArguments(" in piece:
        log.argument_dumps += 1
    for word in FACT_WORDS:
        if word in piece:
            dump = any(head in piece for head in ARGUMENT_DUMP) or without_prefix(
                piece
            ).lstrip().startswith("{'")
            if dump or DUMPED.fullmatch(without_prefix(piece)):
                for match in FACT.finditer(piece):
                    key = "max_grad_norm" if match[1] in CLIP_NAMES else match[1]
                    log.facts.setdefault(key, match[2].rstrip(".,"))
                return
            break
    if ("oss" in piece or "norm" in piece or "LOSS" in piece) and METRIC_LIKE.search(piece):
        result.unread += 1
        if len(result.unread_lines) < SHOWN_LINES:
            result.unread_lines.append(log.line)
            result.unread_text = result.unread_text or piece.strip()[:100]
