"""Every sample log: the schema holds its report, the pages fit, the answers come first."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from stabdiag.reporters import PARTS
from tests.command_line import Command

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
LOGS = sorted(
    path for path in SAMPLES.iterdir() if path.suffix in {".csv", ".jsonl", ".json", ".parquet"}
)
SCHEMA = json.loads(
    files("stabdiag.reporters").joinpath("report.schema.json").read_text(encoding="utf-8")
)


def test_there_are_samples() -> None:
    assert len(LOGS) >= 3


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_the_schema_holds_the_report_of_a_real_log(command: Command, log: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    done = command("analyze", log, "--format", "json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out, parse_constant=pytest.fail)
    validator.validate(report)
    assert sum(cause["probability"] for cause in report["causes"]) == pytest.approx(1, abs=1e-3)
    for part in PARTS:
        validator.validate(json.loads(command(part, log, "--format", "json").out))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_the_first_screen_of_a_real_log(command: Command, log: Path) -> None:
    done = command("analyze", log)
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    screen = "\n".join(lines[:24])
    report = json.loads(command("analyze", log, "--format", "json").out)
    assert report["verdict"]["health"].upper() in screen
    assert " why " in screen
    assert " checked " in screen
    assert report["next_steps"][0][:20] in screen
    if report["verdict"]["onset_step"] is not None:
        assert f"step {report['verdict']['onset_step']}" in screen


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_every_page_of_a_real_log_fits(command: Command, log: Path) -> None:
    for name in (*PARTS, "columns"):
        done = command(name, log)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
