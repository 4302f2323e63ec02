"""An HTML page taken apart: its text, its tables, its data, and what it would load."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
SVG_VOID = {"line", "path", "rect", "polyline"}
_NO_MARKUP = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
LOADS = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")


@dataclass
class Page:
    """What a browser would see, without running a script."""

    text: str = ""
    rows: list[list[str]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    loads: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    styles: str = ""
    ids: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[str] = []
        self.script = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.tags.append(tag)
        self.page.loads += [given[name] for name in LOADS if name in given and name != "data"]
        self.page.handlers += [name for name in given if name.startswith("on")]
        if "id" in given:
            self.page.ids.append(given["id"])
        if tag == "tr":
            self.page.rows.append([])
        if tag in ("td", "th"):
            self.page.rows[-1].append("")
        if tag == "script" and given.get("type") == "application/json":
            self.script = given["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_VOID | VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> is out of order"
        self.script = "" if tag == "script" else self.script

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if self.script:
            self.page.data[self.script] = json.loads(data)
        elif inside == "style":
            self.page.styles += data
        elif inside != "script":
            self.page.text += data
            if self.page.rows and {"td", "th"} & set(self.open):
                self.page.rows[-1][-1] += data


def read(page: str) -> Page:
    """Parse a page, or part of one; an element that is not closed in order is an error."""
    stray = re.findall(r"<(?![a-zA-Z/!]).{0,30}", _NO_MARKUP.sub("", page))
    assert not stray, f"not escaped: {stray}"
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open, f"never closed: {reader.open}"
    return reader.page
