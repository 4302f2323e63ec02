"""The commands, registered; their modules import nothing heavy until they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Annotated

import typer

from stabdiag import __version__
from stabdiag.cli.options import spread

Command = Callable[..., None]

# Each is the function of its name in the module of its name beside this one.
COMMANDS = (
    "analyze",
    "timeline",
    "batch",
    "numerics",
    "layers",
    "seeds",
    "audit",
    "compare",
    "gate",
    "watch",
    "fleet",
    "columns",
    "explain",
    "demo",
)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The app that these arguments need.

    Typer looks at every option of every command that it is given, at each start: so the command
    named stands alone, and where all are listed they come without their options.
    """
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return app_of([first])
    return app_of(COMMANDS, _titled if first in ("--help", "-h") else spread)


def app_of(
    names: Iterable[str] = COMMANDS, made: Callable[[Command], Command] = spread
) -> typer.Typer:
    """The app with these commands, each made of its function."""
    app = typer.Typer(
        add_completion=True,
        rich_markup_mode=None,  # plain help: the same in a terminal, a pipe and the README
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(stabdiag)
    for name in names:
        app.command(name)(made(getattr(import_module(f"stabdiag.cli.{name}"), name)))
    return app


def _titled(command: Command) -> Command:
    """What a list of commands needs of one: its title."""

    def titled() -> None: ...

    titled.__doc__ = command.__doc__
    return titled


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"stabdiag {__version__}")
        raise typer.Exit


def stabdiag(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Post-mortem of a training run from its metric log, offline.

    What went wrong, when, where in the model, why, how sure that is, and what to do next.

    LOG is a metric log; several are shards of one run; - is standard input. It may be left out
    where one is evident: STABDIAG_LOG, the configuration, the last one, the one in this folder.

    Exit codes: 0 analysed; 1 something at or above --fail-on; 2 not analysed; 3 what --require
    names could not be checked; 4 a fault of the tool.
    """
