"""The sign of life: in a terminal alone, for long work alone, and gone at the end."""

from __future__ import annotations

import io
import sys
import time

import pytest

from stabdiag.cli import progress
from stabdiag.cli.progress import at_work


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False, seconds: float = 0.3) -> str:
    """What stands on a terminal's standard error after so long a work."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.05)
    with at_work("reading [red]run.csv", quiet=quiet) as say:
        time.sleep(seconds)
        say("judging 5 rows")
        time.sleep(seconds)
    return stream.getvalue()


def test_long_work_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch)
    assert "reading [red]run.csv" in text
    assert "judging 5 rows" in text


def test_short_or_quiet_work_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, quiet=True) == ""
    assert "reading" not in shown(monkeypatch, seconds=0.0)


def test_what_is_no_terminal_gets_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with at_work("reading", quiet=False) as say:
        say("judging")
    assert capsys.readouterr().err == ""


def test_an_error_comes_through_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ValueError, match="broken"), at_work("reading", quiet=False):
        raise ValueError("broken")
