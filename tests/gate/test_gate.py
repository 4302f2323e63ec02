"""`stabdiag gate`: each line of the policy, acceptances, baseline, formats, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.small_logs import JUMP, write_csv
from tests.command_line import Command, Done
from tests.several.schemas import validator

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
TODAY = ("--today", "2026-06-01")


@pytest.fixture
def logs(folder: Path) -> Path:
    write_csv(folder / "quiet.csv", jump=False)
    write_csv(folder / "upset.csv", jump=True)
    return folder


def policy(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(f"[gate]\n{text}", encoding="utf-8")
    return path


def run(command: Command, folder: Path, text: str, log: str, *options: str) -> Done:
    return command("gate", log, "--policy", policy(folder, text), *TODAY, *options)


def states(done: Done) -> dict[str, str]:
    document = json.loads(done.out)
    validator("gate").validate(document)
    return {line["key"]: line["state"] for line in document["runs"][0]["lines"]}


def test_without_a_policy_an_error_fails(command: Command, logs: Path) -> None:
    assert command("gate", "quiet.csv").code == 0
    failed = command("gate", "upset.csv")
    assert failed.code == 1
    assert " FAILED  0 of 1 run through the gate" in failed.out
    assert "SD101" in failed.out
    assert command("gate", "upset.csv", "--fail-on", "never").code == 0


@pytest.mark.parametrize(
    ("line", "log", "code"),
    [
        ("max-loss-spikes = 0", "upset.csv", 1),
        ("max-loss-spikes = 1", "upset.csv", 0),
        ("max-grad-spikes = 0", "quiet.csv", 0),
        ("no-non-finite = true", "quiet.csv", 0),
        ("no-non-finite = true", "nan.csv", 1),
        ("max-final-loss = 1.5", "quiet.csv", 1),
        ("max-final-loss = 2.5", "quiet.csv", 0),
        ("max-final-loss = 2.5", "nan.csv", 1),
        ("max-param-growth = 3.0", "quiet.csv", 3),
        ("max-param-growth = 3.0", "grown.csv", 1),
        ("max-param-growth = 30.0", "grown.csv", 0),
        ("min-last-step = 400", "quiet.csv", 1),
        ("min-last-step = 399", "quiet.csv", 0),
        ("min-audit-score = 90", "quiet.csv", 1),
        ("min-audit-score = 50", "quiet.csv", 0),
        ('allow-causes = ["none"]', "upset.csv", 1),
        ('allow-causes = ["none", "optimizer"]', "upset.csv", 0),
        ('require = ["layers"]', "quiet.csv", 3),
        ('require = [1, "grad_norm"]', "quiet.csv", 0),
    ],
)
def test_each_line(command: Command, logs: Path, line: str, log: str, code: int) -> None:
    text = (logs / "quiet.csv").read_text(encoding="utf-8").splitlines()
    (logs / "nan.csv").write_text(
        "\n".join([*text, *(f"{t},NaN,1.0,0.001" for t in range(400, 420))]) + "\n"
    )
    grown = [text[0] + ",param_norm"] + [f"{row},{40 + t}" for t, row in enumerate(text[1:])]
    (logs / "grown.csv").write_text("\n".join(grown) + "\n", encoding="utf-8")
    done = run(command, logs, f'fail-on = "never"\n{line}\n', log, "--format", "json")
    assert done.code == code, done.out
    key = line.partition(" ")[0]
    assert states(done)[key] == {0: "kept", 1: "broken", 3: "not_checked"}[code]
    if code:
        page = run(command, logs, f'fail-on = "never"\n{line}\n', log)
        assert f"{key} (policy.toml:3)" in " ".join(page.out.split())


def test_a_known_finding_passes_until_its_date(command: Command, logs: Path) -> None:
    accept = '\n[[gate.accept]]\nrule = "SD101"\nsteps = "250:350"\nreason = "known jump"\n'
    every = accept + "".join(
        f'\n[[gate.accept]]\nrule = "{rule}"\n' for rule in ("SD102", "SD106", "SD109")
    )
    known = run(command, logs, every, "upset.csv")
    assert known.code == 0, known.out
    assert "accepted" in known.out
    elsewhere = run(command, logs, accept.replace("250:350", "0:100"), "upset.csv")
    assert elsewhere.code == 1
    until = "until = 2026-05-31\n"
    late = run(command, logs, every.replace('jump"\n', f'jump"\n{until}'), "upset.csv")
    assert late.code == 1
    assert "policy.toml:3: SD101 was accepted until 2026-05-31: known jump" in " ".join(
        late.out.split()
    )
    on_the_day = every.replace('jump"\n', 'jump"\nuntil = "2026-06-01"\n')
    assert run(command, logs, on_the_day, "upset.csv").code == 0


@pytest.mark.parametrize("kind", ["log", "report"])
def test_a_baseline_forgives_what_was_there(command: Command, logs: Path, kind: str) -> None:
    base = logs / "upset.csv"
    if kind == "report":
        base = logs / "base.json"
        assert command("analyze", "upset.csv", "--format", "json", "--output", base).code == 0
    text = "max-loss-spikes = 0\n"
    assert run(command, logs, text, "upset.csv").code == 1
    same = run(command, logs, text, "upset.csv", "--baseline", str(base))
    assert same.code == 0, same.out
    assert "as before" in same.out
    worse = (logs / "upset.csv").read_text(encoding="utf-8").splitlines()
    worse[100:104] = [f"{t},9.5,40.0,0.001" for t in range(99, 103)]
    (logs / "worse.csv").write_text("\n".join(worse) + "\n", encoding="utf-8")
    assert run(command, logs, text, "worse.csv", "--baseline", str(base)).code == 1
    assert run(command, logs, text, "upset.csv", "--baseline", "quiet.csv").code == 1


def test_several_runs_and_one_that_can_not_be_read(command: Command, logs: Path) -> None:
    done = command("gate", "quiet.csv", "none.csv", "upset.csv", "--format", "json")
    assert done.code == 2
    assert "none.csv: no such file" in done.err
    document = json.loads(done.out)
    assert [run["passed"] for run in document["runs"]] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max-loss-spike = 0", ["policy.toml:2", "max-loss-spike", "max-loss-spikes"]),
        ("max-loss-spikes = -1", ["policy.toml:2", "a whole number from 0"]),
        ('allow-causes = ["optimiser"]', ["policy.toml:2", "optimizer"]),
        ("no-non-finite = 1", ["policy.toml:2", "true or false"]),
        ('[[gate.accept]]\nrule = "SD1O1"', ["policy.toml:2", "SD101"]),
        ('[[gate.accept]]\nrule = "SD101"\nuntil = "soon"', ["policy.toml:2", "until"]),
        ('[[gate.accept]]\nrule = "SD101"\nlayers = "x"', ["policy.toml:2", "layer"]),
        ('[[gate.accept]]\nrule = "SD101"\nsteps = "5"', ["policy.toml:2", "A:B"]),
        ("max-loss-spikes =", ["not TOML"]),
    ],
)
def test_a_wrong_policy_is_said_with_its_line(
    command: Command,
    logs: Path,
    text: str,
    words: list[str],
) -> None:
    done = run(command, logs, text, "quiet.csv")
    assert done.code == 2
    assert all(word in done.err for word in words), done.err


def test_the_policy_of_the_configuration(command: Command, logs: Path) -> None:
    (logs / "stabdiag.toml").write_text("[gate]\nmax-final-loss = 1.0\n", encoding="utf-8")
    assert command("gate", "quiet.csv").code == 1
    assert command("analyze", "quiet.csv").code == 0
    (logs / "stabdiag.toml").unlink()
    (logs / "pyproject.toml").write_text("[tool.stabdiag.gate]\nmax-final-loss = 1.0\n")
    done = command("gate", "quiet.csv")
    assert (done.code, "pyproject.toml:2" in done.out) == (1, True)


def test_junit_counts_each_line(command: Command, logs: Path) -> None:
    text = 'max-loss-spikes = 0\nrequire = ["layers"]\n'
    done = run(command, logs, text, "upset.csv", "--format", "junit")
    suites = ElementTree.fromstring(done.out)
    suite = suites[0]
    assert suite.get("tests") == str(len(suite.findall("testcase")))
    assert (suite.get("failures"), suite.get("errors")) == ("2", "1")
    names = {case.get("name") for case in suite.findall("testcase")}
    assert names == {"fail-on", "max-loss-spikes", "require"}


def test_github_and_a_job_summary(command: Command, logs: Path) -> None:
    summary = logs / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    done = run(
        command,
        logs,
        "max-loss-spikes = 0\n",
        "upset.csv",
        "--format",
        "github",
        "--summary",
        str(summary),
    )
    assert done.code == 1
    assert "::error title=stabdiag gate%3A upset.csv%2C max-loss-spikes" in done.out
    written = summary.read_text(encoding="utf-8")
    assert written.startswith("before\n")
    assert "**FAILED**" in written


def test_the_finding_is_at_its_step(command: Command, logs: Path) -> None:
    document = json.loads(command("gate", "upset.csv", "--format", "json").out)
    steps = {one["step"] for one in document["runs"][0]["new"]}
    assert any(abs(step - JUMP) <= 2 for step in steps)


@pytest.mark.parametrize("text", ["", "max-loss-spikes = 1\n", "[gates]\nmax-loss-spikes = 1\n"])
def test_a_named_policy_without_a_policy_is_refused(
    command: Command, folder: Path, text: str
) -> None:
    Path("policy.toml").write_text(text, encoding="utf-8")
    done = command("gate", SAMPLES / "healthy.csv", "--policy", "policy.toml")
    assert (done.code, done.out) == (2, "")
    assert "no [gate] in it" in done.remarks[0]
