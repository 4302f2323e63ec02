"""From rows as printed to the rows of the run: steps filled in, repeats of other ranks left out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, Mask, Note
from stabdiag.readers.text_patterns.collect import SHOWN_LINES, Collected, Found
from stabdiag.readers.text_patterns.record import NO_STEP

TRAINING = ("train", "epoch")
FEWEST_OVERFLOWS = 3  # in a row, to say that a log ends in them; the scaler's search has 1 or 2
REPEAT_WINDOW = 64  # lines: ranks print the same message this close together
LATE_ROWS = 4  # steps that one process may lag behind another


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


@dataclass
class Draft:
    """Rows while they are being settled; `aside` marks rows of a companion format."""

    kind: list[str]
    step: I64
    line: I64
    stream: list[tuple[str, str]]
    shape: list[tuple[str, ...]]
    digest: I64
    aside: Mask
    cells: dict[str, tuple[I64, F64]]


def settle(main: Found, companions: Sequence[Found], collected: Collected, cut: bool) -> Settled:
    """Join the rows of `main` and its companions into one run.

    Args:
        main: the format that the log is in.
        companions: formats that add rows, such as overflow messages.
        collected: all that was found; the rows of other formats are noted as dropped.
        cut: the file ends without a line break, so its last row may be incomplete.
    """
    draft = draft_of(main, main.pattern.scale_name)
    notes = list(memory_notes(main))
    for found in companions:
        draft = joined(draft, draft_of(found, main.pattern.scale_name))
    guessed = fill_steps(draft, main.pattern.fill)
    if guessed:
        text = "overflow messages name no step: they were placed between the rows around them"
        notes.append(note_of("guessed", text, guessed))
    keep, repeats = without_repeats(draft)
    notes += repeats
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


def draft_of(found: Found, scale_name: str) -> Draft:
    """Turn the growing lists of one format into arrays; `scale_name` is the loss scale's name."""
    rows, aside = found.rows, found.pattern.stepless
    kinds, streams, shapes = list(rows.kinds), list(rows.streams), list(rows.shapes)
    plain = [tuple(sorted(shape)) for shape in shapes]
    cells = {}
    for name, (index, value) in rows.cells.items():
        known = scale_name if aside and name == "loss_scale" else name
        cells[known] = (np.asarray(index, dtype=np.int64), np.asarray(value, dtype=np.float64))
    draft = Draft(
        kind=[kinds[code] for code in rows.kind],
        step=np.array(rows.step, dtype=np.int64),
        line=np.array(rows.line, dtype=np.int64),
        stream=[streams[code] for code in rows.stream],
        shape=[plain[code] for code in rows.shape],
        digest=np.array(rows.digest, dtype=np.int64),
        aside=np.full(len(rows), aside),
        cells=cells,
    )
    if found.pattern.least_alike > 1:
        draft = taken(draft, alike_rows(draft, found.pattern.least_alike))
    return single_writer(draft) if aside else draft


def steady_rows(found: Found) -> int:
    """Count the rows of a format, without those whose form is too rare to be trusted."""
    least = found.pattern.least_alike
    if not len(found.rows) or (max(found.rows.step) == NO_STEP and not found.pattern.stepless):
        return 0
    if least <= 1:
        return len(found.rows)
    counts = Counter(found.rows.shape)
    return sum(count for count in counts.values() if count >= least)


def alike_rows(draft: Draft, least: int) -> Mask:
    """Find the rows whose fields occur together in at least `least` rows, or nearly so.

    Once a form of train rows is settled, evaluations are kept whatever their number.
    """
    forms = Counter(zip(draft.kind, draft.shape, strict=True))
    settled = [set(shape) for (_, shape), count in forms.items() if count >= least]
    good = {
        form
        for form in forms
        if forms[form] >= least
        or (settled and form[0] == "eval")
        or any(2 * len(known & set(form[1])) >= len(known | set(form[1])) for known in settled)
    }
    return np.array(
        [form in good for form in zip(draft.kind, draft.shape, strict=True)], dtype=np.bool_
    )


def joined(first: Draft, second: Draft) -> Draft:
    """Merge two drafts by file line; on one line the first comes first."""
    line = np.concatenate([first.line, second.line])
    order = np.argsort(line, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    offset = len(first.kind)
    cells: dict[str, tuple[I64, F64]] = {}
    for name in [*first.cells, *(n for n in second.cells if n not in first.cells)]:
        parts = [
            (cells_of[name], shift)
            for cells_of, shift in ((first.cells, 0), (second.cells, offset))
            if name in cells_of
        ]
        index = np.concatenate([place[cell[0] + shift] for cell, shift in parts])
        value = np.concatenate([cell[1] for cell, _ in parts])
        by_row = np.argsort(index, kind="stable")
        cells[name] = (index[by_row], value[by_row])
    kind, stream = first.kind + second.kind, first.stream + second.stream
    shape = first.shape + second.shape
    return Draft(
        kind=[kind[i] for i in order],
        step=np.concatenate([first.step, second.step])[order],
        line=line[order],
        stream=[stream[i] for i in order],
        shape=[shape[i] for i in order],
        digest=np.concatenate([first.digest, second.digest])[order],
        aside=np.concatenate([first.aside, second.aside])[order],
        cells=cells,
    )


def kept_cells(draft: Draft, keep: Mask) -> list[tuple[str, tuple[I64, F64]]]:
    """Return the cells of the rows that are kept, with their new row numbers."""
    place = np.cumsum(keep) - 1
    result = []
    for name, (index, value) in draft.cells.items():
        stays = keep[index]
        result.append((name, (place[index[stays]].astype(np.int64), value[stays])))
    return result


def taken(draft: Draft, keep: Mask) -> Draft:
    """Return the draft with the rows where `keep` holds."""
    rows = np.flatnonzero(keep)
    return Draft(
        kind=[draft.kind[i] for i in rows],
        step=draft.step[rows],
        line=draft.line[rows],
        stream=[draft.stream[i] for i in rows],
        shape=[draft.shape[i] for i in rows],
        digest=draft.digest[rows],
        aside=draft.aside[rows],
        cells=dict(kept_cells(draft, keep)),
    )


def single_writer(draft: Draft) -> Draft:
    """Leave out messages that other ranks printed of the same skipped steps."""
    if not draft.kind:
        return draft
    first = draft.stream[0]
    spans = spans_of(draft)
    keep = np.array(
        [
            stream == first or (stream[1] == first[1] and not overlap(spans[stream], spans[first]))
            for stream in draft.stream
        ]
    )
    for i in range(1, len(draft.kind)):
        same = draft.digest[i] == draft.digest[i - 1] and draft.stream[i] == ("", "")
        if same and draft.line[i] - draft.line[i - 1] < REPEAT_WINDOW:
            keep[i] = False
    return taken(draft, keep)


def spans_of(draft: Draft) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the first and last file line of each writer."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for stream, line in zip(draft.stream, draft.line.tolist(), strict=True):
        spans[stream] = (spans.get(stream, (line, line))[0], line)
    return spans


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether two stretches of lines overlap: writers side by side, not one after another."""
    return one[0] <= other[1] and other[0] <= one[1]


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


def without_repeats(draft: Draft) -> tuple[Mask, list[Note]]:
    """Find the rows to keep: each point once, from the writer that printed most of them.

    Ranks that print side by side repeat each point; so does a program with two forms of the line.
    Writers one after another (a restart) are one writer. Without rank marks a point is a repeat
    when it follows its like at the same step, or one of the last few rows says the same.
    """
    total = len(draft.kind)
    keep = np.ones(total, dtype=np.bool_)
    spans = spans_of(draft)
    counts: dict[tuple[str, str], int] = {}
    for i in range(total):
        if not draft.aside[i]:
            counts[draft.stream[i]] = counts.get(draft.stream[i], 0) + 1
    main = max(counts, key=lambda stream: counts[stream], default=("", ""))
    beside = {s for s in counts if s != main and overlap(spans[s], spans[main])}
    steps = draft.step.tolist()
    digests = draft.digest.tolist()
    known: dict[tuple[str, int, tuple[str, ...]], int] = {}
    if beside:
        for i in range(total):
            if draft.stream[i] not in beside:
                known.setdefault((draft.kind[i], steps[i], draft.shape[i]), digests[i])
    last: dict[tuple[str, tuple[str, ...]], int] = {}
    recent: deque[int] = deque(maxlen=LATE_ROWS)
    lines: list[int] = []
    differing, at_step = 0, NO_STEP
    for i in range(total):
        if draft.aside[i]:
            continue
        shape = (draft.kind[i], draft.shape[i])
        other: int | None = None
        if draft.stream[i] in beside:
            other = known.get((draft.kind[i], steps[i], draft.shape[i]))
        elif shape in last and steps[i] == at_step:
            other = digests[last[shape]]
        elif digests[i] in recent:
            other = digests[i]
        if other is None:
            if steps[i] != at_step:
                last.clear()
                at_step = steps[i]
            last[shape] = i
            recent.append(digests[i])
            continue
        keep[i] = False
        differing += other != digests[i]
        lines.append(int(draft.line[i]))
    if not lines:
        return keep, []
    text = "rows repeat a point already printed (by another rank, or in a second form)"
    if differing:
        text += f", {differing} of them with other values or digits; one of each was kept"
    return keep, [note_of("dropped", text, lines)]


def epoch_rows_settled(draft: Draft, keep: Mask, notes: list[Note]) -> Mask:
    """Leave out whole-epoch averages where the log has step rows; else they are the train rows."""
    steps_logged = any(
        draft.kind[i] == "train" and keep[i] and not draft.aside[i] for i in range(keep.size)
    )
    is_epoch = np.array([kind == "epoch" for kind in draft.kind], dtype=np.bool_)
    if steps_logged and is_epoch.any():
        text = "rows are averages over a whole epoch, beside rows of steps: left out"
        notes.append(note_of("dropped", text, draft.line[is_epoch & keep].tolist()))
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
        notes.append(note_of("dropped", "the last line is cut short: left out", [lines]))
    else:
        text = "the last line has no line break: its last number may be cut short"
        notes.append(note_of("guessed", text, [lines]))
    return result


def trailing_overflows(draft: Draft) -> list[Note]:
    """Note that the log ends in skipped steps, one after another, with no step in between."""
    steady = np.flatnonzero(~draft.aside)
    after = draft.line[int(steady[-1]) + 1 if steady.size else 0 :]
    if after.size < FEWEST_OVERFLOWS:
        return []
    lines = tuple(int(line) for line in after[:SHOWN_LINES])
    return [Note("ending", "overflow messages in a row end the log", int(after.size), lines)]


def memory_notes(main: Found) -> list[Note]:
    """Return what the format itself repaired or guessed."""
    notes = [note_of("repaired", text, lines) for text, lines in main.memory.repairs.items()]
    notes += [note_of("guessed", text, lines) for text, lines in main.memory.guesses.items()]
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
            notes.append(note_of("dropped", text, list(found.rows.line)))
    if collected.unread:
        text = f"lines look like metrics but are no lines of the {main.pattern.name}: left out"
        rows = tuple(collected.unread_lines)
        notes.append(Note("dropped", text, collected.unread, rows))
    if collected.too_long:
        notes.append(Note("dropped", "lines are too long to be metrics", collected.too_long))
    return notes


def note_of(kind: str, text: str, lines: Sequence[int]) -> Note:
    """Build a Note on some file lines."""
    if kind == "repaired":
        return Note("repaired", text, len(lines), tuple(lines[:SHOWN_LINES]))
    if kind == "guessed":
        return Note("guessed", text, len(lines), tuple(lines[:SHOWN_LINES]))
    return Note("dropped", text, len(lines), tuple(lines[:SHOWN_LINES]))
