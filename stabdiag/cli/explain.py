"""`stabdiag explain`: a rule or a cause in full."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabdiag.cli.options import TextOptions, completed_by

_FORMATS = ("text", "markdown")


def _topics(incomplete: str) -> list[str]:
    """What can be explained and begins so: rules by their ids and names, causes."""
    from stabdiag.cli.explain_pages import topics

    return [topic for topic in topics() if topic.startswith(incomplete)]


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="RULE|CAUSE", hidden=True, autocompletion=_topics),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Every rule and cause in full, as a book of reference.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"{', '.join(_FORMATS)}.  [default: text]",
            autocompletion=completed_by(_FORMATS),
        ),
    ] = None,
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
    from stabdiag.cli.explain_pages import all_pages, page_of, topics_page
    from stabdiag.cli.output import deliver, view_for
    from stabdiag.cli.settled import one_of
    from stabdiag.config import load_config
    from stabdiag.errors import UsageError
    from stabdiag.reporters.layout import laid_out
    from stabdiag.reporters.markdown_report import as_markdown

    if everything and topic is not None:
        raise UsageError(f"--all and {topic!r} both", "Give one of them.")
    configured = load_config(config, Path.cwd())
    one = page_of(topic, configured) if topic is not None else topics_page()
    pages = all_pages(configured) if everything else (one,)
    if one_of("--format", form or "text", list(_FORMATS)) == "markdown":
        titled = (as_markdown(page).replace("\n## ", "\n### ") for page in pages)
        deliver("\n".join(titled), output.output)
        return
    view = view_for(
        color=configured.color and not output.no_color, to_file=output.output is not None
    )
    deliver("\n".join(laid_out(page, view) for page in pages), output.output)
