"""One run against the policy: each line kept, broken or not checked; findings known, old or new."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from stabdiag.findings import Finding, Report
from stabdiag.gate.records import Accepted, Baseline, Gated, Kept, Line, Measured, Policy


def gate(
    log: str,
    report: Report,
    measured: Measured,
    policy: Policy,
    *,
    today: date,
    not_checked: Sequence[str] = (),
    baseline: Baseline | None = None,
) -> Gated:
    """Hold a diagnosed run against a policy.

    `not_checked` are sentences for what `policy.require` names and the log did not let check. With
    a `baseline`, a finding fails the run only where the baseline has
    none of that rule and layer, or a milder one; a limit only where the run is worse than the
    baseline was.
    """
    expired = tuple(
        f"{_place(policy, one)}{one.rule} was accepted until {one.until}: {one.reason}".rstrip(": ")
        for one in policy.accept
        if one.until is not None and one.until < today
    )
    known = [one for one in policy.accept if one.until is None or one.until >= today]
    serious = [
        f for f in report.findings if policy.fail_on is not None and f.severity >= policy.fail_on
    ]
    accepted = tuple(f for f in serious if any(_covers(one, f) for one in known))
    rest = [f for f in serious if f not in accepted]
    old = tuple(f for f in rest if baseline is not None and _had(baseline, f))
    new = tuple(f for f in rest if f not in old)
    lines = (
        _findings_line(policy, new),
        *_limits(policy, measured, baseline.measured if baseline is not None else None),
        *_verdict_lines(policy, report, baseline),
        *(_line(policy, "require", "not_checked", text) for text in not_checked),
    )
    lines += _required(policy, not_checked)
    return Gated(
        log=log,
        passed=all(line.state == "kept" for line in lines),
        lines=lines,
        new=new,
        accepted=accepted,
        old=old,
        expired=expired,
        measured=measured,
        report=report,
        version=report.version,
    )


def _covers(one: Accepted, finding: Finding) -> bool:
    if one.rule != finding.rule or (one.layer is not None and one.layer != finding.layer):
        return False
    if one.first_step is None and one.last_step is None:
        return True
    if finding.step is None:
        return False
    return (one.first_step is None or finding.step >= one.first_step) and (
        one.last_step is None or finding.step <= one.last_step
    )


def _had(baseline: Baseline, finding: Finding) -> bool:
    """Whether the baseline has a finding of that rule and layer that is no milder."""
    return any(
        (rule, layer) == (finding.rule, finding.layer) and severity >= finding.severity
        for rule, layer, severity in baseline.findings
    )


def _findings_line(policy: Policy, new: Sequence[Finding]) -> Line:
    if policy.fail_on is None:
        return _line(policy, "fail_on", "kept", "no finding fails the gate")
    word = policy.fail_on.word
    if not new:
        return _line(policy, "fail_on", "kept", f"no finding of severity {word} or more")
    worst = max(new, key=lambda f: (f.severity, -(f.step or 0)))
    more = f", and {len(new) - 1} more" if len(new) > 1 else ""
    text = f"{worst.rule} {worst.name} ({worst.severity.word}): {worst.message}{more}"
    return _line(policy, "fail_on", "broken", text)


def _limits(policy: Policy, now: Measured, before: Measured | None) -> tuple[Line, ...]:
    """The limits in numbers that the policy sets."""
    lines = []
    rows: tuple[tuple[str, str, float | None, str], ...] = (
        ("max_loss_spikes", "loss_spikes", policy.max_loss_spikes, "loss spikes"),
        ("max_grad_spikes", "grad_spikes", policy.max_grad_spikes, "grad norm spikes"),
        ("no_non_finite", "non_finite", 0 if policy.no_non_finite else None, "non-finite points"),
        ("max_param_growth", "param_growth", policy.max_param_growth, "times parameter growth"),
        ("max_final_loss", "final_loss", policy.max_final_loss, "final loss"),
    )
    for key, name, limit, what in rows:
        if limit is None:
            continue
        value = getattr(now, name)
        if value is None:
            lines.append(_line(policy, key, "not_checked", f"{what}: not in the log"))
            continue
        was = getattr(before, name) if before is not None else None
        over = not value <= limit  # NaN is over any limit
        forgiven = over and was is not None and value <= was
        text = f"{what}: {value:.6g}, at most {limit:g}" + (" (no worse than before)" * forgiven)
        lines.append(_line(policy, key, "broken" if over and not forgiven else "kept", text))
    if policy.min_last_step is not None:
        last = now.last_step
        short = last is None or last < policy.min_last_step
        text = f"last step: {last}, at least {policy.min_last_step}"
        lines.append(_line(policy, "min_last_step", "broken" if short else "kept", text))
    return tuple(lines)


def _verdict_lines(policy: Policy, report: Report, baseline: Baseline | None) -> tuple[Line, ...]:
    lines = []
    if policy.allow_causes:
        cause = report.verdict.cause
        known = cause in policy.allow_causes or (baseline is not None and baseline.cause == cause)
        text = f"cause: {cause}, allowed: {', '.join(policy.allow_causes)}"
        lines.append(_line(policy, "allow_causes", "kept" if known else "broken", text))
    if policy.min_audit_score is not None:
        score = report.audit.score if report.audit is not None else 0
        state: Kept = "kept" if score >= policy.min_audit_score else "broken"
        text = f"audit score: {score}, at least {policy.min_audit_score}"
        lines.append(_line(policy, "min_audit_score", state, text))
    return tuple(lines)


def _required(policy: Policy, not_checked: Sequence[str]) -> tuple[Line, ...]:
    if not policy.require or not_checked:
        return ()
    return (_line(policy, "require", "kept", f"checked: {', '.join(policy.require)}"),)


def _line(policy: Policy, key: str, state: Kept, text: str) -> Line:
    number = policy.lines.get(key)
    place = f"{policy.source}:{number}" if number else ""
    return Line(key.replace("_", "-"), place, state, text)


def _place(policy: Policy, one: Accepted) -> str:
    return f"{policy.source}:{one.line}: " if one.line else ""
