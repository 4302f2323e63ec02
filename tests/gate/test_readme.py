"""The worked examples of the README: what their jobs run works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.command_line import Command

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line.strip() for block in blocks("yaml") for line in block.splitlines()]
    found = [re.sub(r"^- (run: )?", "", line) for line in lines]
    return [line for line in found if line.startswith("stabdiag ")]


def test_both_examples_have_commands() -> None:
    assert len(blocks("yaml")) == 2
    assert len(commands()) == 4


@pytest.mark.parametrize("line", commands())
def test_the_command_of_a_job_passes(command: Command, folder: Path, line: str) -> None:
    (folder / "stabdiag.toml").write_text(blocks("toml")[0], encoding="utf-8")
    (folder / "sample_logs").symlink_to(ROOT / "sample_logs")
    words = shlex.split(line.replace("$GITHUB_STEP_SUMMARY", "summary.md"))
    done = command(*words[1:])
    assert done.code == 0, (done.out, done.err)
