"""The golden pages: which view of which report each file holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from stabdiag.findings import Report
from stabdiag.reporters import View, render, render_part
from stabdiag.reporters.batch_report import batch_json, batch_text
from tests.reporters.make_inspection import inspection
from tests.reporters.make_report import diverged_report, healthy_report, inconclusive_report

FOLDER = Path(__file__).parent


def _whole(make: Callable[[], Report], name: str, view: View) -> Callable[[], str]:
    return lambda: render(make(), name, view)


def _part(name: str, part: str, view: View) -> Callable[[], str]:
    return lambda: render_part(diverged_report(), name, part, view)


WIDE, NARROW = View(width=80), View(width=40)
GOLDENS: Mapping[str, Callable[[], str]] = {
    "diverged.txt": _whole(diverged_report, "text", WIDE),
    "diverged.40-columns.txt": _whole(diverged_report, "text", NARROW),
    "diverged.ascii.txt": _whole(diverged_report, "text", View(ascii_only=True)),
    "diverged.color.txt": _whole(diverged_report, "text", View(color=True)),
    "diverged.json": _whole(diverged_report, "json", WIDE),
    "diverged.md": _whole(diverged_report, "markdown", WIDE),
    "diverged.junit.xml": _whole(diverged_report, "junit", WIDE),
    "diverged.github.txt": _whole(diverged_report, "github", WIDE),
    "healthy.txt": _whole(healthy_report, "text", WIDE),
    "healthy.json": _whole(healthy_report, "json", WIDE),
    "inconclusive.txt": _whole(inconclusive_report, "text", WIDE),
    **{
        f"{part}.{'txt' if name == 'text' else name}": _part(name, part, WIDE)
        for part in ("timeline", "numerics", "layers", "audit")
        for name in ("text", "json")
    },
    "batch.txt": lambda: batch_text(inspection(), WIDE, shown=5),
    "batch.json": lambda: batch_json(inspection()),
    "timeline.40-columns.txt": _part("text", "timeline", NARROW),
    "timeline.ascii.txt": _part("text", "timeline", View(ascii_only=True)),
}
