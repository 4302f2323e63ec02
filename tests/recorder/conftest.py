"""What these tests share; without PyTorch they are skipped, and the summary says so."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WHY = "PyTorch is not installed (pip install 'stabdiag[recorder]')"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if importlib.util.find_spec("torch") is None:
        terminalreporter.write_line(f"tests/recorder: skipped, {WHY}")


@pytest.fixture
def rows_of() -> Callable[[Path], list[dict[str, Any]]]:
    return strict_rows


def strict_rows(path: Path) -> list[dict[str, Any]]:
    """Read a log as a strict JSON parser would: no bare NaN, every line whole."""

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]
