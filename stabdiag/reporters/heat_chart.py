"""A heat map in characters: layers by time, a letter where a value was not finite."""

from __future__ import annotations

from collections.abc import Sequence

from stabdiag.findings import HeatMap
from stabdiag.reporters.blocks import Block, Drawing, Paragraph, prose
from stabdiag.reporters.sections import shared_path
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

SHOWN = 24
_LEVELS = (0.3, 0.7, 1.3, 2.0)  # base-10 logarithms: 2, 5, 20 and 100 times the usual level
_BLOCKS, _ASCII = ".░▒▓█", ".:+*#"
_LOW = "-"  # below a fifth of the usual level
_NAME = 26  # columns for a name, at the most
_LEAST = 16  # columns of the map


def heat_chart(
    shown: HeatMap, first: Sequence[str], onset: int | None, view: View
) -> tuple[Block, ...]:
    """Return the map with its legend; `first` layers are kept where there are too many rows."""
    prefix = shared_path(shown.layers)
    names = [printable(name.removeprefix(prefix)) for name in shown.layers]
    rows = _rows(shown, first)
    width = min(_NAME, max(len(names[i]) for i in rows), max(8, view.width // 3))
    plot = max(_LEAST, min(len(shown.first_step), view.width - width - 3))
    ink = _ASCII if view.ascii_only else _BLOCKS
    lines = [f" {_fitted(names[i], width)} {''.join(_cells(shown, i, plot, ink))}" for i in rows]
    lines.append(" " * (width + 2) + _axis(shown, plot))
    if onset is not None:
        at = next((c for c, last in enumerate(shown.last_step) if onset <= last), None)
        if at is not None:
            column = width + 2 + at * plot // len(shown.last_step)
            mark = "^ onset" if column + 7 <= view.width else "onset ^"
            lines.append(mark.rjust(column + 1) if mark.endswith("^") else " " * column + mark)
    legend = (
        f"{shown.metric} over the layer's own median: {ink[0]} below 2, {ink[1]} 2 to 5, {ink[2]} "
        f"to 20, {ink[3]} to 100, {ink[4]} above; {_LOW} below a fifth; N NaN, I Inf; blank: not "
        f"logged"
    )
    if prefix:
        legend += f"; names without {prefix}"
    hidden = len(shown.layers) - len(rows) + shown.left_out
    more = f"; {hidden} layers more are not drawn" if hidden else ""
    return (Drawing(tuple(lines)), Paragraph(prose(f" {legend}{more}", "dim")))


def _rows(shown: HeatMap, first: Sequence[str]) -> list[int]:
    """The rows to draw, in model order: those ranked first, then evenly."""
    count = len(shown.layers)
    if count <= SHOWN:
        return list(range(count))
    place = {layer: i for i, layer in enumerate(shown.layers)}
    kept = {place[layer] for layer in first[: SHOWN // 2] if layer in place}
    rest = [i for i in range(count) if i not in kept]
    free = SHOWN - len(kept)
    kept |= {rest[k * len(rest) // free] for k in range(free)}
    return sorted(kept)


def _cells(shown: HeatMap, row: int, plot: int, ink: str) -> list[str]:
    """One row, its cells joined to `plot` columns: the extreme of each, a letter for a bad one."""
    value, bad = shown.value[row], shown.bad[row]
    count = len(value)
    out = []
    for column in range(plot):
        span = range(
            column * count // plot, max(column * count // plot + 1, (column + 1) * count // plot)
        )
        words = {bad[c] for c in span} - {""}
        known = [v for c in span if (v := value[c]) is not None]
        if words:
            out.append("I" if "Inf" in words else "N")
        elif known:
            out.append(_ink(max(known, key=abs), ink))
        else:
            out.append(" ")
    return out


def _ink(level: float, ink: str) -> str:
    if level <= -_LEVELS[1]:
        return _LOW
    return ink[sum(level >= limit for limit in _LEVELS)]


def _axis(shown: HeatMap, plot: int) -> str:
    left, right = str(shown.first_step[0]), str(shown.last_step[-1])
    return left + right.rjust(max(len(right) + 1, plot - len(left)))


def _fitted(name: str, width: int) -> str:
    """A name in `width` columns; its middle goes first: beginning and end tell layers apart."""
    if len(name) <= width:
        return name.rjust(width)
    left = (width - 1) // 3
    return f"{name[:left]}~{name[-(width - 1 - left) :]}"
