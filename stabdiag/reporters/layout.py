"""Blocks laid out for a terminal: wrapped to the width, hanging indents, tables that fold."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from stabdiag.reporters.blocks import (
    Blank,
    Block,
    Drawing,
    Heading,
    Items,
    Labelled,
    Paragraph,
    Span,
    Table,
    Tone,
    Words,
)
from stabdiag.reporters.layer_names import shortened
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View
from stabdiag.reporters.wrapping import GLUE, breaks

GAP = 2  # columns between two cells
MIN_WIDTH = 20

_STYLES: Mapping[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "bold green",
    "warn": "bold yellow",
    "bad": "bold red",
    "command": "cyan",
}
_ASCII = str.maketrans(
    {
        **{"—": "-", "–": "-", "─": "-", "−": "-", "·": "-", "•": "*", "…": "...", "×": "x"},
        **{"±": "+/-", "→": "->", "←": "<-", "≥": ">=", "≤": "<=", "≈": "~", "σ": "sigma"},
        **{"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "},
    }
)


def laid_out(blocks: Iterable[Block], view: View) -> str:
    """Return `blocks` as text of at most `view.width` columns, with a final newline."""
    lines: list[Text] = []
    for block in blocks:
        if isinstance(block, Heading) and lines:
            lines.append(Text())
        lines.extend(_lines(block, view))
    return _to_text(lines, view)


def _lines(block: Block, view: View) -> list[Text]:
    match block:
        case Heading(title):
            return [_heading(title, view)]
        case Paragraph(text):
            return _wrapped(_text(text, view), view.width)
        case Blank():
            return [Text()]
        case Labelled(rows):
            return _labelled(rows, view)
        case Items(rows):
            numbered = [(_number(place), row) for place, row in enumerate(rows, start=1)]
            return _labelled(numbered, view)
        case Table():
            return _table(block, view)
        case Drawing(drawn):
            return [Text(line) for line in drawn]


def _number(place: int) -> Words:
    return (Span(f"{place}."),)


def _heading(title: str, view: View) -> Text:
    line = _text((Span(f"{title} ", "strong"),), view)
    rule = "-" if view.ascii_only else "─"
    line.append(rule * max(0, view.width - line.cell_len), style="dim")
    return line


def _labelled(rows: Sequence[tuple[Words, Words]], view: View) -> list[Text]:
    """Labels in one column, texts beside them; a label too long stands on a line of its own."""
    labels = [_text(label, view) for label, _ in rows]
    limit = max(4, view.width // 3)
    column = max((label.cell_len for label in labels if label.cell_len <= limit), default=0)
    indent = 1 + column + GAP if column else 3
    lines: list[Text] = []
    for label, (_, body) in zip(labels, rows, strict=True):
        texts = _wrapped(_text(body, view), max(MIN_WIDTH, view.width - indent))
        if label.cell_len > limit:
            lines.extend(_indented(part, 1) for part in _wrapped(label, view.width - 1))
            lines.extend(_indented(text, indent) for text in texts)
            continue
        first = _indented(label, 1)
        first.pad_right(max(0, indent - first.cell_len))
        lines.append(first + texts[0])
        lines.extend(_indented(text, indent) for text in texts[1:])
    return lines


def _table(table: Table, view: View) -> list[Text]:
    cells = [[_text(cell, view) for cell in row] for row in table.rows]
    header = [_text((Span(name, "dim"),), view) for name in table.header]
    widths = _column_widths([header, *cells], table, view.width - 1)
    if widths is None:
        return _stacked(table, view)
    for place in table.short:
        _shorten(cells, place, widths[place])
    lines: list[Text] = []
    for row in [header, *cells]:
        wrapped = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for index in range(max(len(parts) for parts in wrapped)):
            line = Text(" ")
            for place, (parts, width) in enumerate(zip(wrapped, widths, strict=True)):
                part = parts[index].copy() if index < len(parts) else Text()
                space = max(0, width - part.cell_len)
                part = Text(" " * space) + part if place in table.right else part
                part.pad_right(max(0, width - part.cell_len) + GAP)
                line.append_text(part)
            lines.append(line)
    return lines


def _shorten(cells: list[list[Text]], place: int, width: int) -> None:
    """Cut the names of one column to its width."""
    names = [row[place].plain for row in cells]
    for row, short in zip(cells, shortened(names, width), strict=True):
        if short != row[place].plain:
            style = row[place].spans[0].style if row[place].spans else ""
            row[place] = Text().append(short, style=style)


def _column_widths(rows: Sequence[Sequence[Text]], table: Table, width: int) -> list[int] | None:
    """Return the columns' widths, the widest text columns narrowed; None where it can't fit."""
    widths = [max(row[place].cell_len for row in rows) for place in range(len(rows[0]))]
    flexible = list(table.short)
    flexible = flexible or [p for p in range(len(widths)) if p not in table.right]
    while (excess := sum(widths) + GAP * (len(widths) - 1) - width) > 0:
        widest = max(flexible, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= table.narrowest:
            return None
        widths[widest] = max(table.narrowest, widths[widest] - max(1, excess // 2))
    return widths


def _stacked(table: Table, view: View) -> list[Text]:
    """The rows of a table below one another: the first cell, then the others with their names."""
    lines: list[Text] = []
    for row in table.rows:
        lines.extend(_indented(part, 1) for part in _wrapped(_text(row[0], view), view.width - 1))
        cells = [
            (Span(f"{name} ", "dim"), *cell)
            for name, cell in zip(table.header[1:], row[1:], strict=True)
            if "".join(span.text for span in cell) not in ("", "-")
        ]
        body = tuple(span for cell in cells for span in (Span("; "), *cell))[1:]
        lines.extend(_indented(part, 3) for part in _wrapped(_text(body, view), view.width - 3))
    return lines


def _wrapped(text: Text, width: int) -> list[Text]:
    lines = list(text.divide(breaks(text.plain, max(1, width))))
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(GLUE, " ").rstrip()
    return lines


def _indented(text: Text, columns: int) -> Text:
    return Text(" " * columns) + text


def _text(spans: Words, view: View) -> Text:
    text = Text()
    for span in spans:
        safe = _safe(span.text, view)
        keep = span.whole or span.tone == "command"
        text.append(safe.replace(" ", GLUE) if keep else safe, style=_STYLES[span.tone])
    return text


def _safe(text: str, view: View) -> str:
    safe = printable(text)
    if view.ascii_only:
        return safe.translate(_ASCII).encode("ascii", "backslashreplace").decode()
    return safe


def _to_text(lines: Iterable[Text], view: View) -> str:
    """Return the lines as a string, with ANSI colours only where the reader can take them."""
    if not view.color:
        return "".join(line.plain.rstrip() + "\n" for line in lines)
    out = io.StringIO()
    console = Console(
        file=out,
        width=view.width,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for line in lines:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    return out.getvalue()
