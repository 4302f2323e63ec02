"""The command line of tests/cli, for corpora."""

from tests.cli.conftest import command, folder

__all__ = ["command", "folder"]
