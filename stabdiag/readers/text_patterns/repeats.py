"""Which rows count: forms that recur, and each point once however many ranks printed it."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from stabdiag.model import Mask
from stabdiag.readers.text_patterns.collect import Found
from stabdiag.readers.text_patterns.draft import Draft, taken
from stabdiag.readers.text_patterns.record import NO_STEP

REPEAT_WINDOW = 64  # lines: ranks print the same message this close together
LATE_ROWS = 4  # steps that one process may lag behind another

Stream = tuple[str, str]  # rank mark and spelling
Point = tuple[str, int, tuple[str, ...]]  # kind, step, field names


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


def without_repeats(draft: Draft) -> tuple[Mask, int]:
    """Find the rows to keep: each point once, from the writer that printed most of them.

    Ranks that print side by side repeat each point; so does a program with two forms of the line.
    Writers one after another (a restart) are one writer. Without rank marks a point is a repeat
    when it follows its like at the same step, or one of the last few rows says the same.

    Returns:
        keep, shape [R], and how many of the repeats say something else than the row kept.
    """
    keep = np.ones(len(draft.kind), dtype=np.bool_)
    steps, digests = draft.step.tolist(), draft.digest.tolist()
    points = list(zip(draft.kind, steps, draft.shape, strict=True))
    beside = writers_beside(draft)
    known = {
        point: digest
        for point, digest, stream in zip(
            reversed(points), reversed(digests), reversed(draft.stream), strict=True
        )
        if beside and stream not in beside
    }
    at_step: dict[Point, int] = {}  # what the rows of the current step said
    recent: deque[int] = deque(maxlen=LATE_ROWS)
    step, differing = NO_STEP, 0
    for i in np.flatnonzero(~draft.aside).tolist():
        point, digest = points[i], digests[i]
        if draft.stream[i] in beside:
            kept = known.get(point)
        else:
            kept = at_step.get(point, digest if digest in recent else None)
        if kept is not None:
            keep[i] = False
            differing += kept != digest
            continue
        if steps[i] != step:
            at_step.clear()
            step = steps[i]
        at_step[point] = digest
        recent.append(digest)
    return keep, differing


def writers_beside(draft: Draft) -> set[Stream]:
    """Find the writers that print side by side with the one that printed most rows."""
    counts = Counter(
        stream for stream, aside in zip(draft.stream, draft.aside, strict=True) if not aside
    )
    if len(counts) < 2:
        return set()
    spans = spans_of(draft)
    main = max(counts, key=lambda stream: counts[stream])
    return {s for s in counts if s != main and overlap(spans[s], spans[main])}


def spans_of(draft: Draft) -> dict[Stream, tuple[int, int]]:
    """Return the first and last file line of each writer."""
    spans: dict[Stream, tuple[int, int]] = {}
    for stream, line in zip(draft.stream, draft.line.tolist(), strict=True):
        spans[stream] = (spans.get(stream, (line, line))[0], line)
    return spans


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether two stretches of lines overlap: writers side by side, not one after another."""
    return one[0] <= other[1] and other[0] <= one[1]
