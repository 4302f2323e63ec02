"""The JSON report: the schema holds it, any strict parser reads it, nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from stabdiag.findings import Finding, Report, Severity
from stabdiag.reporters import PARTS, View, render, render_part
from tests.reporters.make_report import diverged_report, healthy_report, inconclusive_report

VIEW = View()
REPORTS = [diverged_report(), healthy_report(), inconclusive_report()]


@pytest.fixture(scope="module")
def schema() -> jsonschema.protocols.Validator:
    text = files("stabdiag.reporters").joinpath("report.schema.json").read_text(encoding="utf-8")
    loaded = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def strictly(text: str) -> Any:
    return json.loads(text, parse_constant=lambda token: pytest.fail(f"bare {token}"))


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_schema_holds_the_report(schema: jsonschema.protocols.Validator, report: Report) -> None:
    schema.validate(strictly(render(report, "json", VIEW)))


@pytest.mark.parametrize("part", sorted(PARTS))
def test_schema_holds_each_part(schema: jsonschema.protocols.Validator, part: str) -> None:
    document = strictly(render_part(diverged_report(), "json", part, VIEW))
    schema.validate(document)
    assert document["part"] == part
    assert all(
        index < len(document["findings"])
        for step in document["workflow"]
        for index in step["findings"]
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), "2"),
        (("verdict", "health"), "fine"),
        (("verdict", "cause"), "gremlins"),
        (("verdict", "probability"), "NaN"),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "step"), 3.5),
        (("findings", 0, "rule"), "101"),
        (("workflow", 0, "status"), "ok"),
        (("episodes", 0, "score"), "nan"),
        (("layers", 0, "role"), "bogus"),
        (("monitoring", 0, "cadence"), 0),
        (("run", "rows"), -1),
        (("surprise",), 1),
    ],
)
def test_schema_refuses(
    schema: jsonschema.protocols.Validator, path: tuple[str | int, ...], value: Any
) -> None:
    document = strictly(render(diverged_report(), "json", VIEW))
    target = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(document)


def test_schema_asks_for_every_key(schema: jsonschema.protocols.Validator) -> None:
    whole = strictly(render(diverged_report(), "json", VIEW))
    for key in whole:
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({name: value for name, value in whole.items() if name != key})


def test_keys_stand_in_the_order_of_the_design() -> None:
    document = strictly(render(diverged_report(), "json", VIEW))
    named = "schema_version tool run verdict causes episodes workflow findings layers monitoring"
    assert [key for key in document if key in named.split()] == named.split()


def test_numbers_of_the_report_come_through() -> None:
    document = strictly(render(diverged_report(), "json", VIEW))
    data = document["findings"][2]["data"]
    assert data == {"first": "NaN", "largest": "Infinity", "smallest": "-Infinity", "points": 10}
    assert document["episodes"][1]["lead_steps"] == 2
    assert document["run"]["segments"][0] == {"first_step": 0, "last_step": 690}
    assert document["findings"][1]["severity"] == "error"
    assert list(document["thresholds"]) == sorted(document["thresholds"])
    assert "charts" not in document


def test_names_of_a_log_come_through_whole() -> None:
    name = 'a"b\\c\x1b[0m\u2028 \U0001f600 <script>'
    finding = Finding("SD001", name, Severity.INFO, None, None, name, name, {name: name}, "")
    report = replace(healthy_report(), findings=(finding,))
    text = render(report, "json", VIEW)
    assert strictly(text)["findings"][0]["data"] == {name: name}
    assert text.isascii()
    assert "\x1b" not in text


def test_audit_has_the_findings_of_no_step() -> None:
    document = strictly(render_part(diverged_report(), "json", "audit", VIEW))
    assert [finding["rule"] for finding in document["findings"]] == ["SD901"]
    assert document["workflow"] == []


def test_same_report_same_bytes_and_one_final_newline() -> None:
    first, second = (render(diverged_report(), "json", VIEW) for _ in range(2))
    assert first == second
    assert first.endswith("}\n")
    assert not first.endswith("\n\n")
