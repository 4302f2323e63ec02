"""The heat map: layers by time as a picture to read by pointer or keyboard, and in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from stabdiag.drawings import HeatMap
from stabdiag.findings import Report
from stabdiag.reporters.heat_scale import above, below
from stabdiag.reporters.html.document import data, folded, table, text
from stabdiag.reporters.html.places import layer, place
from stabdiag.reporters.layer_names import labels
from stabdiag.reporters.numbers import count, steps, times

_WORDS = {
    "h0": "usual: below 2x",
    "h1": "2 to 5x",
    "h2": "5 to 20x",
    "h3": "20 to 100x",
    "h4": "above 100x",
    "l1": "below 1/5 (half as high)",
    "l2": "below 1/20",
    "zero": "zero (a line)",
}
_ROW = 14  # pixels
_FULL = 0.9  # height of a cell, in rows
_HEIGHT = {"l1": 0.5, "l2": 0.5, "zero": 0.2}  # of a cell: what is low shows without its colour too


@dataclass(frozen=True)
class Rows:
    """What a map has a row for, with the words for it; cells [R][C] as in `HeatMap`."""

    kind: str
    names: tuple[str, ...]
    value: tuple[tuple[float | None, ...], ...]
    bad: tuple[tuple[str, ...], ...]
    said: str


def by_layer(shown: HeatMap) -> Rows:
    """Return a row for each layer that the map holds."""
    left = f"; {count(shown.left_out, 'layer')} left out" if shown.left_out else ""
    said = (
        f"over the layer's own median; a cell shows the point in it that is farthest from it{left}"
    )
    return Rows("layer", shown.layers, shown.value, shown.bad, said)


def by_block(shown: HeatMap) -> Rows:
    """Return a row for each block of the model: no layer is left out of them."""
    blocks = shown.blocks
    layers = sum(one.layers for one in blocks)
    return Rows(
        "block",
        tuple(one.name for one in blocks),
        tuple(one.value for one in blocks),
        tuple(one.bad for one in blocks),
        f"of all {count(layers, 'layer')} by blocks; a cell shows the highest of a block's layers",
    )


def heat(shown: HeatMap, rows: Rows, report: Report, name: str) -> list[str]:
    """Return a map with its legend and its figures; `name` is an id of the page."""
    label, without = labels(rows.names)
    onset = report.verdict.onset_step
    said = [
        f"{shown.metric.replace('_', ' ')} {rows.said}",
        f"{steps(shown.first_step[0], shown.last_step[-1])} in {len(shown.first_step)} cells; a "
        "cross is NaN, a triangle Inf, no colour: not logged",
        f"the upright line is the onset, step {onset}" if onset is not None else "",
        without,
    ]
    names = "".join(f'<li title="{text(one)}">{text(label[one])}</li>' for one in rows.names)
    return [
        f'<figure class="heat" aria-labelledby="{name}-said">',
        f'<figcaption id="{name}-said">{text("; ".join(filter(None, said)))}</figcaption>',
        f'<div class="map"><ol class="names">{names}</ol>',
        f'<div class="cells" data-heat="{name}" role="group" aria-label="Map by {rows.kind}: arrow keys '
        f'read the cells, Enter shows their steps in the charts">{_picture(shown, rows, onset)}</div>'
        "</div>",
        '<output class="script" aria-live="polite" hidden></output>',
        _legend(),
        *folded("The map in figures", [_figures(shown, rows, report)]),
        "</figure>",
        data(name, _cells(shown, rows)),
    ]


def _cells(shown: HeatMap, rows: Rows) -> dict[str, object]:
    """What the script reads out; of the cells that are not finite those alone."""
    return {
        "names": rows.names,
        "first": shown.first_step,
        "last": shown.last_step,
        "value": rows.value,
        "bad": [
            [row, column, bad]
            for row, cells in enumerate(rows.bad)
            for column, bad in enumerate(cells)
            if bad
        ],
    }


def _picture(shown: HeatMap, drawn: Rows, onset: int | None) -> str:
    """The cells, thick lines, those of one look as one path; over them marks and the onset."""
    rows, columns = len(drawn.names), len(shown.first_step)
    cells: dict[str, list[str]] = {}
    ends: dict[str, tuple[int, float]] = {}
    marks: list[str] = []
    for row in range(rows):
        for look, first, width in _stretches(drawn, row):
            middle = row + 0.95 - _HEIGHT.get(look, _FULL) / 2
            x, y = ends.get(look, (0, 0.0))
            cells.setdefault(look, []).append(f"m{first - x} {middle - y:g}h{width}")
            ends[look] = (first + width, middle)
        marks += [_mark(bad, c, row) for c, bad in enumerate(drawn.bad[row]) if bad]
    parts = [
        f'<path class="{look}" stroke-width="{_HEIGHT.get(look, _FULL)}" d="{"".join(cells[look])}"/>'
        for look in sorted(cells)
    ]
    if marks:
        parts.append(f'<path class="not" d="{"".join(marks)}"/>')
    at = next((c for c, last in enumerate(shown.last_step) if (onset or 0) <= last), None)
    if onset is not None and at is not None and onset >= shown.first_step[0]:
        parts.append(f'<path class="onset" d="M{at} 0V{rows}"/>')
    return (
        f'<svg viewBox="0 0 {columns} {rows}" width="100%" height="{rows * _ROW}" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(parts)}</svg>'
    )


def _stretches(drawn: Rows, row: int) -> Iterator[tuple[str, int, int]]:
    """(look, first column, columns) of one row, neighbours of one look together."""
    looks = [_look(value, bad) for value, bad in zip(drawn.value[row], drawn.bad[row], strict=True)]
    first = 0
    for look, group in groupby(looks):
        width = len(list(group))
        if look:
            yield look, first, width
        first += width


def _mark(bad: str, column: int, row: int) -> str:
    """A triangle for Inf, a cross for NaN."""
    if "Inf" in bad:
        return f"M{column}.2 {row}.75l.3 -.5l.3 .5z"
    return f"M{column}.2 {row}.25l.6 .5m0 -.5l-.6 .5"


def _look(value: float | None, bad: str) -> str:
    """The class of a cell; "" where nothing was logged."""
    if bad:
        return "bad"
    if value is None:
        return ""
    low = below(value)
    return ("l1", "l2", "zero")[low - 1] if low else f"h{above(value)}"


def _figures(shown: HeatMap, drawn: Rows, report: Report) -> str:
    """The same in words: of each row its highest and lowest cell, and where it is not finite."""
    rows = []
    for name, values, bad in zip(drawn.names, drawn.value, drawn.bad, strict=True):
        known = [(v, c) for c, v in enumerate(values) if v is not None]
        first = next((c for c, kind in enumerate(bad) if kind), None)
        rows.append(
            [
                layer(name),
                *_extreme(shown, report, max(known, key=lambda one: one[0], default=None)),
                *_extreme(shown, report, min(known, key=lambda one: one[0], default=None)),
                "" if first is None else f"{bad[first]}, {_when(shown, report, first)}",
            ]
        )
    header = (drawn.kind, "highest", "where", "lowest", "where", "not finite from")
    return table(header, rows, right=(1, 3), caption="Multiples of each layer's own median")


def _extreme(shown: HeatMap, report: Report, cell: tuple[float, int] | None) -> Sequence[str]:
    if cell is None:
        return ("-", "")
    return (times(10.0 ** cell[0]), _when(shown, report, cell[1]))


def _when(shown: HeatMap, report: Report, column: int) -> str:
    return place(report, shown.first_step[column], shown.last_step[column])


def _legend() -> str:
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 1 1" aria-hidden="true"><rect class="{look}" '
        f'y="{1 - _HEIGHT.get(look, 1.0)}" width="1" height="{_HEIGHT.get(look, 1.0)}"/></svg>{word}'
        "</li>"
        for look, word in _WORDS.items()
    )
    return f'<ul class="legend">{keys}</ul>'
