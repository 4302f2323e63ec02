"""Two losses against each other: at equal steps, at equal tokens, held against their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.comparison import Change, Parting
from stabdiag.model import F64, I64, Run
from stabdiag.rules.comparing import PARTED
from stabdiag.rules.limits import Limits
from stabdiag.signals.pairs import common, equal_before, gap, lasting

TOGETHER = 5  # windows: the last quarter decides
SAME_DATA = 0.5  # correlation of the two losses' residuals: most of the noise is common


@dataclass(frozen=True)
class Losses:
    """What the two losses say of each other; None or "unknown" where they can't be compared."""

    change: Change
    parting: Parting | None
    noise: str
    steps: tuple[int, int] | None
    identical: bool = False


def losses_at_equal_steps(base: Run, candidate: Run, limits: Limits) -> Losses:
    """Compare the losses at the steps that both logged."""
    a, b = base.series.get("loss"), candidate.series.get("loss")
    if a is None or b is None:
        if a is b:
            return _unknown("neither log has a loss")
        return _unknown(f"the {'base' if a is None else 'candidate'} has no loss")
    prefix = _equal_prefix(a.step, a.value, b.step, b.value)
    step, x, y = common(a.step, a.value, b.step, b.value)
    span = (int(step[0]), int(step[-1])) if step.size else None
    if prefix is not None and prefix == a.points == b.points:
        same = Change("loss", _level(x), _level(y), "same", "the same at every step")
        return Losses(same, None, "none: they are equal", span, identical=True)
    if step.size < limits(PARTED, "min_points"):
        some = f"only {step.size} common logged steps of the loss"
        return _unknown(some if step.size else "no common steps of the loss", span)
    return _judged(step, x, y, prefix, limits)


def _judged(step: I64, x: F64, y: F64, prefix: int | None, limits: Limits) -> Losses:
    windows = int(min(limits(PARTED, "windows"), step.size // 5))
    seen = gap(x, y, windows=windows)
    paired = _same_data(x, y)
    level = max(abs(float(np.median(x[seen.first[-1] :]))), 1e-12)
    share = limits(PARTED, "min_share_same_data" if paired else "min_share")
    errors, together = limits(PARTED, "min_errors"), min(TOGETHER, windows)
    start = lasting(seen, together=together, errors=errors, least=share * level)
    limit = seen.limit(together=together, errors=errors, least=share * level)
    tail = int(seen.first[-together])
    end_x, end_y = float(np.mean(x[tail:])), float(np.mean(y[tail:]))
    noise = (
        f"{'what the same data leaves' if paired else 'that of two data orders or seeds'}: "
        f"differences of less than {limit:.3g} are none"
    )
    span = (int(step[0]), int(step[-1]))
    if start is None:
        text = f"within the noise at the last common steps ({end_y - end_x:+.3g})"
        return Losses(Change("loss", end_x, end_y, "same", text), None, noise, span)
    worse = end_y > end_x
    text = f"{abs(end_y - end_x) / level:.1%} {'higher' if worse else 'lower'} at equal steps"
    first, last = int(step[seen.first[start]]), int(step[seen.last[start]])
    if prefix:
        first = last = int(step[min(prefix, step.size - 1)])
    parting = Parting(first, last, exact=bool(prefix))
    change = Change("loss", end_x, end_y, "worse" if worse else "better", text)
    return Losses(change, parting, noise, span)


def _equal_prefix(step_a: I64, a: F64, step_b: I64, b: F64) -> int | None:
    """Number of leading points that are equal, None where fewer than 5 are: chance, or none."""
    n = min(a.size, b.size)
    if n == 0 or not np.array_equal(step_a[:n], step_b[:n]):
        return None
    equal = equal_before(a[:n], b[:n])
    return equal if equal >= min(5, n) else None


def _same_data(x: F64, y: F64) -> bool:
    """Whether the two losses go up and down together: the same batches in the same order."""
    dx, dy = np.diff(x, 2), np.diff(y, 2)  # of curvature: two seeds fall alike on any data
    calm = (np.abs(dx) <= 10 * np.median(np.abs(dx))) & (np.abs(dy) <= 10 * np.median(np.abs(dy)))
    dx, dy = dx[calm], dy[calm]
    if dx.size < 10 or not (np.std(dx) > 0 and np.std(dy) > 0):
        return False
    return float(np.corrcoef(dx, dy)[0, 1]) > SAME_DATA


def _level(x: F64) -> float | None:
    return float(np.mean(x[-max(1, x.size // 20) :])) if x.size else None


def _unknown(text: str, steps: tuple[int, int] | None = None) -> Losses:
    return Losses(Change("loss", None, None, "unknown", text), None, "", steps)


def losses_at_equal_tokens(base: Run, candidate: Run, limits: Limits) -> list[Change]:
    """The loss at equal numbers of tokens, where both count them and see other numbers a step."""
    sides = [_by_tokens(run) for run in (base, candidate)]
    if any(side is None for side in sides):
        return []
    (token_a, a), (token_b, b) = (side for side in sides if side is not None)
    if np.array_equal(token_a, token_b):
        return []
    step, x, y = common(token_a, a, token_b, b)
    if step.size < limits(PARTED, "min_points"):
        return [Change("loss at equal tokens", None, None, "unknown", "too few common points")]
    change = _judged(step, x, y, None, limits).change
    text = change.text.replace("at equal steps", "at equal tokens")
    return [Change("loss at equal tokens", change.base, change.candidate, change.judgement, text)]


def _by_tokens(run: Run) -> tuple[I64, F64] | None:
    tokens, loss = run.series.get("tokens"), run.series.get("loss")
    if tokens is None or loss is None:
        return None
    _, at, of = np.intersect1d(loss.step, tokens.step, return_indices=True)
    count = tokens.value[of]
    if at.size < 2 or not np.isfinite(count).all() or not (np.diff(count) > 0).all():
        return None
    return count.astype(np.int64), loss.value[at]
