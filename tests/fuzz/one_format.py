"""The fuzzer's own process: libFuzzer's arguments in, one input after another to the readers."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["stabdiag.readers"]):
    from tests.fuzz.survives import survives


def main() -> None:
    """Run until the time is over or an input does what none may."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")

        def one_input(data: bytes) -> None:
            log.write_bytes(data)
            with contextlib.redirect_stderr(None):
                survives(log)

        atheris.Setup(sys.argv, one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
