"""From rows as printed to the rows of the run: steps filled in, repeats of other ranks left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabdiag.model import F64, I64, Mask, Note
from stabdiag.readers.text_patterns.collect import SHOWN_LINES, Collected, Found
from stabdiag.readers.text_patterns.draft import Draft, draft_of, joined, kept_cells, taken
from stabdiag.readers.text_patterns.record import NO_STEP
from stabdiag.readers.text_patterns.repeats import alike_rows, single_writer, without_repeats

TRAINING = ("train", "epoch")
FEWEST_OVERFLOWS = 3  # in a row, to say that a log ends in them; the scaler's search has 1 or 2


@dataclass(frozen=True)
class Settled:
    """The rows of a run in file order: shape [R] each; `cells` maps a field to (rows, values).

    `step` is NO_STEP where nothing tells it. `counted` is True where the steps were counted.
    """

    kind: tuple[str, ...]
    step: I64
    line: I64
    cells: Mapping[str, tuple[I64, F64]]
    counted: bool
    notes: tuple[Note, ...]


def settle(main: Found, companions: Sequence[Found], collected: Collected, cut: bool) -> Settled:
    """Join the rows of `main` and its companions into one run.

    Args:
        main: the format that the log is in.
        companions: formats that add rows, such as overflow messages.
        collected: all that was found; the rows of other formats are noted as dropped.
        cut: the file ends without a line break, so its last row may be incomplete.
    """
    draft = checked_draft(main, main)
    notes = list(memory_notes(main))
    for found in companions:
        draft = joined(draft, checked_draft(found, main))
    guessed = fill_steps(draft, main.pattern.fill)
    if guessed:
        text = "overflow messages name no step: they were placed between the rows around them"
        notes.append(note_on("guessed", text, guessed))
    keep, differing = without_repeats(draft)
    notes += repeat_notes(draft, keep, differing)
    keep &= epoch_rows_settled(draft, keep, notes)
    if cut and len(draft.kind):
        keep &= cut_row_settled(draft, keep, collected.lines, notes)
    notes += other_notes(main, companions, collected) + trailing_overflows(draft)
    rows = np.flatnonzero(keep)
    return Settled(
        kind=tuple(draft.kind[row] for row in rows),
        step=draft.step[rows],
        line=draft.line[rows],
        cells={name: cell for name, cell in kept_cells(draft, keep) if cell[0].size},
        counted=main.memory.counted > 0,
        notes=tuple(notes),
    )


def checked_draft(found: Found, main: Found) -> Draft:
    """Turn the rows of a format into arrays, without forms too rare and messages of other ranks."""
    draft = draft_of(found, main.pattern.scale_name)
    if found.pattern.least_alike > 1:
        draft = taken(draft, alike_rows(draft, found.pattern.least_alike))
    return single_writer(draft) if found.pattern.stepless else draft


def fill_steps(draft: Draft, fill: str) -> list[int]:
    """Give each row without a step one from its neighbours; return the lines of guessed ones.

    An evaluation takes the step of the train row after it ("next") or before it ("previous").
    Skipped steps are where a progress bar put them, if that is between the train rows around
    them; else they are counted up from the row before, not past the one after.
    """
    step, total = draft.step, len(draft.kind)
    after = np.full(total, NO_STEP, dtype=np.int64)  # step of the next main train row
    upcoming = NO_STEP
    for i in range(total - 1, -1, -1):
        after[i] = upcoming
        if not draft.aside[i] and draft.kind[i] in TRAINING and step[i] != NO_STEP:
            upcoming = step[i]
    before, skipped = NO_STEP, 0
    guessed: list[int] = []
    for i in range(total):
        if draft.aside[i]:
            if max(before, 0) <= step[i] and (step[i] <= after[i] or after[i] == NO_STEP):
                continue
            skipped += 1
            step[i] = max(before, 0) + skipped
            if NO_STEP != after[i] > before:
                step[i] = min(step[i], after[i])
            guessed.append(int(draft.line[i]))
        elif step[i] == NO_STEP:
            ahead = after[i] if after[i] != NO_STEP else before + 1
            step[i] = max(0, ahead if fill == "next" or before == NO_STEP else before)
        elif draft.kind[i] in TRAINING:
            before, skipped = step[i], 0
    return guessed


def epoch_rows_settled(draft: Draft, keep: Mask, notes: list[Note]) -> Mask:
    """Leave out whole-epoch averages where the log has step rows; else they are the train rows."""
    steps_logged = any(
        draft.kind[i] == "train" and keep[i] and not draft.aside[i] for i in range(keep.size)
    )
    is_epoch = np.array([kind == "epoch" for kind in draft.kind], dtype=np.bool_)
    if steps_logged and is_epoch.any():
        text = "rows are averages over a whole epoch, beside rows of steps: left out"
        notes.append(note_on("dropped", text, draft.line[is_epoch & keep].tolist()))
        return ~is_epoch
    draft.kind = ["train" if kind == "epoch" else kind for kind in draft.kind]
    return np.ones_like(keep)


def cut_row_settled(draft: Draft, keep: Mask, lines: int, notes: list[Note]) -> Mask:
    """Judge a row on a last line without a line break: dropped when it lacks fields."""
    result = np.ones_like(keep)
    last = len(draft.kind) - 1
    if draft.line[last] != lines or not keep[last]:
        return result
    shapes = [
        set(draft.shape[i])
        for i in range(last)
        if draft.kind[i] == draft.kind[last] and keep[i] and draft.aside[i] == draft.aside[last]
    ]
    if shapes and set(draft.shape[last]) < shapes[-1]:
        result[last] = False
        notes.append(note_on("dropped", "the last line is cut short: left out", [lines]))
    else:
        text = "the last line has no line break: its last number may be cut short"
        notes.append(note_on("guessed", text, [lines]))
    return result


def note_on(
    kind: Literal["dropped", "repaired", "guessed"], text: str, lines: Sequence[int]
) -> Note:
    """Build a Note on some file lines."""
    return Note(kind, text, len(lines), tuple(lines[:SHOWN_LINES]))


def repeat_notes(draft: Draft, keep: Mask, differing: int) -> list[Note]:
    """Note the rows that repeat a point."""
    if keep.all():
        return []
    text = "rows repeat a point already printed (by another rank, or in a second form)"
    if differing:
        text += f", {differing} of them with other values or digits; one of each was kept"
    return [note_on("dropped", text, draft.line[~keep].tolist())]


def memory_notes(main: Found) -> list[Note]:
    """Return what the format itself repaired or guessed."""
    notes = [note_on("repaired", text, lines) for text, lines in main.memory.repairs.items()]
    notes += [note_on("guessed", text, lines) for text, lines in main.memory.guesses.items()]
    if main.memory.counted:
        text = "the log names no step: train rows were counted"
        notes.append(Note("guessed", text, main.memory.counted))
    return notes


def other_notes(main: Found, used: Sequence[Found], collected: Collected) -> list[Note]:
    """Note the rows of other formats and the lines that nothing could read."""
    notes = []
    for found in collected.found:
        if found is not main and found not in used and len(found.rows):
            text = f"lines have another form ({found.pattern.name}) than most: left out"
            notes.append(note_on("dropped", text, list(found.rows.line)))
    if collected.unread:
        text = f"lines look like metrics but are no lines of the {main.pattern.name}: left out"
        rows = tuple(collected.unread_lines)
        notes.append(Note("dropped", text, collected.unread, rows))
    if collected.too_long:
        notes.append(Note("dropped", "lines are too long to be metrics", collected.too_long))
    return notes


def trailing_overflows(draft: Draft) -> list[Note]:
    """Note that the log ends in skipped steps, one after another, with no step in between."""
    steady = np.flatnonzero(~draft.aside)
    after = draft.line[int(steady[-1]) + 1 if steady.size else 0 :]
    if after.size < FEWEST_OVERFLOWS:
        return []
    lines = tuple(int(line) for line in after[:SHOWN_LINES])
    return [Note("ending", "overflow messages in a row end the log", int(after.size), lines)]
