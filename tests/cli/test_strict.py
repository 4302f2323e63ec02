"""--strict: a log that was not read as it stands is refused, and its place is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.small_logs import write_csv, write_jsonl
from tests.command_line import Command

READING = ("analyze", "timeline", "numerics", "layers", "audit", "columns")


def damaged(path: Path) -> Path:
    """A log with two lines that are no records, 101 and 201."""
    lines = write_jsonl(path, jump=False).read_text(encoding="utf-8").splitlines()
    lines[100] = lines[200] = "{'loss': "
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", READING)
def test_a_damaged_log_is_refused(command: Command, folder: Path, name: str) -> None:
    log = damaged(folder / "run.jsonl")
    assert command(name, log.name).code == 0
    done = command(name, log.name, "--strict")
    assert (done.code, done.out) == (2, "")
    first, second = done.remarks
    assert first.startswith("stabdiag: error: run.jsonl, lines 101, 201: dropped: ")
    assert second.startswith("  Correct the log, or leave out --strict")


@pytest.mark.parametrize("name", READING)
def test_a_log_that_is_as_it_stands_passes(command: Command, folder: Path, name: str) -> None:
    log = write_csv(folder / "run.csv", jump=False)
    done = command(name, log.name, "--strict")
    assert done.code == 0
    assert done.out == command(name, log.name).out


def test_no_report_is_written_for_a_refused_log(command: Command, folder: Path) -> None:
    log = damaged(folder / "run.jsonl")
    done = command("analyze", log.name, "--strict", "--output", "report.txt")
    assert done.code == 2
    assert not (folder / "report.txt").exists()


def test_what_the_run_inferred_counts_too(command: Command, folder: Path) -> None:
    """A loss that falls silent was read as NaN: the file is sound, the reading a guess."""
    log = write_csv(folder / "run.csv", jump=False)
    lines = log.read_text(encoding="utf-8").splitlines()
    for index in range(350, 401):
        step, _, _, lr = lines[index].split(",")
        lines[index] = f"{step},,,{lr}"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = command("analyze", log.name, "--strict")
    assert (done.code, done.out) == (2, "")
    assert ": guessed: " in done.remarks[0]
    assert "read as NaN" in done.remarks[0]


def test_how_a_run_ended_is_no_defect(command: Command, folder: Path) -> None:
    lines = [f"iter {i}: loss {4 - i / 100:.4f}, time 12.00ms, mfu 20.00%" for i in range(200)]
    end = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    (folder / "run.log").write_text("\n".join([*lines, end]) + "\n", encoding="utf-8")
    done = command("columns", "run.log", "--strict")
    assert (done.code, done.err) == (0, "")
    assert "ending" in done.out
