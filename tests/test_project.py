"""The project's own promises: small modules, a light --help, set-up that works, docs that run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import stabdiag
from stabdiag.cli.app import app_of

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "stabdiag").rglob("*.py"))
MOST_LINES = 400
HEAVY = {"numpy", "pandas", "pyarrow"}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_no_module_is_long(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not drawers & {path.stem for path in MODULES}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    command = [sys.executable, "-X", "importtime", "-c", "from stabdiag.cli.main import run; run()"]
    done = subprocess.run([*command, option], capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "stabdiag.cli.main" in imported  # the list is that of the imports
    assert not HEAVY & {name.partition(".")[0] for name in imported}


def test_importing_the_package_is_light() -> None:
    code = "import sys, stabdiag; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert versions[0] == "Unreleased" or versions[0] == stabdiag.__version__


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE))


def test_make_help_lists_every_target() -> None:
    named = {
        "help",
        "demo",
        "test",
        "lint",
        "accuracy",
        "bench",
        "samples",
        "golden",
        "recorder",
    } | {"fuzz"}
    assert make_targets() == named


def readme_commands() -> list[str]:
    """Return the shell lines of the README's code blocks that run the tool or make."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    blocks = re.findall(r"^```(?:sh|bash|console|text)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ").strip() for block in blocks for line in block.splitlines()]
    return sorted({line for line in lines if re.match(r"(stabdiag|make)\s+[-a-z]", line)})


@pytest.mark.parametrize("line", readme_commands())
def test_every_command_of_the_readme_exists(line: str) -> None:
    program, name, *rest = shlex.split(line, comments=True)
    if program == "make":
        assert name in make_targets()
        return
    commands = typer.main.get_command(app_of())
    assert isinstance(commands, typer.core.TyperGroup)
    if name.startswith("-"):
        known, options = commands.params, [name]
    else:
        assert name in commands.commands
        known, options = commands.commands[name].params, rest
    flags = {flag for parameter in known for flag in parameter.opts} | {"--help"}
    used = {word.partition("=")[0] for word in options if word.startswith("--")}
    assert used <= flags


def test_continuous_integration_runs_tests_and_lint() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    commands = script.read_text(encoding="utf-8").splitlines()
    run = [line for line in commands if "make " in line]
    assert run == ["make test", "make lint", "timeout --kill-after=60 40m make recorder"]


def test_setup_says_what_it_needs_where_no_python_is_new_enough(tmp_path: Path) -> None:
    """A `python3` that fails every question stands for one that is too old."""
    shims = tmp_path / "bin"
    shims.mkdir()
    for name in ("python", "python3", *(f"python3.{minor}" for minor in range(11, 15))):
        (shims / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (shims / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(ROOT / ".ci/setup"), "python3", ".venv", "key", "run"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{shims}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Python 3.11 or later" in done.stderr
    assert "make PYTHON=" in done.stderr
    assert not (tmp_path / ".venv").exists()
