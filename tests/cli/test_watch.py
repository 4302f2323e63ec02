"""`stabdiag watch`: the verdict of `analyze` at each look at a log that grows."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stabdiag.cli import watching
from tests.command_line import Command

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
TOOL = Path(sys.executable).with_name("stabdiag")
Writer = Callable[[Iterator[object]], None]


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    """A training loop: it takes a step of the iterator whenever `watch` sleeps, in no time."""
    clock = [0.0]

    def start(steps: Iterator[object]) -> None:
        def sleep(seconds: float) -> None:
            clock[0] += seconds
            next(steps, None)

        monkeypatch.setattr(watching.time, "sleep", sleep)
        monkeypatch.setattr(watching.time, "monotonic", lambda: clock[0])

    return start


def written(path: Path, data: bytes, parts: int) -> Iterator[object]:
    """Append data to a file, a part a step; the cuts are anywhere in a line."""
    for i in range(parts):
        with path.open("ab") as file:
            yield file.write(data[len(data) * i // parts : len(data) * (i + 1) // parts])


@pytest.mark.parametrize("parts", [1, 2, 7, 23])
@pytest.mark.parametrize("name", ["lr_too_high.jsonl", "nan_in_one_layer.csv", "healthy.csv"])
def test_the_last_verdict_is_that_of_the_whole_log(
    command: Command, writer: Writer, folder: Path, name: str, parts: int
) -> None:
    data = (SAMPLES / name).read_bytes()
    writer(written(folder / name, data, parts))
    done = command("watch", name, "--idle", "25", "--format", "json")
    whole = json.loads(command("analyze", name, "--format", "json").out)
    last = json.loads(done.out.splitlines()[-1])
    assert done.code == 0
    assert last["verdict"]["health"] == whole["verdict"]["health"]
    assert last["verdict"]["cause"] == whole["verdict"]["cause"]
    assert last["verdict"]["onset_step"] == whole["verdict"]["onset_step"]
    if parts == 1:
        assert last == whole


def test_a_line_for_each_change(command: Command, writer: Writer, folder: Path) -> None:
    data = (SAMPLES / "lr_too_high.jsonl").read_bytes()
    writer(written(folder / "run.jsonl", data, 12))
    lines = command("watch", "run.jsonl", "--idle", "25").out.splitlines()
    assert lines[0].startswith("step ")
    assert ": HEALTHY: " in lines[0]
    assert any(": DIVERGED: " in line for line in lines)
    assert any(": + SD101 error at step " in line for line in lines)
    assert len(lines) == len(set(lines)) < 20


def test_until_change_ends_at_the_first_error(
    command: Command, writer: Writer, folder: Path
) -> None:
    steps = written(folder / "run.csv", (SAMPLES / "nan_in_one_layer.csv").read_bytes(), 40)
    writer(steps)
    done = command("watch", "run.csv", "--until-change")
    assert done.code == 1
    assert "SD30" in done.out
    assert next(steps, None) is not None  # it did not wait for the end
    warned = written(folder / "b.csv", (SAMPLES / "one_layer_dominates.csv").read_bytes(), 9)
    writer(warned)
    assert command("watch", "b.csv", "--until-change", "--fail-on", "warning").code == 1


def test_what_is_not_there_yet_is_waited_for(
    command: Command, writer: Writer, folder: Path
) -> None:
    def steps() -> Iterator[object]:
        yield from range(3)
        yield (folder / "run.csv").write_text("step,loss\n", encoding="utf-8")
        yield (folder / "run.csv").write_bytes((SAMPLES / "healthy.csv").read_bytes())

    writer(steps())
    done = command("watch", "run.csv", "--for", "100")
    assert done.code == 0
    assert done.remarks[0] == "waiting: no such file yet"
    assert "no row" in done.remarks[1]
    assert "HEALTHY" in done.out
    assert command("watch", "run.csv", "--for", "100", "--quiet").err == ""


def test_a_log_written_anew_is_said(command: Command, writer: Writer, folder: Path) -> None:
    log = folder / "run.csv"
    log.write_bytes((SAMPLES / "healthy.csv").read_bytes())
    start = log.read_bytes()[:5000]
    writer(log.write_bytes(data) for data in [start])
    done = command("watch", "run.csv", "--for", "30")
    assert any("written anew" in line for line in done.remarks)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.csv", "--for", "20"], "no such file yet"),
        ([SAMPLES / "bad_batch.parquet"], "not written line by line"),
        (["-"], "one plain file"),
        (["."], "one plain file"),
        (["s3://bucket/run.csv"], "one plain file"),
        (["run.csv", "--interval", "0"], "--interval"),
        (["run.csv", "--idle", "nan"], "--idle"),
        (["run.csv", "--format", "html"], "--format"),
    ],
)
def test_what_can_not_be_watched_is_said(
    command: Command, writer: Writer, arguments: list[str | Path], words: str
) -> None:
    writer(iter(()))
    done = command("watch", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_ctrl_c_ends_it_with_the_exit_code_of_analyze(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", pressed)
    log = SAMPLES / "lr_too_high.jsonl"
    assert command("watch", log).code == 0
    assert command("watch", log, "--fail-on", "error").code == 1
    assert command("watch", log, "--require", "batch").code == 3


def test_a_terminal_shows_the_first_screen(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [TOOL, "watch", SAMPLES / "lr_too_high.jsonl", "--for", "0.1"],
        stdout=theirs,
        cwd=tmp_path,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "80"},
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "DIVERGED" in shown
    assert "Do this next" in shown


def test_ctrl_c_before_the_first_verdict_is_an_interruption(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", pressed)
    assert command("watch", "gone.csv").code == 130


@pytest.mark.parametrize("left", [b"", b"step,loss\n", b"garbage\n"])
def test_a_verdict_does_not_outlive_the_rows_it_rested_on(
    command: Command, writer: Writer, folder: Path, left: bytes
) -> None:
    log = folder / "run.csv"
    log.write_bytes((SAMPLES / "nan_in_one_layer.csv").read_bytes())
    writer(log.write_bytes(data) for data in [left])
    done = command("watch", "run.csv", "--for", "30", "--fail-on", "error")
    assert (done.code, "DIVERGED" in done.out) == (2, True)
    assert "waiting: " in done.err
    assert "no log to judge" in done.err


def test_a_column_that_comes_later_is_waited_for(
    command: Command, writer: Writer, folder: Path
) -> None:
    log = folder / "run.jsonl"
    log.write_text('{"step":0,"x":1}\n', encoding="utf-8")
    rows = "".join(f'{{"step":{i},"foo":{3 - i / 100}}}\n' for i in range(1, 100))
    writer(written(log, rows.encode(), 2))
    done = command("watch", "run.jsonl", "--map", "loss=foo", "--for", "30")
    assert done.code == 0
    assert "foo" in done.remarks[0]
    assert "HEALTHY" in done.out


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_last_line_is_the_verdict_as_it_stands(
    command: Command, writer: Writer, folder: Path, form: str
) -> None:
    data = (SAMPLES / "nan_in_one_layer.csv").read_bytes()
    lines = data.splitlines(keepends=True)
    whole = json.loads(command("analyze", SAMPLES / "nan_in_one_layer.csv", "--format", "json").out)
    for rows in (278, 283, 290):
        (folder / "run.csv").write_bytes(b"".join(lines[:rows]))
        writer((folder / "run.csv").write_bytes(data) for _ in range(1))
        done = command("watch", "run.csv", "--for", "30", "--format", form)
        said = [line for line in done.out.splitlines() if re.match(r"step \d+: [A-Z]+: |\{", line)]
        assert whole["verdict"]["summary"] in said[-1]


def test_trouble_for_a_while_is_waited_out(command: Command, writer: Writer, folder: Path) -> None:
    log, data = folder / "run.csv", (SAMPLES / "healthy.csv").read_bytes()
    log.write_bytes(data[:9000])

    def steps() -> Iterator[object]:
        log.unlink()
        yield log.mkdir()
        log.rmdir()
        yield log.write_bytes(data)

    writer(steps())
    done = command("watch", "run.csv", "--for", "40")
    assert done.code == 0
    assert any("not a plain file" in line for line in done.remarks)
    assert "HEALTHY" in done.out.splitlines()[-1]


def test_it_ends_when_nobody_reads_on(tmp_path: Path) -> None:
    with subprocess.Popen(
        [TOOL, "watch", SAMPLES / "nan_in_one_layer.csv", "--interval", "0.1"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    ) as watcher:
        assert watcher.stdout is not None
        assert b"DIVERGED" in watcher.stdout.readline()
        watcher.stdout.close()
        assert watcher.wait(timeout=30) == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_log_in_a_closed_folder_is_said(command: Command, folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    (closed / "run.csv").write_text("step,loss\n", encoding="utf-8")
    closed.chmod(0)
    done = command("watch", "closed/run.csv", "--for", "1")
    closed.chmod(0o755)
    assert (done.code, "Permission denied" in done.err) == (2, True)
