"""Say clearly what is missing when PyTorch is not there."""

from __future__ import annotations

import importlib.util
import sys


def require_torch() -> None:
    """Stop with exit code 2 and one line of advice where torch cannot be imported."""
    if importlib.util.find_spec("torch") is None:
        sys.stderr.write(
            "error: recording runs needs PyTorch 2.13.0, which is not installed\n"
            "hint: pip install '.[samples]'\n"
        )
        raise SystemExit(2)
