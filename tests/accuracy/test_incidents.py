"""Incident expectations on reports made by hand; each forbidden statement, made and not made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.incidents import judge_incident, read_expected
from tests.accuracy.labels import BenchError

SHARED = Path(__file__).resolve().parents[2] / "../shared/incidents"


def report(**changes: Any) -> dict[str, Any]:
    """Return a JSON report of a healthy run; `verdict` is merged, the rest replaced."""
    verdict = {
        "health": "healthy",
        "cause": "none",
        "probability": 0.9,
        "onset_step": None,
        "layers": [],
        "summary": "",
        "root": None,
    }
    empty: dict[str, Any] = {
        "run": {"segments": [{"first_step": 0, "last_step": 999}], "notes": []},
        "episodes": [],
        "findings": [],
        "layers": [],
        "monitoring": [{"metric": "loss", "status": "ok"}],
    }
    return empty | changes | {"verdict": verdict | changes.get("verdict", {})}


def episode(
    kind: str, onset: int, end: int | None, loss_onset: int | None = None
) -> dict[str, Any]:
    return {"kind": kind, "onset_step": onset, "end_step": end, "loss_onset_step": loss_onset}


def finding(name: str, step: int, severity: str = "warning", message: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "step": step,
        "last_step": step,
        "severity": severity,
        "message": message,
    }


def expect(**changes: Any) -> dict[str, Any]:
    return {"expected_cause": "data", "health": "unstable"} | changes


def test_expected_acceptable_and_refuted_causes() -> None:
    expected = expect(acceptable=["inconclusive"], wrong=["overflow"])
    said = {
        cause: judge_incident("x", expected, report(verdict={"cause": cause}))
        for cause in ("data", "inconclusive", "overflow", "optimizer")
    }
    assert {cause: result.cause_right for cause, result in said.items()} == {
        "data": True,
        "inconclusive": True,
        "overflow": False,
        "optimizer": False,
    }
    assert [cause for cause, result in said.items() if result.cause_refuted] == ["overflow"]


@pytest.mark.parametrize(
    ("accepted", "cause", "right"),
    [
        ("healthy", "none", True),
        ("healthy", "data", False),
        ("initialization", "vanishing", True),
        ("architecture", "vanishing", False),
    ],
)
def test_the_words_of_the_expectation_are_mapped(accepted: str, cause: str, right: bool) -> None:
    result = judge_incident("x", expect(expected_cause=accepted), report(verdict={"cause": cause}))
    assert result.cause_right is right


def test_an_artifact_of_logging_must_be_said_not_only_left_out() -> None:
    expected = expect(expected_cause="logging_artifact")
    assert not judge_incident("x", expected, report()).cause_right
    silent_but_noted = report(monitoring=[{"metric": "grad_norm", "status": "post_clip"}])
    assert judge_incident("x", expected, silent_but_noted).cause_right
    found = report(findings=[finding("zero-loss", 7)], verdict={"cause": "inconclusive"})
    assert judge_incident("x", expected, found).cause_right


def test_onset_is_the_verdicts_or_its_roots_within_tolerance() -> None:
    expected = expect(onset_step=500, onset_tolerance=10)
    for verdict, right in (
        ({"onset_step": 510}, True),
        ({"onset_step": 511}, False),
        ({"onset_step": None}, False),
        ({"onset_step": 900, "root": {"cause": "state_corruption", "step": 495}}, True),
    ):
        result = judge_incident("x", expected, report(verdict=verdict))
        assert result.onset_right is right
    assert judge_incident("x", expect(onset_step=None), report()).onset_right is None


def test_the_loss_onset_is_looked_for_in_the_episodes() -> None:
    expected = expect(onset_step=100, loss_onset_step=1000, loss_onset_tolerance=50)
    late = report(episodes=[episode("loss_spike", 990, None, loss_onset=1040)])
    assert judge_incident("x", expected, late).loss_onset_right is True
    assert judge_incident("x", expected, report()).loss_onset_right is False


def test_one_of_the_guilty_layers_among_the_first_three() -> None:
    expected = expect(layer="h.27.k_proj", also_layers=["h.33.k_proj"])
    for named, right in (
        (["h.1", "h.33.k_proj"], True),
        (["grad_norm/h.27.k_proj"], True),
        (["a", "b", "c", "h.27.k_proj"], False),
        (["k_proj"], False),
    ):
        result = judge_incident("x", expected, report(verdict={"layers": named}))
        assert result.layer_right is right


SPIKE_AT_3060 = report(episodes=[episode("loss_spike", 3060, 3080)])
LONG_SPIKE = report(episodes=[episode("loss_spike", 2450, 3500)])
FOUND_SPIKE = report(findings=[finding("loss-spike", 3064)])
OTHER_SPIKE = report(episodes=[episode("loss_spike", 100, 120), episode("grad_spike", 3064, 3064)])
DIVERGED = report(verdict={"health": "diverged"})
BY_OPTIMIZER = report(verdict={"cause": "optimizer"})
ROOT_OPTIMIZER = report(verdict={"root": {"cause": "optimizer", "step": 1}})
TWO_SEGMENTS = report(run={"segments": [{}, {}], "notes": []})
AVERAGED = report(run={"segments": [{}, {}], "notes": [{"text": "averaged repeated steps"}]})


@pytest.mark.parametrize(
    ("sentence", "made", "kept"),
    [
        ("call the run diverged", DIVERGED, False),
        ("say the run diverged", report(), True),
        ("report a loss spike", SPIKE_AT_3060, False),
        ("report a loss spike", FOUND_SPIKE, False),
        ("report a loss spike", report(episodes=[episode("grad_spike", 5, 5)]), True),
        ("call the climb at 3064 a loss spike", SPIKE_AT_3060, False),
        ("call the climb at 3064 a loss spike", LONG_SPIKE, False),
        ("call the climb at 3064 a loss spike", FOUND_SPIKE, False),
        ("call the climb at 3064 a loss spike", OTHER_SPIKE, True),
        ("report the harmless blips at 31020 and 3064 as loss spikes", FOUND_SPIKE, False),
        ("report the harmless blips at 31020 and 31127 as loss spikes", FOUND_SPIKE, True),
        ("call the drop at the third epoch (3264) an anomaly: it is usual", SPIKE_AT_3060, True),
        (
            "call the drop at the third epoch (3264) an anomaly: it is usual",
            report(findings=[finding("level-shift", 3266)]),
            False,
        ),
        (
            "call the drop at the third epoch (3264) an anomaly: it is usual",
            report(findings=[finding("epoch-boundary", 3264, severity="info")]),
            True,
        ),
        (
            "read the zeros as a sudden improvement",
            report(findings=[finding("x", 7, message="The loss improved at once.")]),
            False,
        ),
        (
            "read the zeros as a sudden improvement",
            report(findings=[finding("zero-loss", 7, message="The loss is exactly 0.")]),
            True,
        ),
        (
            "report grad norm 0.0 as vanishing gradients of the model",
            report(findings=[finding("vanishing-gradients", 7)]),
            False,
        ),
        (
            "report grad norm 0.0 as vanishing gradients of the model",
            report(verdict={"cause": "vanishing"}),
            False,
        ),
        ("report grad norm 0.0 as vanishing gradients of the model", report(), True),
        ("treat the repeated steps 30260-30400 as duplicates to average", report(), False),
        ("treat the repeated steps 30260-30400 as duplicates to average", AVERAGED, False),
        ("treat the repeated steps 30260-30400 as duplicates to average", TWO_SEGMENTS, True),
        ("blame the learning rate: grad norm and loss were flat before", BY_OPTIMIZER, False),
        ("blame the learning rate: grad norm and loss were flat before", ROOT_OPTIMIZER, False),
        ("blame the learning rate: grad norm and loss were flat before", report(), True),
        ("place the root cause at the loss spike alone", SPIKE_AT_3060, False),
        (
            "place the root cause at the loss spike alone",
            report(verdict={"root": {"cause": "state_corruption", "step": 250}}),
            True,
        ),
        ("call it healthy", report(), False),
        ("recite a poem", report(), None),
    ],
)
def test_forbidden_statements(sentence: str, made: dict[str, Any], kept: bool | None) -> None:
    expected = expect(must_not=[sentence], onset_step=250)
    (judged,) = judge_incident("x", expected, made).must_not
    assert judged.kept is kept


def test_a_log_without_a_report_has_nothing_right() -> None:
    result = judge_incident("x", expect(must_not=["say the run diverged"]), {"error": "no loss"})
    assert not result.cause_right
    assert not result.health_right
    assert result.must_not == ()


def test_a_missing_expectation_says_where(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"expected\.json is not there"):
        read_expected(tmp_path)
    (tmp_path / "expected.json").write_text(json.dumps({"schema": 1}), encoding="utf-8")
    with pytest.raises(BenchError, match="not a list of expectations"):
        read_expected(tmp_path)


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the reported incidents are not beside the checkout"
)
def test_every_forbidden_statement_of_the_incidents_is_checked() -> None:
    for name, expected in read_expected(SHARED).items():
        for sentence in judge_incident(name, expected, report()).must_not:
            assert sentence.kept is not None, sentence.text
