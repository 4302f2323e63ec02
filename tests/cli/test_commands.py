"""The commands on small logs: exit codes, formats, files, configuration, the log that is meant."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stabdiag.cli import reporting
from stabdiag.model import LogTable
from tests.cli.small_logs import STEPS, write_csv, write_jsonl
from tests.command_line import Command


@pytest.fixture
def upset(folder: Path) -> Path:
    return write_csv(folder / "upset.csv", jump=True)


@pytest.fixture
def quiet(folder: Path) -> Path:
    return write_jsonl(folder / "quiet.jsonl", jump=False)


def test_exit_0_a_report_on_standard_output_alone(command: Command, upset: Path) -> None:
    done = command("analyze", "upset.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("stabdiag ")
    assert "upset.csv" in done.out.splitlines()[0]
    assert "SD101" in done.out


def test_exit_0_where_nothing_reaches_the_limit(command: Command, quiet: Path) -> None:
    done = command("analyze", "quiet.jsonl", "--fail-on", "error")
    assert (done.code, done.err) == (0, "")


def test_exit_1_at_or_above_fail_on(command: Command, upset: Path) -> None:
    done = command("analyze", "upset.csv", "--fail-on", "warning")
    assert done.code == 1
    assert re.fullmatch(r"stabdiag: failed: \d+ at or above --fail-on, such as SD\d{3}\n", done.err)
    assert done.out


@pytest.mark.parametrize(
    ("content", "name"),
    [(None, "missing.csv"), ("", "empty.csv"), ("\x00\x01\x02", "binary.csv"), ("a,b\n", "h.csv")],
)
def test_exit_2_a_log_that_cannot_be_analysed(
    command: Command, folder: Path, content: str | None, name: str
) -> None:
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    done = command("analyze", name)
    assert (done.code, done.out) == (2, "")
    assert len(done.remarks) == 2
    assert done.remarks[0].startswith("stabdiag: error: ")
    assert name in done.err
    assert "Traceback" not in done.err


def test_exit_3_what_was_required_could_not_be_checked(command: Command, upset: Path) -> None:
    done = command("analyze", "upset.csv", "--require", "batch", "--require", "val_loss")
    assert done.code == 3
    first, second = done.remarks
    assert first.startswith("stabdiag: not checked: step 2, Examine the triggering batch")
    assert second.startswith("stabdiag: not checked: there is no series val_loss")
    assert command("analyze", "upset.csv", "--require", "1", "--require", "loss").code == 0


def test_exit_1_outranks_3(command: Command, upset: Path) -> None:
    done = command("analyze", "upset.csv", "--require", "2", "--fail-on", "info")
    assert done.code == 1
    assert "not checked" in done.err


def test_exit_4_a_fault_of_the_tool(
    command: Command, upset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: object) -> LogTable:
        raise ZeroDivisionError("a bug\nof two lines")

    monkeypatch.setattr(reporting, "analysed", broken)
    done = command("analyze", "upset.csv")
    assert (done.code, done.out) == (4, "")
    assert len(done.remarks) == 1
    assert "ZeroDivisionError: a bug" in done.err
    assert "please report it" in done.err
    assert "--debug" in done.err
    assert "Traceback" not in done.err
    debugged = command("analyze", "upset.csv", "--debug")
    assert debugged.code == 4
    assert "Traceback" in debugged.err


def test_interrupted(command: Command, upset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: object) -> LogTable:
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting, "analysed", interrupted)
    assert command("analyze", "upset.csv").code == 130


def script(*arguments: str | Path, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "stabdiag", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


def test_the_process_exits_as_the_command_says(upset: Path) -> None:
    assert script("analyze", "upset.csv", "--fail-on", "info").returncode == 1
    failed = script("analyze", "gone.csv")
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr


def test_a_reader_that_goes_away_is_no_fault(upset: Path) -> None:
    line = f"{shlex.quote(sys.executable)} -m stabdiag analyze upset.csv; echo $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({line}) | true"], capture_output=True, text=True, check=False
    )
    assert done.stderr == "0\n"


def test_standard_input(upset: Path) -> None:
    with upset.open(encoding="utf-8") as stream:
        done = script("analyze", "-", "--format", "json", stdin=stream)
    assert done.returncode == 0
    assert json.loads(done.stdout)["run"]["rows"] == STEPS


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_any_encoding_of_standard_output(upset: Path, encoding: str) -> None:
    environ = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = script("timeline", "upset.csv", env=environ, encoding=encoding)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert ("█" in done.stdout) == (encoding == "utf-8")


def test_same_bytes_each_time(command: Command, upset: Path) -> None:
    for name in ("text", "json", "markdown", "junit", "github"):
        first = command("analyze", "upset.csv", "--format", name).out
        assert first
        assert command("analyze", "upset.csv", "--format", name).out == first


def test_output_is_written_whole_or_not_at_all(command: Command, upset: Path, folder: Path) -> None:
    printed = command("analyze", "upset.csv", "--format", "json").out
    done = command("analyze", "upset.csv", "--format", "json", "--output", "report.json")
    assert (done.code, done.out) == (0, "")
    assert done.err == "report written to report.json\n"
    assert (folder / "report.json").read_text(encoding="utf-8") == printed
    failed = command("analyze", "gone.csv", "--format", "json", "--output", "report.json")
    assert failed.code == 2
    assert (folder / "report.json").read_text(encoding="utf-8") == printed
    assert sorted(path.name for path in folder.iterdir()) == [".git", "report.json", "upset.csv"]


def test_output_that_cannot_be_written(command: Command, upset: Path, folder: Path) -> None:
    for name in ("no/such/folder/report.txt", "."):
        done = command("analyze", "upset.csv", "--output", name)
        assert (done.code, done.out) == (2, "")
        assert "can't write the report to " in done.remarks[0]
        assert len(done.remarks) == 2
    assert sorted(path.name for path in folder.iterdir()) == [".git", "upset.csv"]


def test_a_log_is_not_overwritten(command: Command, upset: Path) -> None:
    before = upset.read_bytes()
    assert command("analyze", "upset.csv", "--output", "./upset.csv").code == 2
    assert upset.read_bytes() == before


def test_the_log_last_analysed_is_meant(command: Command, upset: Path, quiet: Path) -> None:
    assert command("timeline").code == 2
    assert command("analyze", "upset.csv").code == 0
    done = command("timeline")
    assert done.code == 0
    assert done.err == "log: upset.csv (last analysed from this folder)\n"
    assert "upset.csv" in done.out
    assert command("timeline", "--quiet").err == ""


def test_a_log_that_failed_is_not_remembered(command: Command, upset: Path, folder: Path) -> None:
    (folder / "other.csv").write_text("nothing here\n", encoding="utf-8")
    assert command("analyze", "other.csv").code == 2
    assert command("timeline").code == 2


def test_flags_beat_the_configuration(command: Command, upset: Path, folder: Path) -> None:
    (folder / "stabdiag.toml").write_text(
        'log = "upset.csv"\nformat = "json"\nfail-on = "info"\n', encoding="utf-8"
    )
    done = command("analyze")
    assert done.code == 1
    assert json.loads(done.out)["run"]["files"]
    assert done.remarks[0] == f"log: {folder / 'upset.csv'} (from stabdiag.toml)"
    done = command("analyze", "--format", "text", "--fail-on", "never")
    assert done.code == 0
    assert done.out.startswith("stabdiag ")


def test_a_configured_threshold_is_in_force(command: Command, upset: Path, folder: Path) -> None:
    (folder / "stabdiag.toml").write_text("[thresholds]\nSD102.min_ratio = 99\n", encoding="utf-8")
    report = json.loads(command("analyze", "upset.csv", "--format", "json").out)
    assert report["thresholds"]["SD102.min_ratio"] == 99
    assert "SD102" not in [finding["rule"] for finding in report["findings"]]
    page = command("explain", "SD102").out
    assert "99 times the recent level (from stabdiag.toml; the catalogue says 4)" in " ".join(
        page.split()
    )


def test_an_unknown_threshold_names_the_nearest(
    command: Command, upset: Path, folder: Path
) -> None:
    (folder / "stabdiag.toml").write_text("[thresholds]\nSD102.min_ration = 99\n", encoding="utf-8")
    for arguments in (("analyze", "upset.csv"), ("explain", "SD102")):
        done = command(*arguments)
        assert done.code == 2
        assert "SD102.min_ration" in done.remarks[0]
        assert "SD102.min_ratio'" in done.remarks[1]


def test_map_and_steps_and_threshold_reach_the_analysis(command: Command, folder: Path) -> None:
    log = write_csv(folder / "run.csv", jump=True)
    text = log.read_text(encoding="utf-8").replace("step,loss,", "n,fancy,")
    log.write_text(text, encoding="utf-8")
    done = command(
        *("analyze", "run.csv", "--map", "loss=fancy", "--step-column", "n"),
        *("--steps", ":200", "--format", "json"),
    )
    report = json.loads(done.out)
    assert report["run"]["series"]["loss"]["column"] == "fancy"
    assert report["run"]["last_step"] == 200
    wrong = command("analyze", "run.csv", "--map", "loss=fanci")
    assert wrong.code == 2
    assert "fanci" in wrong.remarks[0]


def test_a_high_spike_threshold_lets_the_spike_pass(command: Command, upset: Path) -> None:
    def rules(*arguments: str) -> list[str]:
        done = command("analyze", "upset.csv", "--format", "json", *arguments)
        return [finding["rule"] for finding in json.loads(done.out)["findings"]]

    assert "SD101" in rules()
    assert "SD101" not in rules("--spike-threshold", "100000")


def test_parts_show_their_step(command: Command, upset: Path) -> None:
    for part, words in {
        "timeline": ["Isolate the timeline", "loss (log scale)", "grad_norm (log scale)", "Events"],
        "numerics": ["Check for numerical issues", "not finite"],
        "layers": ["Bisect the architecture", "SKIPPED"],
        "audit": ["SCORE", "Minimum monitoring", "What the gaps cost", "Lines to add"],
    }.items():
        done = command(part, "upset.csv")
        assert (done.code, done.err) == (0, "")
        for word in words:
            assert word in done.out
        assert json.loads(command(part, "upset.csv", "--format", "json").out)["part"] == part


def test_a_part_fails_on_its_own_findings_alone(command: Command, upset: Path) -> None:
    assert command("timeline", "upset.csv", "--fail-on", "info").code == 1
    assert command("numerics", "upset.csv", "--fail-on", "info").code == 0


def test_a_part_takes_a_configured_format_that_it_has(
    command: Command, upset: Path, folder: Path
) -> None:
    (folder / "stabdiag.toml").write_text('format = "junit"\n', encoding="utf-8")
    assert command("timeline", "upset.csv").out.startswith("stabdiag ")
    assert command("analyze", "upset.csv").out.startswith("<?xml")


def test_columns_says_how_each_was_understood(command: Command, upset: Path) -> None:
    done = command("columns", "upset.csv")
    assert (done.code, done.err) == (0, "")
    for word in ("grad_norm", "numbers the rows", "--map loss=COLUMN", "--step-column COLUMN"):
        assert word in done.out
    document = json.loads(command("columns", "upset.csv", "--format", "json").out)
    assert {role["column"]: role["name"] for role in document["columns"]}["loss"] == "loss"
    assert [run["rows"] for run in document["runs"]] == [STEPS]


def test_a_log_of_several_runs_asks_which(command: Command, folder: Path) -> None:
    log = folder / "runs.csv"
    lines = ["run,step,loss"]
    lines += [f"{name},{step},{3 - step / 100}" for name in ("a", "b") for step in range(80)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = command("analyze", "runs.csv")
    assert done.code == 2
    assert "2 runs: 1: a, 2: b" in done.remarks[0]
    assert "--run" in done.remarks[1]
    for choice in ("b", "2"):
        report = json.loads(command("analyze", "runs.csv", "--run", choice, "--format", "json").out)
        assert report["run"]["name"] == "b"
    page = command("columns", "runs.csv").out
    assert "Runs in this log" in page


def test_explain_lists_everything_and_shows_one(command: Command) -> None:
    page = command("explain").out
    rules = re.findall(r"^ (SD\d{3}) ", page, re.MULTILINE)
    assert len(rules) > 20
    for topic in (*rules, "loss-spike", "optimizer", "state-corruption", "Weight Decay"):
        done = command("explain", topic)
        assert (done.code, done.err) == (0, "")
        assert "what" in done.out


def test_color_only_on_a_terminal(folder: Path) -> None:
    code = (
        "import pty, sys, os; "
        f"sys.exit(os.waitstatus_to_exitcode(pty.spawn([{sys.executable!r}, '-m', 'stabdiag', "
        "'explain', 'SD101', *sys.argv[1:]])))"
    )

    def on_terminal(*arguments: str, **environ: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "60"} | environ,
        )
        return done.stdout.decode()

    colored = on_terminal()
    assert "\x1b[1" in colored
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert max(map(len, bare.splitlines())) <= 60
    assert "\x1b[" not in on_terminal("--no-color")
    assert "\x1b[" not in on_terminal(NO_COLOR="1")
    assert "\x1b[" not in on_terminal(TERM="dumb")
