"""Wrong use: two lines on standard error, exit 2, nothing on standard output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stabdiag import __version__
from stabdiag.cli.app import COMMANDS
from tests.command_line import Command

HEAVY = ("numpy", "pandas", "pyarrow")


def test_version(command: Command) -> None:
    assert command("--version").out == f"stabdiag {__version__}\n"


def test_help_of_everything_imports_nothing_heavy() -> None:
    lines = "; ".join(f"main(['{name}', '--help'])" for name in COMMANDS)
    code = (
        "import sys; from stabdiag.cli.main import main; "
        f"main(['--help']); main(['--version']); {lines}; "
        f"sys.exit(','.join(set({HEAVY!r}) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: stabdiag ") == 1 + len(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_says_what_it_does_in_a_line(command: Command, name: str) -> None:
    page = command("--help").out
    line = next(line for line in page.splitlines() if line.startswith(f"  {name} "))
    assert len(line) <= 79
    assert not line.endswith("...")


@pytest.mark.parametrize(
    ("arguments", "what", "todo"),
    [
        ([], "Missing command", "`stabdiag --help`"),
        (["analyse", "x.csv"], "No such command 'analyse'", "`stabdiag --help`"),
        (["analyze", "--frobnicate"], "No such option: --frobnicate", "`stabdiag analyze --help`"),
        (["analyze", "x", "--window", "ten"], "'--window'", "`stabdiag analyze --help`"),
        (["analyze", "x", "--window", "3"], "--window is 3", "--window 100"),
        (["analyze", "x", "--spike-threshold", "0"], "--spike-threshold is 0", "above 0"),
        (["analyze", "x", "--spike-threshold", "-1"], "--spike-threshold is -1", "above 0"),
        (["analyze", "x", "--spike-threshold", "nan"], "--spike-threshold is nan", "finite"),
        (["analyze", "x", "--spike-threshold", "inf"], "--spike-threshold is inf", "finite"),
        (["analyze", "x", "--map", "loss"], "--map is 'loss'", "--map loss=train/loss"),
        (["analyze", "x", "--map", "=a"], "--map is '=a'", "--map loss=train/loss"),
        (["analyze", "x", "--map", "loss=a", "--map", "loss=b"], "two columns for 'loss'", "one"),
        (["analyze", "x", "--steps", "7"], "--steps is '7'", "--steps 100:500"),
        (["analyze", "x", "--steps", ":"], "--steps is ':'", "--steps 100:500"),
        (["analyze", "x", "--steps", "a:b"], "--steps is 'a:b'", "--steps 100:500"),
        (["analyze", "x", "--steps", "9:3"], "ends before it begins", "--steps 3:9"),
        (["analyze", "x", "--format", "jsno"], "--format is 'jsno'", "`--format json`"),
        (["timeline", "x", "--format", "junit"], "--format is 'junit'", "--format"),
        (["analyze", "x", "--fail-on", "erorr"], "--fail-on is 'erorr'", "`--fail-on error`"),
        (["analyze", "x", "--config", "no.toml"], "no.toml", "--config"),
        (["analyze", "x", "--output", "x"], "--output x is the log itself", "another file"),
        (["explain", "SD999"], "no rule or cause 'SD999'", "nearest are SD"),
        (["explain", "optimiser"], "no rule or cause 'optimiser'", "optimizer"),
    ],
)
def test_wrong_use(command: Command, arguments: list[str], what: str, todo: str) -> None:
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    first, second = done.remarks
    assert first.startswith("stabdiag: error: ")
    assert what in first
    assert second.startswith("  ")
    assert todo in second


def test_a_log_without_a_command_is_pointed_to_analyze(command: Command, folder: Path) -> None:
    (folder / "run.csv").write_text("step,loss\n", encoding="utf-8")
    done = command("run.csv")
    assert done.code == 2
    assert done.remarks[1] == "  To analyse it: `stabdiag analyze run.csv`."


def test_a_hostile_name_is_shown_not_obeyed(command: Command) -> None:
    done = command("analyze", "no\x1b[2J\nsuch.csv")
    assert done.code == 2
    assert len(done.remarks) == 2
    assert "\x1b" not in done.err
    assert r"no\x1b[2J\nsuch.csv" in done.err


@pytest.mark.parametrize("name", ["compare", "seeds", "batch", "columns"])
def test_a_format_that_a_command_does_not_write_is_refused(command: Command, name: str) -> None:
    samples = Path(__file__).resolve().parents[2] / "sample_logs"
    logs = [samples / "seed_1.csv", samples / "seed_3.csv"][
        : 2 if name in ("compare", "seeds") else 1
    ]
    done = command(name, *logs, "--format", "html")
    assert (done.code, done.out) == (2, "")
    assert "none of text, json" in done.err
    assert "html" not in command(name, "--help").out
