"""A terminal's screen that keeps showing the last report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from stabdiag.findings import Report
from stabdiag.reporters.first_screen import first_screen
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.view import View


class Screen:
    """Shows the first screen in place; the last one stays when it is left."""

    def __init__(self, view: Callable[[], View]) -> None:
        """Ask `view` at each report how wide the terminal is by now."""
        self._view = view
        self._live = Live(
            console=Console(file=sys.stdout, highlight=False, markup=False),
            auto_refresh=False,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._live.stop()

    def __call__(self, before: Report | None, now: Report) -> None:
        """Show a report; each is shown, for the rows that it rests on are news too."""
        page = laid_out(first_screen(now), self._view())
        self._live.update(Text.from_ansi(page), refresh=True)

    def end(self, now: Report) -> None:
        """The last report stands there."""
