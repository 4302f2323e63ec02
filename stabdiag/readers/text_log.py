"""Text logs: console output of training programs, read by the table of formats in text_patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from stabdiag.errors import InputError
from stabdiag.model import Column, LogTable
from stabdiag.readers.text_patterns import GENERIC, PATTERNS
from stabdiag.readers.text_patterns.collect import Collected, Found, collect
from stabdiag.readers.text_patterns.ending import endings
from stabdiag.readers.text_patterns.record import NO_STEP
from stabdiag.readers.text_patterns.repeats import steady_rows
from stabdiag.readers.text_patterns.settle import Settled, settle

OUTWEIGHS = 5  # general lines for each line of a known format, before the general form is taken


def read_text(path: Path, text: str) -> LogTable:
    """Read the metrics out of a console log or other text log.

    Args:
        path: names the log in the table and in errors; it is not opened.
        text: the whole log. NaN and infinities are kept as written; a field that a line doesn't
            have is missing.

    Returns:
        One row for each point that the log states, in file order. The first column is the step.

    Raises:
        InputError: no line is of a known form.
    """
    collected = collect_best(text)
    main = main_format(collected)
    if main is None:
        raise nothing_recognised(path, collected)
    cut = not text.endswith(("\n", "\r"))
    settled = settle(main, companions_of(main, collected), collected, cut)
    step_name = main.pattern.step_name
    names = (step_name, *(name for name in settled.cells if name != step_name))
    return LogTable(
        files=(str(path),),
        format=main.pattern.name,
        names=names,
        kinds={name: "number" for name in names},
        rows=len(settled.kind),
        load=loader(settled, step_name),
        line=settled.line,
        notes=settled.notes + endings(text, collected.tail, collected.tail_line),
        facts={**main.pattern.facts, **collected.log.facts},
        row_kind=settled.kind,
        counted_step=settled.counted,
    )


def looks_like_text_log(head: str) -> bool:
    """Tell whether some line of `head` (the beginning of a file) is of a known text form."""
    return main_format(collect_best(head)) is not None


def collect_best(text: str) -> Collected:
    """Collect the rows of the known formats, or of the general one where most lines need it."""
    collected = collect(text, PATTERNS)
    main = main_format(collected)
    rows = 0 if main is None or main.pattern.companion else len(main.rows)
    if collected.unread >= max(GENERIC.least_alike, OUTWEIGHS * rows):
        general = collect(text, (GENERIC, *(p for p in PATTERNS if p.companion)))
        if steady_rows(general.found[0]) > OUTWEIGHS * rows:
            return general
    return collected


def main_format(collected: Collected) -> Found | None:
    """Return the format with the most rows; one that only adds rows to others when it is alone."""
    filled = [found for found in collected.found if steady_rows(found)]
    if not filled:
        return None
    return max(filled, key=lambda found: (not found.pattern.companion, steady_rows(found)))


def companions_of(main: Found, collected: Collected) -> list[Found]:
    """Return the formats whose rows join those of `main`."""
    return [
        found
        for found in collected.found
        if found.pattern.companion
        and found is not main
        and len(found.rows)
        and (found.pattern.stepless or not main.memory.counted)
    ]


def loader(settled: Settled, step_name: str) -> Callable[[Sequence[str]], dict[str, Column]]:
    """Return the `load` of the table: sparse cells become columns when they are asked for."""

    def load(names: Sequence[str]) -> dict[str, Column]:
        columns = {}
        for name in names:
            value = np.full(len(settled.kind), np.nan)
            if name == step_name:
                logged = settled.step != NO_STEP
                value[logged] = settled.step[logged]
            else:
                rows, found = settled.cells[name]
                logged = np.zeros(len(settled.kind), dtype=np.bool_)
                value[rows], logged[rows] = found, True
            columns[name] = Column("number", value, logged)
        return columns

    return load


def nothing_recognised(path: Path, collected: Collected) -> InputError:
    """Build the error for a text without metrics."""
    tried = ", ".join(found.pattern.name.removesuffix(" console") for found in collected.found)
    what = f"{path}: no metric lines recognised in {collected.lines} lines (tried: {tried})"
    todo = (
        "log one line a step with a step and a loss, such as 'step: 10 loss: 2.5', "
        "or write the metrics as CSV or JSON Lines"
    )
    if collected.unread:
        line = collected.unread_lines[0]
        todo = f"line {line} looks like metrics ({collected.unread_text!r}); {todo}"
    return InputError(what, todo)
