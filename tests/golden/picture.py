"""The picture of the README: what `stabdiag analyze` shows of a sample log, drawn by rich."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path

from rich.console import Console
from rich.text import Text

import stabdiag
from stabdiag.reporters import View, render

ROOT = Path(__file__).resolve().parents[2]
LOG = "sample_logs/nan_in_one_layer.csv"
_END = "Close up"  # the picture ends above this line
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def shown(*, color: bool) -> list[str]:
    """Return the command and what it prints at 80 columns, down to the chart of the run."""
    with chdir(ROOT):
        report = stabdiag.analyze(LOG)
    lines = render(report, "text", View(width=80, color=color)).splitlines()
    end = next(place for place, line in enumerate(lines) if _END in line)
    return [f"$ stabdiag analyze {LOG}", *lines[: end - 1]]


def picture() -> str:
    """Return the picture in SVG; it loads nothing, its letters are the reader's own."""
    console = Console(record=True, width=81, file=io.StringIO(), legacy_windows=False)
    for line in shown(color=True):
        console.print(Text.from_ansi(line), no_wrap=True, crop=False)
    drawn = console.export_svg(title="stabdiag", unique_id="stabdiag", font_aspect_ratio=0.6)
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    lines = drawn.replace("Fira Code, monospace", _FONT).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"


class _Letters(HTMLParser):
    """The texts of a picture by the height that they stand at."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: dict[float, str] = {}
        self.at: float | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "text" and "clip-path" in given:
            self.at = float(given["y"] or 0)

    def handle_endtag(self, tag: str) -> None:
        self.at = None

    def handle_data(self, data: str) -> None:
        if self.at is not None:
            self.lines[self.at] = self.lines.get(self.at, "") + data


def words_of(drawn: str) -> list[str]:
    """Return the lines that a picture shows, without their spaces."""
    letters = _Letters()
    letters.feed(drawn)
    return without_spaces([line for _, line in sorted(letters.lines.items())])


def without_spaces(lines: Sequence[str]) -> list[str]:
    """Return the lines that are not blank, their words run together."""
    return [short for line in lines if (short := "".join(line.split()))]
