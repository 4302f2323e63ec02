"""The reported incidents: what is right, what the log refutes, and what must not be said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.accuracy.answers import NAMED_LAYERS, answer_of
from tests.accuracy.labels import BenchError

JsonReport = Mapping[str, Any]

STEP_SLACK = 10  # steps by which an event may lie off a step that a sentence names
STEP_NUMBER = re.compile(r"\b\d{2,}\b(?!\.\d)")


@dataclass(frozen=True)
class Sentence:
    """One statement that must not be made; `kept` is None where no check covers it."""

    text: str
    kept: bool | None


@dataclass(frozen=True)
class IncidentResult:
    """One incident, judged. None: the expectation does not speak of it.

    With an `error` no report came out: nothing is right, and nothing was said either.
    """

    name: str
    said: str
    expected: str
    cause_right: bool
    cause_refuted: bool
    onset_step: int | None
    health_right: bool = False
    onset_right: bool | None = None
    loss_onset_right: bool | None = None
    layer_right: bool | None = None
    must_not: tuple[Sentence, ...] = ()
    error: str = ""


def read_expected(incidents: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read `expected.json` of a folder of incidents: file name -> expectation.

    Raises:
        BenchError: no such file, or no "runs" in it.
    """
    expected_file = incidents / "expected.json"
    if not expected_file.is_file():
        raise BenchError(f"no incidents: {expected_file} is not there")
    try:
        runs: Mapping[str, Mapping[str, Any]] = json.loads(
            expected_file.read_text(encoding="utf-8")
        )["runs"]
    except (ValueError, KeyError) as err:
        raise BenchError(f"{expected_file}: not a list of expectations ({err!r})") from err
    return runs


def judge_incident(name: str, expected: Mapping[str, Any], report: JsonReport) -> IncidentResult:
    """Compare the JSON report of one incident with what is expected of it."""
    answer = answer_of(report)
    accepted = {str(expected["expected_cause"]), *expected.get("acceptable", ())}
    cause_only = IncidentResult(
        name=name,
        said=answer.cause,
        expected=str(expected["expected_cause"]),
        cause_right=_accepts(accepted, answer.cause, report),
        cause_refuted=answer.cause in expected.get("wrong", ()),
        onset_step=answer.onset_step,
        error=answer.error,
    )
    if answer.error:
        return cause_only
    return replace(
        cause_only,
        health_right=report["verdict"]["health"] == expected["health"],
        onset_right=_onset_right(expected, report),
        loss_onset_right=_loss_onset_right(expected, report),
        layer_right=_layer_right(expected, answer.layers),
        must_not=tuple(
            Sentence(text, _kept(text, expected, report)) for text in expected.get("must_not", ())
        ),
    )


def _accepts(accepted: set[str], cause: str, report: JsonReport) -> bool:
    """Map the words of the expectation to the tool's: healthy is none, an artifact is no cause."""
    words = set(accepted)
    if "healthy" in accepted:
        words.add("none")
    if "initialization" in accepted:
        words.add("vanishing")
    if "logging_artifact" in accepted and _says_what_is_amiss_in_the_log(report):
        words |= {"none", "inconclusive"}
    return cause in words


def _says_what_is_amiss_in_the_log(report: JsonReport) -> bool:
    return bool(report.get("findings")) or any(
        item["status"] != "ok" for item in report.get("monitoring", ())
    )


def _onset_right(expected: Mapping[str, Any], report: JsonReport) -> bool | None:
    """Whether the verdict's onset, or the step of its root, is within the tolerance."""
    verdict = report["verdict"]
    named = [verdict["onset_step"]]
    if verdict.get("root"):
        named.append(verdict["root"]["step"])
    if expected.get("onset_step") is None:
        return None
    return _any_near(named, expected["onset_step"], expected.get("onset_tolerance", 0))


def _loss_onset_right(expected: Mapping[str, Any], report: JsonReport) -> bool | None:
    if expected.get("loss_onset_step") is None:
        return None
    tolerance = expected.get("loss_onset_tolerance", expected.get("onset_tolerance", 0))
    named = [episode["loss_onset_step"] for episode in report["episodes"]]
    return _any_near(named, expected["loss_onset_step"], tolerance)


def _any_near(steps: Sequence[int | None], truth: int, tolerance: int) -> bool:
    return any(step is not None and abs(step - truth) <= tolerance for step in steps)


def _layer_right(expected: Mapping[str, Any], named: Sequence[str]) -> bool | None:
    if expected.get("layer") is None:
        return None
    guilty = {expected["layer"], *expected.get("also_layers", ())}
    return any(
        layer == truth or layer.endswith("/" + truth)
        for layer in named[:NAMED_LAYERS]
        for truth in guilty
    )


# Each check reads a sentence of `must_not` and says whether the report keeps to it.
Check = Callable[[str, Mapping[str, Any], JsonReport], bool]


def _kept(text: str, expected: Mapping[str, Any], report: JsonReport) -> bool | None:
    for pattern, check in CHECKS:
        if re.search(pattern, text, re.IGNORECASE):
            return check(text, expected, report)
    return None


def _steps_in(text: str) -> list[int]:
    return [int(number) for number in STEP_NUMBER.findall(text)]


def _not_diverged(_text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
    return bool(report["verdict"]["health"] != "diverged")


def _no_loss_spike(text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
    """No loss spike at the steps that the sentence names; none at all where it names none."""
    steps = _steps_in(text)
    spikes = [
        (episode["onset_step"], episode["end_step"])
        for episode in report["episodes"]
        if episode["kind"] == "loss_spike"
    ] + [
        (finding["step"], finding["last_step"])
        for finding in report["findings"]
        if "loss-spike" in finding["name"]
    ]
    if not steps:
        return not spikes
    return not any(
        first is not None
        and first - STEP_SLACK <= step <= (first if last is None else last) + STEP_SLACK
        for first, last in spikes
        for step in steps
    )


def _no_anomaly(text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
    """No episode and no loud finding that begins at one of the steps named."""
    begins = [episode["onset_step"] for episode in report["episodes"]] + [
        finding["step"]
        for finding in report["findings"]
        if finding["severity"] in ("warning", "error")
    ]
    return not any(_any_near(begins, step, STEP_SLACK) for step in _steps_in(text))


def _no_word_of(words: str) -> Check:
    """No sentence of the report that matches `words`."""

    def check(_text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
        said = [report["verdict"]["summary"]]
        said += [finding["message"] for finding in report["findings"]]
        said += [finding["name"] for finding in report["findings"]]
        return not any(re.search(words, sentence, re.IGNORECASE) for sentence in said)

    return check


def _not_the_cause(*causes: str) -> Check:
    """None of `causes` as verdict or root."""

    def check(_text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
        verdict = report["verdict"]
        root = verdict.get("root") or {}
        return verdict["cause"] not in causes and root.get("cause") not in causes

    return check


def _not_vanishing(text: str, expected: Mapping[str, Any], report: JsonReport) -> bool:
    loud = any(
        "vanish" in finding["name"] and finding["severity"] in ("warning", "error")
        for finding in report["findings"]
    )
    return not loud and _not_the_cause("vanishing")(text, expected, report)


def _restart_kept_apart(_text: str, _expected: Mapping[str, Any], report: JsonReport) -> bool:
    """Repeated steps stand as a restart: more than one segment, and no word of an average."""
    averaged = any("averag" in str(note.get("text", "")) for note in report["run"].get("notes", ()))
    return len(report["run"]["segments"]) > 1 and not averaged


def _root_at_onset(_text: str, expected: Mapping[str, Any], report: JsonReport) -> bool:
    return _onset_right(expected, report) is not False


CHECKS: tuple[tuple[str, Check], ...] = (
    (r"diverged", _not_diverged),
    (r"loss spikes?\b(?! alone)", _no_loss_spike),
    (r"\banomal", _no_anomaly),
    (r"improve", _no_word_of(r"\bimprov")),
    (r"vanish", _not_vanishing),
    (r"duplicates|average", _restart_kept_apart),
    (r"root cause", _root_at_onset),
    (r"learning rate|optimi[sz]er", _not_the_cause("optimizer")),
    (r"overflow|numerical", _not_the_cause("overflow")),
    (r"blame the data|bad batch|data (fault|issue)", _not_the_cause("data")),
    (r"initiali[sz]ation", _not_the_cause("initialization")),
    (r"weight decay", _not_the_cause("weight_decay")),
    (r"architecture", _not_the_cause("architecture")),
    (r"healthy", lambda _t, _e, report: report["verdict"]["health"] != "healthy"),
)
