"""Options of the test run, and the fixtures of all tests: a command line in a folder of its own."""

from __future__ import annotations

import pytest

from tests.command_line import command, folder

__all__ = ["command", "folder"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden", action="store_true", help="write the golden pages again; read the diff as code"
    )


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--golden"))
