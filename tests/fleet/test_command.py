"""`stabdiag fleet`: which logs, one row a run, the order, the formats, the codes, the memory."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from stabdiag.fleet.find import find
from stabdiag.fleet.judge import Job, judge
from stabdiag.fleet.state import State
from stabdiag.reporters.untrusted import not_a_formula
from stabdiag.settings import Settings
from tests.cli.small_logs import rows, write_csv, write_jsonl
from tests.command_line import Command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runs(folder: Path) -> Path:
    """A folder of two quiet runs, one upset, one file of two runs, one broken, one that is none."""
    made = folder / "runs"
    for name in ("quiet", "upset", "also"):
        (made / name).mkdir(parents=True)
    write_csv(made / "quiet" / "metrics.csv", jump=False)
    write_jsonl(made / "upset" / "log.jsonl", jump=True)
    lines = ["run,step,loss,grad_norm,lr"]
    for name, jump in (("a", False), ("b", True)):
        lines += [f"{name}," + ",".join(map(str, row.values())) for row in rows(jump=jump)]
    (made / "also" / "two.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (made / "also" / "cut.parquet").write_bytes(b"PAR1 and no more")
    (made / "also" / "config.json").write_text('{"lr": 0.001}', encoding="utf-8")
    return made


def survey(command: Command, *options: str | Path) -> dict[str, object]:
    done = command("fleet", *options, "--format", "json", "--workers", "2")
    assert done.code == 0, done.err
    document: dict[str, object] = json.loads(done.out)
    return document


def test_one_row_a_run_those_that_need_a_look_first(command: Command, runs: Path) -> None:
    document = survey(command, "runs")
    schema = json.loads((ROOT / "stabdiag/reporters/fleet.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert [(r["log"], r["run"], r["status"], r["health"]) for r in document["runs"]] == [
        ("runs/also/two.csv", "b", "analysed", "unstable"),
        ("runs/upset/log.jsonl", "", "analysed", "unstable"),
        ("runs/also/cut.parquet", "", "unreadable", ""),
        ("runs/also/two.csv", "a", "analysed", "healthy"),
        ("runs/quiet/metrics.csv", "", "analysed", "healthy"),
    ]
    assert document["left_out"] == ["runs/also/config.json"]
    assert "cut.parquet" in document["runs"][2]["error"]


def test_a_row_says_what_analyze_says(command: Command, runs: Path) -> None:
    row = survey(command, "runs/upset")["runs"][0]
    report = json.loads(command("analyze", "runs/upset/log.jsonl", "--format", "json").out)
    verdict = report["verdict"]
    for key in ("health", "cause", "probability", "onset_step", "layers", "summary"):
        assert row[key] == verdict[key]
    assert set(row["findings"]) == {finding["rule"] for finding in report["findings"]}


def test_what_is_known_is_not_read_again(command: Command, runs: Path) -> None:
    first = survey(command, "runs", "--state", "known.jsonl")
    (runs / "upset").rename(runs / "moved")
    second = survey(command, "runs", "--state", "known.jsonl")
    assert (first["known"], second["known"]) == (0, 5)
    renamed = json.loads(json.dumps(first["runs"]).replace("runs/upset", "runs/moved"))
    assert sorted(second["runs"], key=str) == sorted(renamed, key=str)


def test_other_settings_or_contents_are_judged_anew(command: Command, runs: Path) -> None:
    survey(command, "runs", "--state", "known.jsonl")
    with (runs / "quiet/metrics.csv").open("a", encoding="utf-8") as file:
        file.write("400,2.0,1.0,0.001\n")
    assert survey(command, "runs", "--state", "known.jsonl")["known"] == 4
    other = survey(command, "runs", "--state", "known.jsonl", "--spike-threshold", "50")
    assert other["known"] == 0


def test_a_damaged_state_costs_only_its_line(command: Command, runs: Path) -> None:
    first = survey(command, "runs", "--state", "known.jsonl")
    state = runs.parent / "known.jsonl"
    text = state.read_text(encoding="utf-8")
    state.write_text("no json\n" + text[: len(text) - 40], encoding="utf-8")
    done = command("fleet", "runs", "--state", "known.jsonl", "--format", "json")
    assert "2 damaged lines passed over" in done.err
    assert json.loads(done.out)["runs"] == first["runs"]
    assert survey(command, "runs", "--state", "known.jsonl")["known"] == 5


def test_the_same_whatever_the_number_of_workers(command: Command, runs: Path) -> None:
    outs = {
        command("fleet", "runs", "--format", "csv", "--state", "none", "--workers", n).out
        for n in ("1", "3")
    }
    assert len(outs) == 1


def test_the_page_names_those_to_look_at(command: Command, runs: Path) -> None:
    done = command("fleet", "runs")
    assert done.code == 0
    assert "UNSTABLE      2" in done.out
    assert "NOT JUDGED    1" in done.out
    assert "1 file left out" in done.out
    assert "`stabdiag analyze runs/also/two.csv --run b`" in done.out
    assert "runs/quiet" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_csv_and_parquet_hold_all_rows(command: Command, runs: Path) -> None:
    table = list(csv.DictReader(io.StringIO(command("fleet", "runs", "--format", "csv").out)))
    assert command("fleet", "runs", "--format", "parquet", "--output", "fleet.parquet").code == 0
    parquet = pq.read_table(runs.parent / "fleet.parquet").to_pylist()
    assert len(table) == len(parquet) == 5
    assert [row["log"] for row in table] == [row["log"] for row in parquet]
    assert table[0]["findings"] == " ".join(parquet[0]["findings"])


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-2", "@x", "\tx", "\rx"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert not_a_formula(cell) == f"'{cell}"


def test_exit_codes(command: Command, runs: Path) -> None:
    assert command("fleet", "runs", "--fail-on", "error").code == 1
    quiet = command("fleet", "runs/quiet", "runs/also/cut.parquet", "--fail-on", "warning")
    assert quiet.code == 3
    assert "1 log could not be judged" in quiet.err
    assert command("fleet", "runs/quiet", "--fail-on", "warning").code == 0
    assert command("fleet", "runs/also/cut.parquet").code == 2
    nothing = command("fleet", "none")
    assert nothing.code == 2
    assert "nothing there that may be a log" in nothing.err
    assert command("fleet").code == 2
    assert command("fleet", "runs", "--format", "parquet").code == 2


def test_patterns_and_twice_the_same(runs: Path) -> None:
    found = find(["runs/*/*.csv", "runs/quiet"])
    assert [one.log for one in found] == ["runs/also/two.csv", "runs/quiet/metrics.csv"]


def test_a_folder_of_metric_files_is_one_run(folder: Path) -> None:
    metrics = folder / "mlruns/0/abc/metrics"
    metrics.mkdir(parents=True)
    for name in ("loss", "grad_norm"):
        (metrics / name).write_text("".join(f"{t} 1.5 {t}\n" for t in range(30)))
    events = folder / "tb"
    events.mkdir()
    (events / "events.out.tfevents.1.host").write_bytes(b"x")
    assert [one.log for one in find(["."])] == ["mlruns/0/abc/metrics", "tb"]


def test_what_is_required_is_looked_for_in_each_run(command: Command, runs: Path) -> None:
    assert command("fleet", "runs", "--require", "loss", "--state", "known.jsonl").code == 0
    done = command("fleet", "runs", "--require", "val_loss", "--state", "known.jsonl")
    assert done.code == 3
    assert "runs/quiet/metrics.csv: there is no series val_loss" in done.err
    assert command("fleet", "runs", "--require", "val_loss", "--fail-on", "error").code == 1
    wrong = command("fleet", "runs", "--require", "9")
    assert (wrong.code, wrong.out) == (2, "")


def test_no_log_at_all_is_no_pass(command: Command, folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "notes.txt").write_text("hello\n", encoding="utf-8")
    done = command("fleet", "texts", "--fail-on", "info")
    assert done.code == 2
    assert "no metric log was found" in done.err


def test_strict_is_met_or_it_exits_2(command: Command, runs: Path) -> None:
    (runs / "quiet" / "odd.csv").write_text("step,loss\n1,2\n2,3,9\n3,2\n", encoding="utf-8")
    done = command("fleet", "runs/quiet", "--strict", "--format", "json")
    assert done.code == 2
    assert "1 log not read as written, such as runs/quiet/odd.csv" in done.err
    refused = next(row for row in json.loads(done.out)["runs"] if row["log"].endswith("odd.csv"))
    assert (refused["run"], refused["status"]) == ("", "unreadable")
    assert command("fleet", "runs/upset", "--strict").code == 0


def test_its_own_files_are_no_logs(command: Command, runs: Path) -> None:
    options = ("--format", "csv", "--output", "runs/fleet.csv", "--state", "runs/known.jsonl")
    assert command("fleet", "runs", *options).code == 0
    first = (runs / "fleet.csv").read_text(encoding="utf-8")
    assert command("fleet", "runs", *options).code == 0
    assert (runs / "fleet.csv").read_text(encoding="utf-8") == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"rows": [{', '"rows": [1, {'),
        ('"health": "healthy"', '"health": "xx"'),
        ('"layers": []', '"layers": [1]'),
        ('"log": "runs/quiet/metrics.csv"', '"log": 5'),
        ('"unchecked": []', '"unchecked": "no"'),
        ('"onset_step": null', '"onset_step": "x"'),
        ('"status": "analysed"', '"status": "gone"'),
    ],
)
def test_a_line_of_the_state_that_is_no_row_is_passed_over(
    command: Command, runs: Path, before: str, after: str
) -> None:
    first = survey(command, "runs/quiet", "--state", "known.jsonl")
    state = runs.parent / "known.jsonl"
    text = state.read_text(encoding="utf-8")
    assert before in text
    for changed in (text.replace(before, after), text[: text.index('"rows"')] + '"rows": []}\n'):
        state.write_text(changed, encoding="utf-8")
        done = command("fleet", "runs/quiet", "--state", "known.jsonl", "--format", "json")
        assert "1 damaged lines passed over" in done.err
        assert json.loads(done.out)["runs"] == first["runs"]


def test_a_state_is_no_other_file(command: Command, runs: Path) -> None:
    log = runs / "quiet" / "metrics.csv"
    before = log.read_bytes()
    done = command("fleet", "runs/upset", "--state", log)
    assert (done.code, log.read_bytes()) == (2, before)
    assert "something else is in that file" in done.err
    assert "not a plain file" in command("fleet", "runs", "--state", "/dev/null").err


def test_a_log_of_another_name_is_known_by_it(command: Command, folder: Path) -> None:
    (folder / "e").write_text("garbage,x\n", encoding="utf-8")
    write_csv(folder / "good.csv", jump=False)
    survey(command, "e", "good.csv", "--state", "known.jsonl")
    (folder / "e").rename(folder / "long_name")
    row = survey(command, "long_name", "good.csv", "--state", "known.jsonl")["runs"][0]
    assert (row["log"], row["error"].count("long_name")) == ("long_name", 1)


def test_a_missing_package_is_not_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = State(folder / "known.jsonl", Job(Settings()))
    log = folder / "run.csv.zst"
    log.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(60))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    rows = judge(str(log), Job(Settings()))
    assert "pip install" in rows[0].error
    known.keep("content", rows)
    assert known.rows(str(log), "content") is None


@pytest.mark.parametrize("limit", ["inf", "1e12"])
def test_any_time_will_do_as_a_limit(command: Command, runs: Path, limit: str) -> None:
    assert command("fleet", "runs/quiet", "--time-limit", limit).code == 0


@pytest.mark.parametrize("address", ["nonsense", "", "http://127.0.0.1:9", "tcp://"])
def test_an_address_of_no_scheduler_is_said_at_once(
    command: Command, runs: Path, address: str
) -> None:
    done = command("fleet", "runs", "--cluster", address)
    assert done.code == 2
    assert len(done.remarks) == 2
    assert "not the address of a scheduler" in done.err


def test_without_a_cache_the_survey_goes_on(
    command: Command, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(runs / "file"))
    done = command("fleet", "runs/quiet")
    assert done.code == 0
    assert "what is found is not kept" in done.err
