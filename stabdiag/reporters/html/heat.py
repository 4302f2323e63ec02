"""The heat map as a table: a cell is coloured, and its words are there for every reader."""

from __future__ import annotations

from stabdiag.findings import HeatMap
from stabdiag.reporters.html.document import text
from stabdiag.reporters.numbers import times

_LEVELS = (0.3, 0.7, 1.3, 2.0)


def heat(shown: HeatMap, onset: int | None) -> list[str]:
    """Return the map in a figure, with its legend; values show under the pointer."""
    columns = len(shown.first_step)
    at = next(
        (c for c, last in enumerate(shown.last_step) if onset is not None and onset <= last), -1
    )
    lines = [
        '<figure class="heat">',
        f"<figcaption>{text(shown.metric)} of each layer over its own median, steps "
        f"{shown.first_step[0]} to {shown.last_step[-1]} in {columns} cells; each cell shows the "
        "point farthest from it. N: NaN, I: Inf, empty: not logged, | the onset"
        + (f"; {shown.left_out} layers are left out" if shown.left_out else "")
        + "</figcaption>",
        '<div class="wide" tabindex="0"><table class="cells">',
    ]
    for place, layer in enumerate(shown.layers):
        cells = "".join(_cell(shown, place, column, column == at) for column in range(columns))
        lines.append(f'<tr><th scope="row">{text(layer)}</th>{cells}</tr>')
    return [*lines, "</table></div>", _legend(), "</figure>"]


def _cell(shown: HeatMap, row: int, column: int, onset: bool) -> str:
    value, bad = shown.value[row][column], shown.bad[row][column]
    marks = ["on"] if onset else []
    if bad:
        marks.append("bad")
    elif value is not None:
        marks.append(f"h{_level(value)}")
    first, last = shown.first_step[column], shown.last_step[column]
    said = bad or ("not logged" if value is None else f"{times(10.0**value)} its median")
    title = f"{first}" if first == last else f"{first} to {last}"
    name = f' class="{" ".join(marks)}"' if marks else ""
    return f'<td{name} title="{title}: {said}">{bad[:1]}</td>'


def _level(value: float) -> int:
    """0 for the usual level, up to 4 above it; 5 and 6 below."""
    if value <= -_LEVELS[1]:
        return 6 if value <= -_LEVELS[2] else 5
    return sum(value >= limit for limit in _LEVELS)


def _legend() -> str:
    words = (
        "below 2x",
        "2 to 5x",
        "5 to 20x",
        "20 to 100x",
        "above 100x",
        "below 1/5",
        "below 1/20",
    )
    keys = "".join(f'<li><span class="key h{i}"></span>{word}</li>' for i, word in enumerate(words))
    return f'<ul class="legend">{keys}</ul>'
