"""The commands, registered; their modules import nothing heavy until they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from stabdiag import __version__
from stabdiag.cli.analyze import analyze
from stabdiag.cli.audit import audit
from stabdiag.cli.batch import batch
from stabdiag.cli.columns import columns
from stabdiag.cli.compare import compare
from stabdiag.cli.explain import explain
from stabdiag.cli.fleet import fleet
from stabdiag.cli.gate import gate
from stabdiag.cli.layers import layers
from stabdiag.cli.numerics import numerics
from stabdiag.cli.options import spread
from stabdiag.cli.seeds import seeds
from stabdiag.cli.timeline import timeline

COMMANDS: Mapping[str, Callable[..., None]] = {
    "analyze": analyze,
    "timeline": timeline,
    "batch": batch,
    "numerics": numerics,
    "layers": layers,
    "seeds": seeds,
    "audit": audit,
    "compare": compare,
    "gate": gate,
    "fleet": fleet,
    "columns": columns,
    "explain": explain,
}

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # plain help: the same in a terminal, a pipe and the README
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"stabdiag {__version__}")
        raise typer.Exit


@app.callback()
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


for _name, _command in COMMANDS.items():
    app.command(_name)(spread(_command))
