"""Signs of the whole run: spikes that recur, a slow rise, a plateau, zeros, growing logits."""

from __future__ import annotations

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding, Severity
from stabdiag.rules.batch import ZERO_LOSS
from stabdiag.rules.timeline import DIVERGENCE, LOGIT_GROWTH, PLATEAU, RECURRENT
from stabdiag.signals.median import median
from stabdiag.signals.trend import slow_rise
from stabdiag.steps.initialization import vocabulary_of
from stabdiag.steps.outcome import finding, ramp
from stabdiag.steps.restart_signs import at_restart
from stabdiag.steps.timeline import Timeline
from stabdiag.steps.tracks import is_signed, track
from stabdiag.steps.view import View

CHANCE_POINTS = 20  # at a uniform guess from first to last, no more points are needed
LARGEST_ENTROPY = 11.0  # nats: no cross-entropy of text stays above it
SAME_DISTANCE = 0.02  # spread of the distances between spikes that come with a period

COMMON_VOCABULARIES = (
    2, 10, 100, 256, 1000, 28996, 30522, 32000, 32064, 32128, 49152, 50257, 50265, 50280, 50304,
    50432, 65536, 100277, 128000, 128256, 151643, 151936, 152064, 256000, 256128, 262144,
)  # fmt: skip


def read(timeline: Timeline) -> tuple[list[Finding], list[Sign]]:
    """Findings and signs that no single episode carries."""
    findings: list[Finding] = []
    signs: list[Sign] = []
    _recurrent(timeline, findings, signs)
    _diverged(timeline, findings, signs)
    _plateau(timeline, findings, signs)
    _stuck(timeline, findings, signs)
    _all_zero(timeline.view, findings, signs)
    _logits(timeline, findings, signs)
    return findings, signs


def _recurrent(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """Spikes that come again and again: with a period it is the data's, else the optimizer's."""
    spikes = [
        d
        for i, d in enumerate(timeline.episodes)
        if d.has("loss_spike") and at_restart(timeline, i) is None
    ]
    if len(spikes) < timeline.view.limits(RECURRENT, "min_spikes"):
        return
    onsets = np.array([d.onset for d in spikes])
    text = f"the loss spiked {len(spikes)} times, first at step {onsets[0]}, last at {onsets[-1]}"
    gaps = np.diff(onsets)
    period = float(np.median(gaps))
    steps = tuple(int(s) for s in onsets[:6])
    close = np.abs(gaps - period) <= max(SAME_DISTANCE * period, timeline.view.cadence)
    if gaps.size >= 3 and bool(close.all()) and period > 10 * timeline.view.cadence:
        text += f", every {period:.0f} steps"
        signs.append(Sign("periodic", 1.0, text, steps, ("loss",)))
    else:
        signs.append(Sign("recurrent", ramp(len(spikes), 1, 4), text, steps, ("loss",)))
    findings.append(
        finding(
            RECURRENT,
            text,
            step=int(onsets[0]),
            last_step=int(onsets[-1]),
            data={"spikes": len(spikes), "period": period},
        )
    )


def _diverged(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    view = timeline.view
    if view.loss is None:
        return
    unit = view.loss.unit
    if timeline.diverged is not None:
        e = timeline.diverged
        text = (
            f"the loss ends at {e.last:.4g}, {e.rise / unit:.0%} of its range above its best level "
            f"{e.best:.4g}"
        )
        data = {"best": e.best, "last": e.last}
        findings.append(finding(DIVERGENCE, text, step=timeline.diverged_step, data=data))
        at = (timeline.diverged_step or 0,)
        signs.append(Sign("diverged", ramp(e.rise / unit, 0.1, 0.3), text, at, ("loss",)))
        return
    if is_signed(view.loss.x) or timeline.loss_episodes:
        return
    slow = slow_rise(view.loss.x, floor=view.loss.floor)
    if slow is not None and slow.rise >= 0.01 * unit:
        step = int(view.loss.track.step[slow.best_index])
        text = (
            f"the loss rises slowly from {slow.best:.4g} at step {step} to {slow.last:.4g} at the "
            "end, level by level"
        )
        findings.append(
            finding(
                DIVERGENCE,
                text,
                step=step,
                severity=Severity.WARNING,
                data={"best": slow.best, "last": slow.last},
            )
        )
        signs.append(Sign("slow_rise", 1.0, text, (step,), ("loss",)))


def _plateau(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """A loss that hardly moved from the start of training on.

    Only from the start: a late stretch of a long run, or a fine-tune, moves little in health. Full
    strength where it sits at a uniform guess or the gradients died.
    """
    view = timeline.view
    if view.loss is None:
        return
    limits = view.limits
    x, step = view.loss.x[np.isfinite(view.loss.x)], view.loss.track.step
    if x.size < CHANCE_POINTS or float(np.min(x)) <= 0:
        return
    if _late(view) or _adversarial(view):
        return
    edge = max(5, x.size // 20)
    first, last = median(x[:edge]), median(x[-edge:])
    best = min(median(part) for part in np.array_split(x, max(2, x.size // edge)))
    gain = 1.0 - best / first
    most = limits(PLATEAU, "max_gain")
    text = f"the loss gained only {gain:.1%} over {x.size} points ({first:.4g} to {last:.4g})"
    vocabulary = _vocabulary(view, last) if gain < 2 * most else None
    if x.size < limits(PLATEAU, "min_points") and vocabulary is None:
        return
    if vocabulary is not None:
        text += f"; it sits at ln({vocabulary}), a uniform guess"
    strength = 1.0 - ramp(gain, most, 2 * most)
    constant = float(np.ptp(x)) == 0.0  # no noise at all: no fine-tune does that
    if vocabulary is None and not constant and not _dead(view):
        strength *= 0.3
    if strength > 0 and not _grows(view):
        signs.append(Sign("plateau", strength, text, (), ("loss",)))
    if gain < most:
        sure = Severity.WARNING if strength > 0.5 else Severity.INFO
        data = {"gain": gain}
        ends = int(step[0]), int(step[-1])
        findings.append(
            finding(PLATEAU, text, step=ends[0], last_step=ends[1], severity=sure, data=data)
        )


def _stuck(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """A run from scratch that falls to the unigram level at once and then learns nothing more."""
    view = timeline.view
    if view.loss is None or is_signed(view.loss.x) or _adversarial(view):
        return
    x, step = view.loss.x[np.isfinite(view.loss.x)], view.loss.track.step
    if x.size < 2 * view.limits(PLATEAU, "min_points") or _late(view):
        return
    first, tenth = float(x[0]), x.size // 10
    if first <= 0:
        return
    level = median(x[tenth : 2 * tenth])
    last = median(x[-tenth:])
    gain = 1.0 - last / level if level > 0 else 1.0
    strength = ramp(first, 4.0, 5.0) * (1.0 - ramp(abs(gain), 0.06, 0.12))
    strength *= ramp(level / first, 0.35, 0.5) * (1.0 if level <= LARGEST_ENTROPY else 0.0)
    if strength <= 0:
        return
    text = (
        f"the loss falls from {first:.4g} to {level:.4g} in the first tenth of the run and gains "
        f"only {gain:.1%} in the rest"
    )
    signs.append(Sign("stuck", strength, text, (), ("loss",)))
    if strength > 0.5:
        data = {"gain": gain}
        ends = int(step[0]), int(step[-1])
        findings.append(finding(PLATEAU, text, step=ends[0], last_step=ends[1], data=data))


def _adversarial(view: View) -> bool:
    """Whether two losses play against each other: there a level loss is the balance."""
    columns = " ".join(s.column.lower() for s in view.run.series.values())
    return any(word in columns for word in ("d_loss", "loss_d", "disc_loss", "loss_disc"))


def _late(view: View) -> bool:
    """Whether the log is a late stretch of a run, or a fine-tune: little moves there in health."""
    assert view.loss is not None
    step = view.loss.track.step
    late = step[0] > 0.1 * step[-1] and step[0] > 10 * view.cadence
    return bool(late and not _offset(view))


def _offset(view: View) -> bool:
    """Whether the log starts late but training starts with it: the rate still warms up."""
    lr = view.lr
    if lr is None or lr.value.size < 10:
        return False
    return bool(np.isfinite(lr.value[:10]).all() and lr.value[9] > 1.5 * lr.value[0])


def _grows(view: View) -> bool:
    """Whether the grad norm rises many times over: then gradients don't vanish."""
    if view.grad is None:
        return False
    x = view.grad.x[np.isfinite(view.grad.x)]
    return bool(x.size >= 10 and np.median(x[-5:]) > np.median(x[:5]) + np.log(5.0))


def _dead(view: View) -> bool:
    """Whether the grad norm fell to a small share of its first value."""
    if view.grad is None:
        return False
    x = view.grad.x[np.isfinite(view.grad.x)]
    return bool(x.size >= 20 and np.median(x[-10:]) < np.median(x[:5]) - np.log(5.0))


def _vocabulary(view: View, level: float) -> int | None:
    """The size of which `level` is the uniform guess, of the stated or the common ones."""
    stated = vocabulary_of(view.run)
    sizes = (stated,) if stated is not None else COMMON_VOCABULARIES
    near = view.limits(PLATEAU, "uniform_tolerance")
    return next((v for v in sizes if abs(level / np.log(v) - 1.0) <= near), None)


def _all_zero(view: View, findings: list[Finding], signs: list[Sign]) -> None:
    """A loss of exactly 0 over much of the run with a grad norm of 0: nothing to learn from."""
    if view.loss is None:
        return
    x = view.loss.x
    share = float(np.mean(x == 0.0)) if x.size else 0.0
    if x.size < 5 or share < 0.5 or view.loss.track.inferred.any():
        return
    norm = view.grad_track
    if norm is not None and float(np.mean(norm.value == 0.0)) < 0.5:
        return
    lr = view.lr
    if lr is not None and not bool((lr.value > 0).any()):
        return
    first = int(view.loss.track.step[int(np.flatnonzero(x == 0.0)[0])])
    text = f"the loss is exactly 0 in {share:.0%} of the points: no target was left in the batches"
    findings.append(finding(ZERO_LOSS, text, step=first, data={"share": share}))
    signs.append(Sign("zero_loss", 1.0, text, (first,), ("loss", "grad_norm")))


def _logits(timeline: Timeline, findings: list[Finding], signs: list[Sign]) -> None:
    """Attention or output logits that grow many times before the loss does."""
    view = timeline.view
    main = timeline.main
    for name in ("attn_logit_max", "logit_max"):
        t = track(view.run, name)
        if t is None:
            continue
        stop = t.at(main.segment, main.onset) if main is not None else t.value.size
        y = np.abs(t.value[:stop])
        y = y[np.isfinite(y) & (y > 0)]
        if y.size < 10:
            continue
        edge = max(2, y.size // 10)
        low, high = float(np.median(y[:edge])), float(np.median(y[-edge:]))
        text = f"{name} grew from {low:.3g} to {high:.3g}"
        limit = view.limits(LOGIT_GROWTH, "min_logit")
        if high < 3.0 * low:
            continue
        if high >= limit:
            data = {"from": low, "to": high}
            findings.append(finding(LOGIT_GROWTH, text, step=int(t.step[0]), data=data))
        strength = ramp(np.log(high), np.log(0.5 * limit), np.log(2.0 * limit))
        if strength > 0:
            signs.append(Sign("logit_growth", strength, text, (), (name,)))
