"""Each rule of the catalogue on its own three small logs: it fires, it doesn't, it can't."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stabdiag import analyze
from stabdiag.findings import Report, Severity
from stabdiag.rules import CATALOGUE
from tests.rules.make_pairs import TRIOS, write_trio

FOLDER = Path(__file__).resolve().parent
BY_ID = {rule.id: rule for rule in CATALOGUE if rule.command == "analyze"}  # those: tests/batches
IDS = sorted(BY_ID)
AMBIENT = {"SD703"}  # the small logs leave out what their rule doesn't need
KNOWN: dict[tuple[str, str], str] = {}
NEEDS_NOTHING = frozenset({"SD703", "SD704", "SD705"})  # they are about the log itself: never blind

# what only a tested log may claim
CLAIMS = {
    "SD105": ("no change of level at a restart",),
    "SD107": ("no jump, no reset",),
    "SD108": ("the loss falls",),
    "SD111": ("grad norm:",),
    "SD301": ("no NaN or Inf",),
    "SD305": ("activation",),
    "SD406": ("no rapid growth",),
    "SD702": ("neither constant nor zero",),
}
IN_OTHER_WORDS = frozenset({"SD101"})  # as numbers, to show onset and recovery
UNCLAIMED = frozenset(IDS) - frozenset(CLAIMS)


@dataclass(frozen=True)
class Truth:
    """truth.json of a rule: where the bad log's finding is, what comes with it, what blind says."""

    step: int | None
    companions: tuple[str, ...]
    blind_says: str


def of_each(log: str, *, without: frozenset[str] = frozenset()) -> list[Any]:
    """The rules as test parameters, those with a known defect on this log marked."""
    return [
        pytest.param(
            rule,
            marks=[pytest.mark.xfail(strict=True, reason=KNOWN[log, rule])]
            if (log, rule) in KNOWN
            else [],
        )
        for rule in IDS
        if rule not in without
    ]


def truth_of(rule: str) -> Truth:
    known: dict[str, Any] = json.loads((FOLDER / rule / "truth.json").read_text("utf-8"))
    return Truth(known["step"], tuple(known["companions"]), known["blind_says"])


def log_of(rule: str, name: str) -> Path:
    found = [p for p in (FOLDER / rule).iterdir() if p.stem == name]
    assert len(found) == 1, f"{rule} needs one {name} log, has {len(found)}"
    return found[0]


@cache
def report_of(rule: str, name: str) -> Report:
    return analyze(log_of(rule, name))


def test_every_rule_of_the_catalogue_has_its_logs_and_every_log_its_rule() -> None:
    folders = {p.name for p in FOLDER.iterdir() if p.is_dir() and p.name.startswith("SD")}
    assert folders == set(IDS)
    for rule in IDS:
        names = {p.stem for p in (FOLDER / rule).iterdir()}
        assert names == {"bad", "good", "truth"} | (set() if rule in NEEDS_NOTHING else {"blind"})


@pytest.mark.parametrize("rule", of_each("bad"))
def test_bad_gives_exactly_this_rule_at_its_step(rule: str) -> None:
    truth = truth_of(rule)
    findings = report_of(rule, "bad").findings
    mine = [f for f in findings if f.rule == rule]
    assert mine, f"{rule} is not found; found: {sorted({f.rule for f in findings})}"
    assert mine[0].step == truth.step
    assert {f.rule for f in findings} - {rule} <= set(truth.companions) | AMBIENT
    for f in mine:
        assert f.name == BY_ID[rule].name
        assert f.severity <= BY_ID[rule].severity
        assert f.message
        assert f.advice


@pytest.mark.parametrize("rule", of_each("bad"))
def test_the_example_of_a_rule_is_what_it_says_of_its_bad_log(rule: str) -> None:
    if rule in IN_OTHER_WORDS:
        assert BY_ID[rule].example
        return
    assert BY_ID[rule].example in {f.message for f in report_of(rule, "bad").findings}


@pytest.mark.parametrize("rule", of_each("good"))
def test_good_gives_no_finding_of_this_rule_nor_of_another(rule: str) -> None:
    findings = report_of(rule, "good").findings
    assert [f.message for f in findings if f.rule == rule] == []
    serious = {f.rule for f in findings if f.severity >= Severity.WARNING}
    assert serious <= set(truth_of(rule).companions)


@pytest.mark.parametrize("rule", of_each("blind", without=NEEDS_NOTHING))
def test_blind_says_that_it_was_not_tested_and_why(rule: str) -> None:
    report = report_of(rule, "blind")
    truth = truth_of(rule)
    assert [f.message for f in report.findings if f.rule == rule] == []
    said = [w.reason for w in report.workflow if w.status == "skipped"]
    said += [c.text for c in report.checks if c.status == "not_made"]
    said += [m.advice for m in report.monitoring if m.status != "ok"]
    assert any(truth.blind_says in text for text in said), said


@pytest.mark.parametrize("rule", of_each("blind", without=NEEDS_NOTHING | UNCLAIMED))
def test_no_check_on_a_blind_log_claims_what_it_could_not_see(rule: str) -> None:
    """A check that names this rule's series or points as tested would be a false all-clear."""
    report = report_of(rule, "blind")
    looked = [text for w in report.workflow if w.status == "clear" for text in w.looked_at]
    claims = looked + [c.text for c in report.checks if c.status == "passed"]
    for claim in CLAIMS[rule]:
        assert not any(claim in text for text in claims), claims


@pytest.mark.parametrize("rule", IDS)
def test_the_logs_are_those_that_the_script_writes(rule: str, tmp_path: Path) -> None:
    write_trio(rule, tmp_path)
    for path in sorted((tmp_path / rule).iterdir()):
        assert path.read_bytes() == (FOLDER / rule / path.name).read_bytes(), path.name


def test_the_script_knows_no_rule_that_the_catalogue_lacks() -> None:
    assert set(TRIOS) == set(IDS)
