"""What the restarts say: a change of level, spikes at each of them, another normalisation."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.model import F64
from stabdiag.rules.timeline import EXACT_RATIO, RESUME_CHANGE
from stabdiag.steps.outcome import finding
from stabdiag.steps.restarts import Restart
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import Track

NEAR_POINTS = 5  # an onset so close behind a restart belongs to it
SAME_FACTOR = 1.25  # the grad norm is noisy: its factor may differ so much from the loss's
SIDE_POINTS = 10  # logged points on each side of an exact change of scale


def read(timeline: Timeline) -> tuple[list[Finding], list[Sign]]:
    """Findings and signs of the restarts, and of an exact change of scale."""
    findings: list[Finding] = []
    signs: list[Sign] = []
    _levels(timeline, findings, signs)
    _onsets(timeline, signs)
    _exact_ratio(timeline, findings, signs)
    return findings, signs


def _levels(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    for r in timeline.restarts:
        if not _moved(timeline, r):
            continue
        word = "falls" if r.change < 0 else "rises"
        text = (
            f"at the restart at step {r.step} the loss {word} by {abs(r.change):.0%} of its range "
            f"({abs(r.score):.0f} standard errors)"
        )
        data = {"change": r.change, "score": r.score}
        findings.append(finding(RESUME_CHANGE, text, step=r.step, data=data))
        name = "drop_at_restart" if r.change < 0 else "rise_at_restart"
        signs.append(Sign(name, 1.0, text, (r.step,), ("loss",)))


def at_restart(timeline: Timeline, number: int) -> int | None:
    """The step of the restart that an episode began at, None where there is none."""
    view, draft = timeline.view, timeline.episodes[number]
    for r in timeline.restarts:
        behind = draft.onset - r.step
        if draft.segment == r.segment and -view.cadence <= behind <= NEAR_POINTS * view.cadence:
            return r.step
    return None


def level_moved_at(timeline: Timeline, number: int) -> bool:
    """Whether an episode is the change of level that SD105 reports at a restart."""
    step = at_restart(timeline, number)
    return any(r.step == step and _moved(timeline, r) for r in timeline.restarts)


def _moved(timeline: Timeline, r: Restart) -> bool:
    limits = timeline.view.limits
    least, score = limits(RESUME_CHANGE, "min_change"), limits(RESUME_CHANGE, "min_score")
    return bool(np.isfinite(r.score) and abs(r.score) >= score and abs(r.change) >= least)


def _onsets(timeline: Timeline, signs: list[Sign]) -> None:
    """Episodes that began at a restart; at most of them, the restarts themselves are to blame."""
    hit: set[int] = set()
    elsewhere = 0
    for i in timeline.judged:
        step = at_restart(timeline, i)
        if step is None:
            elsewhere += timeline.episodes[i].loss_event is not None
            continue
        hit.add(step)
        behind = timeline.episodes[i].onset - step
        after = f"{behind} step{'s' if behind > 1 else ''} after" if behind else "with"
        text = f"it began {after} the restart at step {step}"
        signs.append(Sign("at_restart", 1.0, text, (step,), ("loss",), i))
    count = len(timeline.restarts)
    if count >= 2 and len(hit) >= 0.8 * count and elsewhere <= len(hit) // 2:
        text = f"a spike follows {len(hit)} of the {count} restarts"
        steps = tuple(r.step for r in timeline.restarts[:6])
        signs.append(Sign("at_every_restart", 1.0, text, steps, ("loss",)))


def _exact_ratio(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """Loss or grad norm that is, from one point on, an exact multiple of what it was.

    The number of accumulated batches or of devices went into the logged value: the run itself
    did not change.
    """
    view = timeline.view
    main = timeline.main
    if view.loss is None or main is None or main.loss_event is None:
        return
    if main.loss_event.spike is None or main.loss_event.end is not None:
        return
    at = main.loss_event.index
    ratio = _multiple(view.loss.x, at)
    if ratio is None:
        return
    if view.grad is None:  # without a second witness a factor is just a factor
        return
    at = _same_point(view.grad.track, main.loss_event.onset)
    other = _ratio_at(np.exp(view.grad.x), at)
    if other is None or abs(np.log(other / ratio)) > np.log(SAME_FACTOR):
        return
    norm = f", the grad norm {other:.3g}"
    text = (
        f"from step {main.loss_event.onset} on the loss is {ratio} times what it was{norm}: "
        "another normalisation (accumulation, number of devices), not another course"
    )
    data = {"ratio": ratio}
    findings.append(finding(EXACT_RATIO, text, step=main.loss_event.onset, data=data))
    signs.append(Sign("exact_ratio", 1.0, text, (main.loss_event.onset,), ("loss",)))


def _same_point(t: Track, step: int) -> int:
    return int(np.searchsorted(t.step, step))


def _ratio_at(x: F64, at: int) -> float | None:
    """Median after over median before, None with fewer than 5 positive points on a side."""
    before, after = x[max(0, at - SIDE_POINTS) : at], x[at : at + SIDE_POINTS]
    before, after = (v[np.isfinite(v) & (v > 0)] for v in (before, after))
    if before.size < 5 or after.size < 5:
        return None
    return float(np.median(after) / np.median(before))


def _multiple(x: F64, at: int) -> float | None:
    """The integer by which the level changes at `at` for good, None if it is none.

    Levels of the points on each side, and the spread of the ratio over the rest of the series:
    a factor keeps the relative noise, a real change does not.
    """
    before, after = x[max(0, at - SIDE_POINTS) : at], x[at : at + SIDE_POINTS]
    tail = x[at:]
    before, after, tail = (v[np.isfinite(v) & (v > 0)] for v in (before, after, tail))
    if before.size < 5 or after.size < 5 or tail.size < 10:
        return None
    ratio = float(np.median(after) / np.median(before))
    for k in range(2, 65):
        if abs(ratio / k - 1.0) < 0.02:
            noise = float(np.std(np.diff(np.log(before)))) if before.size > 2 else 0.0
            later = float(np.std(np.diff(np.log(after))))
            alike = 0.3 * noise <= later < 2.0 * noise + 0.01
            held = abs(float(np.median(tail[-SIDE_POINTS:]) / np.median(after)) - 1.0) < 0.25
            return float(k) if alike and held else None
    return None
