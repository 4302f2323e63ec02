"""`explain --all`: the same records as one page, as text or Markdown; what a shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stabdiag.causes.catalogue import CAUSE_PAGES
from stabdiag.cli.app import COMMANDS
from stabdiag.reporters import FORMATS
from stabdiag.rules import CATALOGUE
from tests.command_line import Command

TOOL = Path(sys.executable).with_name("stabdiag")


def test_all_has_each_page(command: Command, folder: Path) -> None:
    page = command("explain", "--all").out
    for topic in (*(rule.id for rule in CATALOGUE), *(cause.cause for cause in CAUSE_PAGES)):
        assert command("explain", topic).out in page
    assert max(map(len, page.splitlines())) <= 80


def test_all_as_markdown_has_a_section_a_topic(command: Command, folder: Path) -> None:
    lines = command("explain", "--all", "--format", "markdown").out.splitlines()
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    wanted = [f"{rule.id} {rule.name}" for rule in CATALOGUE]
    assert titles == [*wanted, *(page.cause.replace("_", "\\_") for page in CAUSE_PAGES)]


def test_every_rule_says_all_that_is_asked_of_it() -> None:
    for rule in CATALOGUE:
        assert rule.what
        assert rule.why_bad
        assert rule.advice
        assert rule.example
        assert rule.sources or rule.id in ("SD704", "SD705")  # what the log itself says


def test_all_and_a_topic_are_too_much(command: Command, folder: Path) -> None:
    done = command("explain", "SD101", "--all")
    assert (done.code, len(done.remarks)) == (2, 2)
    assert command("explain", "--all", "--format", "html").code == 2


def completed(line: str) -> set[str]:
    """What bash completes where `line` ends."""
    asked = os.environ | {
        "_STABDIAG_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = subprocess.run([TOOL], env=asked, capture_output=True, text=True, check=False)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("stabdiag ", set(COMMANDS)),
        ("stabdiag ana", {"analyze"}),
        ("stabdiag analyze --spike", {"--spike-threshold"}),
        ("stabdiag analyze --format ", set(FORMATS)),
        ("stabdiag gate --fail-on e", {"error"}),
        ("stabdiag explain SD10", {rule.id for rule in CATALOGUE if rule.id.startswith("SD10")}),
        ("stabdiag explain optim", {"optimizer"}),
    ],
)
def test_what_a_shell_completes(line: str, wanted: set[str]) -> None:
    assert completed(line) == wanted
