"""The blocks of a page as HTML: the same words as in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    Words,
)
from stabdiag.reporters.html.document import table, text


def as_html(blocks: Iterable[Block]) -> list[str]:
    """Return `blocks` as elements; what follows a heading is a section of its own."""
    lines: list[str] = []
    inside = False
    for block in blocks:
        if isinstance(block, Heading):
            lines += ["</section>"] * inside
            name = "-".join(block.title.lower().split())
            lines.append(f'<section id="{text(name)}" aria-labelledby="{text(name)}-title">')
            lines.append(f'<h2 id="{text(name)}-title">{text(block.title)}</h2>')
            inside = True
        else:
            lines.append(_block(block))
    return [*lines, *(["</section>"] * inside)]


def inline(spans: Words) -> str:
    """Return spans as inline HTML; the tone is a class, and never the only sign."""
    return "".join(map(_span, spans))


def _block(block: Block) -> str:
    match block:
        case Heading():
            raise AssertionError("a heading opens a section")
        case Paragraph(spans):
            return f"<p>{inline(spans)}</p>"
        case Labelled(rows):
            return _labelled(rows)
        case Items(rows):
            return "<ol>" + "".join(f"<li>{inline(row)}</li>" for row in rows) + "</ol>"
        case Table():
            cells = [[inline(cell) for cell in row] for row in block.rows]
            return table(block.header, cells, right=block.right)
        case Drawing(lines):
            drawn = "\n".join(map(text, lines))
            return f"<pre>{drawn}</pre>" if lines else ""
        case Blank():
            return ""


def _labelled(rows: Sequence[tuple[Words, Words]]) -> str:
    """A description list; what has no label of its own belongs to the term above."""
    lines = ["<dl>"]
    for place, (label, body) in enumerate(rows):
        name = inline(label).strip()
        if name or place == 0:
            lines.append(f"<dt>{name}</dt>")
        lines.append(f"<dd>{inline(body)}</dd>")
    return "\n".join([*lines, "</dl>"])


def _span(span: Span) -> str:
    if span.tone == "command":
        return f"<code>{text(span.text.strip('`'))}</code>"
    words = text(span.text)
    return words if span.tone == "plain" else f'<span class="{span.tone}">{words}</span>'
