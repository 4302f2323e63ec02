"""The report as JSON: schema version 1, strict, the same bytes for the same report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stabdiag.drawings import HeatMap
from stabdiag.findings import Finding, Report, RunInfo, StepResult
from stabdiag.reporters.numbers import strict_json
from stabdiag.reporters.view import PARTS, View, findings_of, workflow_of

SCHEMA_VERSION = "1"  # raised by a change that breaks a reader; additions keep it


def render(report: Report, view: View) -> str:
    """Return the whole report as one JSON document with a final newline."""
    return document(report.version, _body(report))


def render_part(report: Report, part: str, view: View) -> str:
    """Return the document of one command: the keys of the whole one that are its business.

    `part` names the command; indices in `workflow` count within this document.
    """
    spec = PARTS[part]
    chosen = findings_of(report, spec)
    body = _body(report) | {"heat_maps": [_heat_map(one) for one in report.heat_maps]}
    own: dict[str, Any] = {
        "part": part,
        "run": body["run"],
        "workflow": _workflow(workflow_of(report, spec), chosen),
        "findings": finding_records([report.findings[index] for index in chosen]),
    }
    return document(report.version, own | {key: body[key] for key in spec.keys})


def document(version: str, body: Mapping[str, Any]) -> str:
    """Return `body` behind what every document of the tool begins with, strict, as text."""
    head = {"schema_version": SCHEMA_VERSION, "tool": {"name": "stabdiag", "version": version}}
    return json.dumps(strict_json(head | dict(body)), indent=2, allow_nan=False) + "\n"


def _body(report: Report) -> dict[str, Any]:
    """Return the report under the schema's keys; chart points stay out, the log has them."""
    return {
        "run": run_info(report.run),
        "verdict": report.verdict,
        "causes": report.causes,
        "episodes": report.episodes,
        "workflow": _workflow(report.workflow, tuple(range(len(report.findings)))),
        "findings": finding_records(report.findings),
        "layers": report.layers,
        "layer_plan": report.layer_plan,
        "layer_moment": report.layer_moment,
        "audit": report.audit,
        "monitoring": report.monitoring,
        "checks": report.checks,
        "next_steps": report.next_steps,
        "spike_score": report.spike_score,
        "thresholds": dict(sorted(report.thresholds.items())),
    }


def run_info(run: RunInfo) -> dict[str, Any]:
    """Return what a document says of the run and its log."""
    segments = [{"first_step": first, "last_step": last} for first, last in run.segments]
    return vars(run) | {"segments": segments}


def _workflow(results: tuple[StepResult, ...], chosen: tuple[int, ...]) -> list[dict[str, Any]]:
    place = {index: position for position, index in enumerate(chosen)}
    return [
        vars(result) | {"findings": [place[index] for index in result.findings]}
        for result in results
    ]


def _heat_map(shown: HeatMap) -> dict[str, Any]:
    """A heat map row by row; of the cells that are not finite those alone."""
    layers = zip(shown.layers, shown.value, shown.bad, strict=True)
    return {
        "metric": shown.metric,
        "first_step": shown.first_step,
        "last_step": shown.last_step,
        "left_out": shown.left_out,
        "layers": [{"layer": name} | _cells(value, bad) for name, value, bad in layers],
        "blocks": [
            {"name": one.name, "layers": one.layers} | _cells(one.value, one.bad)
            for one in shown.blocks
        ],
    }


def _cells(value: Sequence[float | None], bad: Sequence[str]) -> dict[str, Any]:
    marks = [{"cell": place, "what": what} for place, what in enumerate(bad) if what]
    return {"value": value, "bad": marks}


def finding_records(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as a document has them: their severity as a word."""
    return [vars(one) | {"severity": one.severity.word} for one in findings]
