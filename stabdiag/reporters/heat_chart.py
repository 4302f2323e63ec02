"""A heat map in characters: layers by time, a letter where a value was not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stabdiag.drawings import HeatMap
from stabdiag.reporters.blocks import Block, Drawing, Paragraph, prose
from stabdiag.reporters.heat_scale import above, below
from stabdiag.reporters.layer_names import labels, shortened
from stabdiag.reporters.numbers import count
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

SHOWN = 30  # rows; more layers are drawn by blocks
_OWN = 6  # layers with a row of their own above the blocks
_BLOCKS, _ASCII = ".░▒▓█", ".:+*#"
_LOW, _ZERO = "-", "0"  # below a fifth of the usual level; nothing at all
_NAME = 26  # columns for a name, at the most
_LEAST = 16  # columns of the map


@dataclass(frozen=True)
class _Row:
    name: str
    value: Sequence[float | None]
    bad: Sequence[str]


def heat_chart(
    shown: HeatMap, named: Sequence[str], onset: int | None, view: View
) -> tuple[Block, ...]:
    """Return the map with its legend.

    Of a model with more layers than rows, the layers `named` come first, then the blocks.
    """
    label, without = labels(shown.layers)
    total = len(shown.layers) + shown.left_out
    if total > SHOWN and shown.blocks:
        own, rows = _own(shown, named, label), _by_block(shown)
        apart = "below the line a row is the highest of its layers" if own else ""
        apart = apart or "a row is the highest of its layers"
        more = f"; {apart}, {total} in all"
    else:
        own, rows = [], _evenly(shown, named, label)
        hidden = total - len(rows)
        more = f"; {count(hidden, 'more layer')} {'is' if hidden == 1 else 'are'} not drawn"
        more = more if hidden else ""
    lines = _drawn(own, rows, shown, onset, view)
    ink = _ASCII if view.ascii_only else _BLOCKS
    said = "".join(lines)
    parts = [
        f"{shown.metric} over the layer's own median: {ink[0]} below 2, {ink[1]} 2 to 5, {ink[2]} "
        f"to 20, {ink[3]} to 100, {ink[4]} above; {_LOW} below a fifth, {_ZERO} zero; N NaN, I Inf; "
        f"blank: not logged",
        without if own or not (total > SHOWN and shown.blocks) else "",
        "~ stands for a part of a name" if "~" in said else "",
    ]
    legend = "; ".join(part for part in parts if part)
    return (Drawing(tuple(lines)), Paragraph(prose(f" {legend}{more}", "dim")))


def _drawn(
    own: Sequence[_Row], rows: Sequence[_Row], shown: HeatMap, onset: int | None, view: View
) -> list[str]:
    """The lines: rows of their own, a line, the other rows, the axis, the mark of the onset."""
    ink = _ASCII if view.ascii_only else _BLOCKS
    every = [*own, *rows]
    width = min(_NAME, max(len(row.name) for row in every), max(8, view.width // 3))
    plot = max(_LEAST, min(len(shown.first_step), view.width - width - 3))
    names = shortened([row.name for row in every], width)
    lines = [
        f" {name:>{width}} {''.join(_cells(row, plot, ink))}".rstrip()
        for name, row in zip(names, every, strict=True)
    ]
    if own:
        lines.insert(len(own), " " + ("-" if view.ascii_only else "─") * (width + 1 + plot))
    lines.append(" " * (width + 2) + _axis(shown, plot))
    at = next((c for c, s in enumerate(shown.last_step) if onset is not None and onset <= s), None)
    if at is not None:
        column = width + 2 + at * plot // len(shown.last_step)
        fits = column + 7 <= view.width
        lines.append(" " * column + "^ onset" if fits else "onset ^".rjust(column + 1))
    return lines


def _own(shown: HeatMap, named: Sequence[str], label: Mapping[str, str]) -> list[_Row]:
    """The rows of the layers named, in the model's order."""
    wanted = set(named[:_OWN])
    return [_row(shown, i, label) for i, layer in enumerate(shown.layers) if layer in wanted]


def _row(shown: HeatMap, i: int, label: Mapping[str, str]) -> _Row:
    return _Row(printable(label[shown.layers[i]]), shown.value[i], shown.bad[i])


def _by_block(shown: HeatMap) -> list[_Row]:
    """A row for each block of the model, neighbours joined where there are too many."""
    size = -(-len(shown.blocks) // SHOWN)
    rows = []
    for first in range(0, len(shown.blocks), size):
        some = shown.blocks[first : first + size]
        name = _span(some[0].name, some[-1].name)
        value = [_louder(levels) for levels in zip(*(one.value for one in some), strict=True)]
        bad = [_worse(marks) for marks in zip(*(one.bad for one in some), strict=True)]
        rows.append(_Row(printable(name), value, bad))
    return rows


def _span(first: str, last: str) -> str:
    """Two blocks and what is between them: "h.1 to 3" where their names are alike but for that."""
    if first == last:
        return first
    path, _, number = last.rpartition(".")
    alike = path and path == first.rpartition(".")[0] and number.isdigit()
    return f"{first} to {number}" if alike else f"{first} to {last}"


def _evenly(shown: HeatMap, first: Sequence[str], label: Mapping[str, str]) -> list[_Row]:
    """The layers in the model's order; of too many those that are named, then evenly."""
    total = len(shown.layers)
    place = {layer: i for i, layer in enumerate(shown.layers)}
    kept = {place[layer] for layer in first[: SHOWN // 2] if layer in place}
    rest = [i for i in range(total) if i not in kept]
    free = min(len(rest), SHOWN - len(kept))
    kept |= {rest[k * len(rest) // free] for k in range(free)}
    return [_row(shown, i, label) for i in sorted(kept)]


def _cells(row: _Row, plot: int, ink: str) -> list[str]:
    """One row, its cells joined to `plot` columns: the extreme of each, a letter for a bad one."""
    size = len(row.value)
    out = []
    for column in range(plot):
        first = column * size // plot
        span = slice(first, max(first + 1, (column + 1) * size // plot))
        bad, level = _worse(row.bad[span]), _louder(row.value[span])
        out.append(bad[:1] if bad else " " if level is None else _ink(level, ink))
    return out


def _louder(levels: Sequence[float | None]) -> float | None:
    """The level farthest from the usual one, a zero no farther than a thousand times it."""
    known = [level for level in levels if level is not None]
    return max(known, key=lambda level: min(abs(level), 3.0)) if known else None


def _worse(marks: Sequence[str]) -> str:
    return "Inf" if "Inf" in marks else next((mark for mark in marks if mark), "")


def _ink(level: float, ink: str) -> str:
    low = below(level)
    return ink[above(level)] if not low else _ZERO if low == 3 else _LOW


def _axis(shown: HeatMap, plot: int) -> str:
    left, right = str(shown.first_step[0]), str(shown.last_step[-1])
    return left + right.rjust(max(len(right) + 1, plot - len(left)))
