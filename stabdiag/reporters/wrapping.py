"""Where a line of a page may be broken: between words, then inside a long name at its joints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

GLUE = "\ue000"  # stands for a blank that keeps its line; never in text that was made printable
_WORD = re.compile(r"\S+")
_JOINTS = "./_-:,="  # a layer's or a file's name is broken after one of these


def breaks(text: str, width: int) -> list[int]:
    """Return the offsets in `text` at which a new line begins, for lines of `width` columns.

    A word that fits on a line is not broken; a longer one is broken at a glued blank, else after a
    joint of its name, else where the line ends. Blanks before an offset belong to no line.
    """
    offsets: list[int] = []
    used = 0
    end = 0
    for word in _WORD.finditer(text):
        start = word.start()
        gap = cell_len(text[end:start])
        size = cell_len(word.group())
        end = word.end()
        if used + gap + size <= width:
            used += gap + size
            continue
        if used or gap >= width:
            offsets.append(start)
            gap = 0
        cuts = list(_cuts(word.group(), width, gap))
        offsets.extend(start + cut for cut in cuts)
        used = cell_len(word.group()[cuts[-1] if cuts else 0 :]) + (0 if cuts else gap)
    return offsets


def _cuts(word: str, width: int, indent: int) -> Iterator[int]:
    """Offsets at which a word longer than a line is broken; `indent` is taken on the first."""
    at = 0
    room = width - indent
    while cell_len(word[at:]) > room:
        fitting = _fitting(word, at, room)
        at = _at_joint(word, at, fitting)
        room = width
        yield at


def _fitting(word: str, at: int, room: int) -> int:
    """The end of the longest piece from `at` that takes `room` columns; at least one character."""
    end = at + 1
    while end < len(word) and cell_len(word[at : end + 1]) <= room:
        end += 1
    return end


def _at_joint(word: str, at: int, end: int) -> int:
    """The last good place to break before `end`; a joint in the first half is none."""
    blank = word.rfind(GLUE, at, end)
    if blank >= at:
        return blank + 1
    half = at + (end - at) // 2
    joint = max(word.rfind(sign, half, end) for sign in _JOINTS)
    return joint + 1 if joint >= half else end
