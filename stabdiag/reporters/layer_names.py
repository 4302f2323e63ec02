"""Names of layers in little room: what they share said once, the rest cut where they are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len

CUT = "~"  # stands for what was left out, also where there is no Unicode
_MOST_BEGIN = 0.6  # of the names: such a beginning is said once
_USUAL = ".weight"
_HEADS = (1 / 3, 0.0, 0.5, 0.7, 0.9)  # share of the room that the beginning gets, best first


def labels(names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return each name without what goes without saying, and the words that say what that is.

    That is the modules that most names begin with, and `.weight` at the end.
    """
    prefix = shared_path(names)
    bare = {name: name.removeprefix(prefix) or name for name in names}
    short = {name: text.removesuffix(_USUAL) or text for name, text in bare.items()}
    if len(set(short.values())) < len(short):  # "x" beside "x.weight"
        short = bare
    left = [prefix] if prefix else []
    left += [_USUAL] if any(short[name] != bare[name] for name in names) else []
    return short, f"names without {' and '.join(left)}" if left else ""


def shared_path(names: Sequence[str]) -> str:
    """Return the modules that most names begin with, as "transformer."; "" where there are none."""
    prefix = ""
    while True:
        heads = Counter(
            name[len(prefix) :].partition(".")[0]
            for name in names
            if name.startswith(prefix) and "." in name[len(prefix) :]
        )
        if not heads:
            return prefix
        head, most = min(heads.items(), key=lambda item: (-item[1], item[0]))
        if most < _MOST_BEGIN * len(names):
            return prefix
        prefix += f"{head}."


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most `width` columns each, cut in the middle, still different.

    Names that would look alike are cut elsewhere, then module by module, at last numbered.
    """
    alone = list(dict.fromkeys(names))
    short = {name: _cut(name, width, _HEADS[0]) for name in alone}
    for alike in _alike(short):
        others = {short[name] for name in alone if name not in alike}
        for way in _WAYS:
            tried = {name: way(name, width) for name in alike}
            if len(set(tried.values())) == len(alike) and not others & set(tried.values()):
                break
        else:
            tried = {name: _numbered(name, width, i) for i, name in enumerate(alike, start=1)}
        short.update(tried)
    return [short[name] for name in names]


def _alike(short: dict[str, str]) -> list[list[str]]:
    """Groups of names that would look the same."""
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _cut(name: str, width: int, head: float) -> str:
    """The beginning and the end of a name, `head` of the room for the beginning."""
    if cell_len(name) <= width:
        return name
    room = max(1, width - 1)
    left = round(head * room)
    text = f"{name[:left]}{CUT}{name[len(name) - (room - left) :]}"
    while cell_len(text) > width:  # wide characters
        left, room = max(0, left - 1), room - 1
        text = f"{name[:left]}{CUT}{name[len(name) - max(0, room - left) :]}"
    return text


def _squeezed(name: str, width: int) -> str:
    """Each module's name cut at its end, the longest ones first: "mod~.enc~.0.self_a~.q_proj"."""
    parts = name.split(".")
    while cell_len(".".join(parts)) > width:
        at = max(range(len(parts)), key=lambda i: len(parts[i]))
        if len(parts[at]) < 3:
            return _cut(name, width, _HEADS[0])
        parts[at] = parts[at].rstrip(CUT)[:-1] + CUT
        if len(parts[at]) < 2:
            return _cut(name, width, _HEADS[0])
    return ".".join(parts)


def _numbered(name: str, width: int, number: int) -> str:
    """The end of a name with a number: in so little room nothing else tells it apart."""
    mark = f"#{number}"
    return _cut(name, max(1, width - len(mark)), 0.0) + mark


_WAYS: tuple[Callable[[str, int], str], ...] = (
    *(partial(_cut, head=head) for head in _HEADS[1:]),
    _squeezed,
)
