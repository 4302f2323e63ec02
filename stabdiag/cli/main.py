"""The way in: runs a command and turns whatever happens into an exit code, never a traceback."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from stabdiag import __version__
from stabdiag.cli.exits import FAULT, INTERRUPTED, NOT_ANALYSED, OK
from stabdiag.errors import StabdiagError

# Objects made before the next look for cycles among them; at Python's 700 the looks take a tenth
# of a short process, and find hardly any.
GARBAGE_AT = 50_000


def run() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(GARBAGE_AT)
    # typer parses with pydantic, which otherwise looks for plug-ins in every package installed
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code (see DESIGN: 0, 1, 2, 3, 4)."""
    if list(arguments) == ["--version"]:
        print(f"stabdiag {__version__}")
        return OK
    try:
        return _command(arguments)
    except StabdiagError as err:
        _complain(err.what, err.todo)
        return NOT_ANALYSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as err:
        return _fault(err, arguments)


def _command(arguments: Sequence[str]) -> int:
    """Let typer parse and run; its usage errors read like the tool's own."""
    import typer

    from stabdiag.cli.app import app_for

    # click's own class, wherever this typer keeps it
    usage_error = cast("type[Exception]", typer.BadParameter.__bases__[0])
    try:
        code = app_for(arguments)(args=list(arguments), prog_name="stabdiag", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except usage_error as err:
        _complain(_message(err), _usage_todo(arguments))
        return NOT_ANALYSED
    return code if isinstance(code, int) else OK


def _message(err: BaseException) -> str:
    text = err.format_message() if hasattr(err, "format_message") else str(err)
    return str(text).rstrip(".").replace("\n", " ") or "no command given"


def _usage_todo(arguments: Sequence[str]) -> str:
    first = arguments[0] if arguments else ""
    if first and not first.startswith("-") and Path(first).is_file():
        return f"To analyse it: `stabdiag analyze {first}`."
    from stabdiag.cli.app import COMMANDS

    command = f"{first} " if first in COMMANDS else ""
    return f"`stabdiag {command}--help` shows how it is used."


def _complain(what: str, todo: str) -> None:
    """Say on standard error what is wrong and what to do, a line each."""
    from stabdiag.cli.output import remark

    remark(f"stabdiag: error: {what}")
    remark(f"  {todo}")


def _fault(err: Exception, arguments: Sequence[str]) -> int:
    from stabdiag.cli.output import remark

    if "--debug" in arguments:
        import traceback

        traceback.print_exception(err)
    kind = type(err).__name__
    remark(
        f"stabdiag: fault in the tool itself ({kind}: {err}); please report it, with the "
        "traceback that `--debug` shows."
    )
    return FAULT
