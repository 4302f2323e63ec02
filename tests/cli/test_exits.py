"""From a report to what fails and what was not checked."""

from __future__ import annotations

import pytest

from stabdiag.cli.exits import failing
from stabdiag.errors import UsageError
from stabdiag.findings import Severity
from stabdiag.verdict.required import not_checked
from tests.reporters.make_report import diverged_report, healthy_report

REPORT = diverged_report()


@pytest.mark.parametrize(
    ("limit", "rules"),
    [
        (None, []),
        (Severity.INFO, ["SD103", "SD101", "SD301", "SD401", "SD901"]),
        (Severity.WARNING, ["SD101", "SD301", "SD401"]),
        (Severity.ERROR, ["SD101", "SD301"]),
    ],
)
def test_failing(limit: Severity | None, rules: list[str]) -> None:
    assert [finding.rule for finding in failing(REPORT.findings, limit)] == rules
    assert failing(healthy_report().findings, limit) == []


@pytest.mark.parametrize("word", ["1", "timeline", "Numerics", "3", "architecture", "init", "loss"])
def test_what_was_checked(word: str) -> None:
    assert not_checked(REPORT, [word]) == []


@pytest.mark.parametrize("word", ["train/loss", "grad_norm", "lr"])
def test_a_series_goes_by_its_name_or_its_column(word: str) -> None:
    assert not_checked(REPORT, [word]) == []


@pytest.mark.parametrize("word", ["2", "batch", "BATCH"])
def test_a_skipped_step_is_not_checked(word: str) -> None:
    assert not_checked(REPORT, [word]) == [
        "step 2, Examine the triggering batch, was skipped: no column names the data"
    ]


def test_an_absent_series_is_not_checked() -> None:
    (sentence,) = not_checked(REPORT, ["val_loss"])
    assert sentence == "there is no series val_loss in the log; the nearest are loss, grad_norm, lr"


def test_each_word_is_answered() -> None:
    assert len(not_checked(REPORT, ["loss", "val_loss", "2", "3"])) == 2


@pytest.mark.parametrize("word", ["0", "6", "17"])
def test_there_are_five_steps(word: str) -> None:
    with pytest.raises(UsageError, match="there is no workflow step"):
        not_checked(REPORT, [word])
