"""Two runs side by side: where they part beyond their noise, what got better and what worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from stabdiag import __version__
from stabdiag.compare.losses import Losses, losses_at_equal_steps, losses_at_equal_tokens
from stabdiag.compare.measures import layer_changes, norm_change, rate_change, values_change
from stabdiag.comparison import Change, Comparison, Judgement, Outcome
from stabdiag.findings import Report, Severity
from stabdiag.model import MAIN_SERIES, Run
from stabdiag.rules.comparing import PARTED
from stabdiag.rules.limits import Limits
from stabdiag.steps.episodes import LOSS_KINDS

_HEALTHS = ("healthy", "inconclusive", "unstable", "diverged")
_RARE = 0.025  # probability below which a count of spikes is another (each side)


@dataclass(frozen=True)
class Side:
    """One of the two: the run and its diagnosis."""

    run: Run
    report: Report


def compare(base: Side, candidate: Side, limits: Limits) -> Comparison:
    """Compare two runs at their common steps, whatever their configurations are.

    Better and worse are said of the loss (at equal steps, at equal tokens, on validation data), of
    spikes, non-finite values and health; other differences are "changed".
    """
    losses = losses_at_equal_steps(base.run, candidate.run, limits)
    changes = [losses.change]
    changes += losses_at_equal_tokens(base.run, candidate.run, limits)
    changes += values_change(base.run, candidate.run, "val_loss", "validation loss", limits)
    changes += [_health(base, candidate), _spikes(base, candidate), _non_finite(base, candidate)]
    for name, title in (("grad_norm", "grad norm"), ("param_norm", "parameter norm")):
        changes += norm_change(base.run, candidate.run, name, title, limits)
    changes += rate_change(base.run, candidate.run)
    changes += layer_changes(base.run, candidate.run, limits)
    new = _serious(candidate.report) - _serious(base.report)
    gone = _serious(base.report) - _serious(candidate.report)
    outcome = _outcome(losses, changes)
    return Comparison(
        version=__version__,
        base=base.report.run,
        candidate=candidate.report.run,
        verdicts=(base.report.verdict, candidate.report.verdict),
        outcome=outcome,
        severity=_severity(outcome, changes, candidate, new),
        summary=_summary(outcome, losses, changes),
        steps=losses.steps,
        parting=losses.parting,
        noise=losses.noise,
        changes=tuple(changes),
        new_findings=tuple(sorted(new)),
        gone_findings=tuple(sorted(gone)),
        notes=_notes(base.run, candidate.run),
        thresholds={k: v for k, v in limits.all().items() if k.startswith(PARTED.id)},
    )


def _health(base: Side, candidate: Side) -> Change:
    a, b = base.report.verdict.health, candidate.report.verdict.health
    way = _HEALTHS.index(b) - _HEALTHS.index(a)
    text = f"{a}, then {b}" if way else f"{a} in both"
    return Change("health", None, None, "worse" if way > 0 else "better" if way else "same", text)


def _spikes(base: Side, candidate: Side) -> Change:
    """Loss spikes; counts differ only beyond chance (conditional binomial test of two rates)."""
    a, b = (sum(e.kind in LOSS_KINDS for e in side.report.episodes) for side in (base, candidate))
    points = [s.points if (s := side.run.series.get("loss")) else 0 for side in (base, candidate)]
    share = points[1] / max(1, sum(points))
    text = f"{a} and {b}"
    if a + b and 0 < share < 1:
        if _at_least(b, a + b, share) < _RARE:
            return Change("loss spikes", a, b, "worse", text)
        if _at_least(a, a + b, 1 - share) < _RARE:
            return Change("loss spikes", a, b, "better", text)
    return Change("loss spikes", a, b, "same", text + (": within chance" if a != b else ""))


def _at_least(k: int, n: int, p: float) -> float:
    """Probability of k or more of n at a chance of p each."""
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def _non_finite(base: Side, candidate: Side) -> Change:
    a, b = (
        sum(info.non_finite for name, info in side.report.run.series.items() if name in MAIN_SERIES)
        for side in (base, candidate)
    )
    judgement: Judgement = "same" if (a > 0) == (b > 0) else "worse" if b else "better"
    return Change("non-finite points", a, b, judgement, f"{a} and {b}")


def _serious(report: Report) -> set[str]:
    return {one.rule for one in report.findings if one.severity >= Severity.WARNING}


def _outcome(losses: Losses, changes: Sequence[Change]) -> Outcome:
    if losses.identical and all(change.judgement == "same" for change in changes):
        return "identical"
    seen = {change.judgement for change in changes}
    if {"better", "worse"} <= seen:
        return "mixed"
    if "worse" in seen:
        return "worse"
    if losses.change.judgement == "unknown":
        return "unknown"
    return "better" if "better" in seen else "same"


def _severity(outcome: Outcome, changes: Sequence[Change], side: Side, new: set[str]) -> str:
    errors = {one.rule for one in side.report.findings if one.severity == Severity.ERROR}
    health = next(change for change in changes if change.name == "health")
    if new & errors or (health.judgement == "worse" and side.report.verdict.health == "diverged"):
        return "error"
    if outcome in ("worse", "mixed") or new:
        return "warning"
    return "info" if any(change.judgement == "changed" for change in changes) else ""


def _summary(outcome: Outcome, losses: Losses, changes: Sequence[Change]) -> str:
    if outcome == "identical":
        return "The two runs are the same, to the last logged digit."
    if outcome == "unknown":
        return f"The log can't tell: {losses.change.text}."
    bad = [f"{c.name} ({c.text})" for c in changes if c.judgement == "worse"]
    good = [f"{c.name} ({c.text})" for c in changes if c.judgement == "better"]
    parts = []
    if bad:
        parts.append(f"worse: {', '.join(bad)}")
    if good:
        parts.append(f"better: {', '.join(good)}")
    if not parts:
        return "No difference beyond the noise in loss, spikes, non-finite values and health."
    return "The candidate is " + "; ".join(parts) + "."


def _notes(base: Run, candidate: Run) -> tuple[str, ...]:
    """What makes the comparison less than it looks."""
    notes = []
    only = [
        f"{name} is logged by the {which} alone"
        for name in ("loss", "val_loss", "grad_norm", "param_norm", "lr")
        for which, one, other in (("base", base, candidate), ("candidate", candidate, base))
        if name in one.series and name not in other.series
    ]
    notes += only
    a, b = base.series.get("loss"), candidate.series.get("loss")
    if a is not None and b is not None and a.points and b.points and a.cadence != b.cadence:
        notes.append(f"the loss is logged every {a.cadence} and every {b.cadence} steps")
    if base.axis != candidate.axis:
        notes.append(f"the base counts {base.axis}s, the candidate {candidate.axis}s")
    return tuple(notes)
