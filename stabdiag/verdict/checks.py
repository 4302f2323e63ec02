"""The checks that a healthy verdict rests on: made, failed, or not made and why."""

from __future__ import annotations

import numpy as np

from stabdiag.findings import Check, Finding, Severity
from stabdiag.rules.timeline import PLATEAU
from stabdiag.steps.initialization import first_and_early
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import is_signed

# (name, rules that fail it, series needed, what passing means)
TABLE: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("no loss spike or shift", ("SD101", "SD104"), ("loss",), "the loss stays on its baseline"),
    ("no slow divergence", ("SD103",), ("loss",), "the loss ends at its best level"),
    ("no plateau", ("SD108",), ("loss",), "the loss falls"),
    ("no exact zeros", ("SD202", "SD306"), ("loss",), "no loss is exactly 0"),
    (
        "all values finite",
        ("SD203", "SD301", "SD302", "SD304", "SD306", "SD307", "SD308"),
        ("loss",),
        "no NaN or Inf beyond lone skipped steps",
    ),
    ("start as expected", ("SD501", "SD502", "SD503"), ("loss",), "no transient of the initialization"),
    ("grad norm moves", ("SD702",), ("grad_norm",), "neither constant nor zero"),
    ("learning rate on schedule", ("SD106", "SD107", "SD706"), ("lr",), "no jump, no reset, no early end"),
    ("parameter norm steady", ("SD406", "SD407"), ("param_norm",), "no rapid growth, no jump"),
    ("loss scale holds", ("SD304",), ("loss_scale",), "it comes back after each skipped step"),
    ("restarts continue", ("SD105",), ("loss",), "no change of level at a restart"),
    ("no layer parts from the rest", ("SD401", "SD403", "SD404", "SD405"), ("layers",), "layers keep together"),
)  # fmt: skip


def made(timeline: Timeline, findings: tuple[Finding, ...]) -> tuple[Check, ...]:
    """Say for each check whether it passed, failed, or could not be made."""
    view = timeline.view
    failed = {f.rule for f in findings if f.severity >= Severity.WARNING}
    out = []
    for name, rules, needs, text in TABLE:
        lacking = [n for n in needs if not _has(timeline, n)]
        if lacking:
            word = (
                "no per-layer norm is" if lacking[0] == "layers" else f"{_word(lacking[0])} is not"
            )
            out.append(Check(name, "not_made", f"{word} logged"))
        elif name == "restarts continue" and not timeline.restarts:
            continue
        elif _untested(timeline, name):
            out.append(Check(name, "not_made", _untested(timeline, name)))
        elif name == "grad norm moves" and view.post_clip:
            out.append(Check(name, "not_made", "the grad norm is logged after clipping"))
        elif set(rules) & failed:
            which = ", ".join(sorted(set(rules) & failed))
            out.append(Check(name, "failed", which))
        else:
            out.append(Check(name, "passed", text))
    return tuple(c for c in out if not (c.name == "loss scale holds" and c.status == "not_made"))


def _untested(timeline: Timeline, name: str) -> str:
    """Why a check could not be made although its series is there, "" where it could."""
    view = timeline.view
    finite = 0 if view.loss is None else int(np.count_nonzero(np.isfinite(view.loss.x)))
    scored = view.loss is not None and bool(np.isfinite(view.loss.z).any())
    if name in ("no loss spike or shift", "no slow divergence", "start as expected") and not scored:
        return f"{finite} finite points of the loss: too few"
    if name == "no slow divergence" and view.loss is not None and is_signed(view.loss.x):
        return "a loss that changes sign: lower is not better"
    started = view.loss is not None and first_and_early(view.loss.track) is not None
    if name == "start as expected" and not started:
        return "too few points at the start"
    if name == "learning rate on schedule" and view.lr is not None and view.lr.value.size < 4:
        return f"{view.lr.value.size} points of the learning rate: too few"
    if name == "grad norm moves" and view.grad_track is not None:
        points = int(np.count_nonzero(np.isfinite(view.grad_track.value)))
        if points < 10:
            return f"{points} finite points of the grad norm: too few"
    least = view.limits(PLATEAU, "min_points")
    if name == "no plateau" and finite < least:
        return f"{finite} finite points of the loss: fewer than {least:.0f}"
    if name == "restarts continue" and not any(np.isfinite(r.score) for r in timeline.restarts):
        return f"too few points after the restart at step {timeline.restarts[0].step}"
    return ""


def _has(timeline: Timeline, need: str) -> bool:
    view = timeline.view
    if need == "layers":
        return bool(view.run.layers.get("grad_norm") or view.run.layers.get("param_norm"))
    series = view.run.series.get(need)
    return series is not None and bool(np.isfinite(series.value).any())


def _word(need: str) -> str:
    return {
        "grad_norm": "the grad norm",
        "param_norm": "the parameter norm",
        "lr": "the learning rate",
        "loss_scale": "the loss scale",
    }.get(need, f"the {need}")
