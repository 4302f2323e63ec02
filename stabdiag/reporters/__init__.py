"""The registry of report formats: a name, and the module whose `render(report, view)` makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from stabdiag.findings import Report
from stabdiag.reporters.view import PARTS, View

# Modules, not functions: a format is imported when it is asked for.
FORMATS: Mapping[str, str] = {
    "text": "stabdiag.reporters.text_report",
    "json": "stabdiag.reporters.json_report",
    "markdown": "stabdiag.reporters.markdown_report",
    "html": "stabdiag.reporters.html_report",
    "junit": "stabdiag.reporters.junit_report",
    "github": "stabdiag.reporters.github_report",
}
PART_FORMATS = ("text", "json", "html")
PAGE_FORMATS = ("text", "json")  # of a command with a page of its own

__all__ = ["FORMATS", "PAGE_FORMATS", "PARTS", "PART_FORMATS", "View", "render", "render_part"]


def render(report: Report, name: str, view: View) -> str:
    """Return the whole `report` in the format called `name`."""
    make = cast("Callable[[Report, View], str]", import_module(FORMATS[name]).render)
    return make(report, view)


def render_part(report: Report, name: str, part: str, view: View) -> str:
    """Return the part of `report` that one command prints, in one of `PART_FORMATS`."""
    make = cast("Callable[[Report, str, View], str]", import_module(FORMATS[name]).render_part)
    return make(report, part, view)
