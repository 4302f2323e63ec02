"""`stabdiag explain`: a rule or a cause in full."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import TextOptions


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="RULE|CAUSE", hidden=True),
    ] = None,
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration instead of the nearest one."),
    ] = None,
    output: TextOptions,
) -> None:
    """A rule or a cause in full; alone, the list.

    A rule goes by its id or name. What it means, how it is decided with the thresholds in force,
    what to do, where it is from.
    """
    from stabdiag.cli.explain_pages import page_of, topics_page
    from stabdiag.cli.output import deliver, view_for
    from stabdiag.config import load_config
    from stabdiag.reporters.layout import laid_out

    configured = load_config(config, Path.cwd())
    blocks = topics_page() if topic is None else page_of(topic, configured)
    view = view_for(
        color=configured.color and not output.no_color, to_file=output.output is not None
    )
    deliver(laid_out(blocks, view), output.output)
