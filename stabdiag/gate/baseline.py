"""The baseline of a gate: an earlier run's report, from its JSON or from its diagnosis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabdiag.errors import InputError
from stabdiag.findings import SEVERITIES, Report
from stabdiag.gate.records import Baseline, Measured
from stabdiag.model import MAIN_SERIES
from stabdiag.rules.timeline import GRAD_SPIKE
from stabdiag.steps.episodes import LOSS_KINDS


def baseline_of(source: str, report: Report, numbers: Measured) -> Baseline:
    """Return the baseline that a diagnosed run makes."""
    findings = tuple((f.rule, f.layer, f.severity) for f in report.findings)
    return Baseline(source, findings, report.verdict.cause, numbers)


def baseline_from_json(path: Path) -> Baseline | None:
    """Return the baseline in a JSON report of `stabdiag analyze`, None where it is no report.

    It holds no final loss and no parameter growth; limits on these count in full.

    Raises:
        InputError: a report of another schema version, or a damaged one.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or "schema_version" not in document:
        return None
    if document["schema_version"] != "1" or "verdict" not in document:
        raise InputError(
            f"{path}: not a whole report of schema version 1",
            "name a log, or what `stabdiag analyze LOG --format json` printed",
        )
    try:
        return _baseline(path, document)
    except (KeyError, TypeError, AttributeError) as err:
        raise InputError(f"{path}: a damaged report ({err})", "write the report again") from err


def _baseline(path: Path, document: Mapping[str, Any]) -> Baseline:
    findings = tuple(
        (f["rule"], f["layer"], SEVERITIES[f["severity"]]) for f in document["findings"]
    )
    series = document["run"]["series"]
    kinds = [episode["kind"] for episode in document["episodes"]]
    numbers = Measured(
        loss_spikes=sum(kind in LOSS_KINDS for kind in kinds) if "loss" in series else None,
        grad_spikes=sum(rule == GRAD_SPIKE.id for rule, _, _ in findings),
        non_finite=sum(series[name]["non_finite"] for name in MAIN_SERIES if name in series),
        param_growth=None,
        final_loss=None,
        last_step=document["run"]["last_step"],
    )
    return Baseline(str(path), findings, document["verdict"]["cause"], numbers)
