"""The record of one text format: how its lines look, how they are read, and lines that prove it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

NO_STEP = -1  # the line names no step: it takes one from its neighbours

RowKind = Literal["train", "eval", "summary", "epoch"]


@dataclass(frozen=True)
class Row:
    """One logged point as one line (or block of lines) states it.

    `kind` is "train", "eval", "summary" or "epoch" (an average over a whole epoch, left out when
    the same log has step rows). `step` is NO_STEP where the line names none. `fields` holds what
    was logged: an absent key is missing, a NaN value was written. `spelling` tells two forms in
    which one program prints the same point. `line` is set where the row began on an earlier line.
    """

    kind: RowKind
    step: int
    fields: Mapping[str, float]
    spelling: str = ""
    line: int | None = None


@dataclass
class LogSoFar:
    """What all formats may know of the file up to the current line.

    `line` is the 1-based file line. `bars` maps the total of each tqdm bar to the count it last
    showed, `bar` is the total of the latest one. `facts` are settings that the log states.
    `argument_dumps` counts printed argument lists: a new one begins a new run.
    """

    line: int = 0
    bar: int = 0
    bars: dict[int, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    argument_dumps: int = 0


@dataclass
class Memory:
    """What one format remembers from line to line of one file.

    While a block of several lines is open, `block` holds its fields so far and `block_kind`,
    `block_step`, `block_line` what its head said, `section` the part of it. `names` are the heads
    of a table while its rows come. `numbers` is free for the format. `repairs` and `guesses` list
    the file lines by what was repaired or guessed. `counted` is the number of rows whose step was
    counted, `epochs` the epochs of the counted rows of the current run.
    """

    log: LogSoFar
    block: dict[str, float] | None = None
    block_kind: RowKind = "train"
    block_step: int = NO_STEP
    block_line: int = 0
    section: str = ""
    names: tuple[str, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    repairs: dict[str, list[int]] = field(default_factory=dict)
    guesses: dict[str, list[int]] = field(default_factory=dict)
    counted: int = 0
    epochs: array[float] = field(default_factory=lambda: array("d"))

    def epochs_before(self, epoch: int) -> int:
        """Return how many epochs are over in `epoch`; the log may count them from 0 or 1."""
        first = self.numbers.setdefault("first epoch", min(epoch, 1))
        return max(0, epoch - int(first))

    def close_block(self) -> list[Row]:
        """End the open block and return its row, if it has any field."""
        block, self.block = self.block, None
        if not block:
            return []
        return [Row(self.block_kind, self.block_step, block, line=self.block_line)]

    def open_block(self, kind: RowKind, step: int) -> None:
        """Begin a block at the current line."""
        self.block, self.block_kind, self.block_step = {}, kind, step
        self.block_line = self.log.line


@dataclass(frozen=True)
class Example:
    """Lines as the framework prints them, and the rows that they must give.

    Each row is (kind, step, some of its fields), NO_STEP already filled in. A field of None must
    be missing.
    """

    lines: str
    rows: tuple[tuple[RowKind, int, Mapping[str, float | None]], ...]


@dataclass(frozen=True)
class Pattern:
    """One text format.

    A line is given to `read` when it holds one of `hints`, or in a block or table. `read`
    returns the rows that the line completes, an empty list for a line that belongs to the format
    and adds no row, None for any other line. A block still open at the end is closed there.
    `step_name` is the step column as the log names it. `fill` says where a line without a step
    takes it from: the next train row, or the one before. `scale_name` is the format's own name of
    the loss scale. A `companion` only adds rows to another format's (overflow messages); it
    stands alone where the log has nothing else. The rows of a `stepless` one are placed between
    the rows around them. Rows count only when `least_alike` of them have the same fields.
    """

    name: str
    hints: tuple[str, ...]
    read: Callable[[str, Memory], list[Row] | None]
    examples: tuple[Example, ...]
    step_name: str = "step"
    fill: Literal["next", "previous"] = "previous"
    scale_name: str = "loss_scale"
    companion: bool = False
    stepless: bool = False
    least_alike: int = 1
    facts: Mapping[str, str] = field(default_factory=dict)
