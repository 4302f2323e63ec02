"""Step 2: the batch at the onset, compared with what was usual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.model import F64, BatchTable
from stabdiag.rules.batch import BATCH_OUTLIER, EMPTY_BATCH, ZERO_LOSS
from stabdiag.signals.baseline import usual_level
from stabdiag.steps.episodes import Draft
from stabdiag.steps.outcome import Outcome, finding, ramp
from stabdiag.steps.timeline import Timeline

TITLE = "Examine the triggering batch"
MOST_IDS = 12  # values of an index column shown


@dataclass(frozen=True)
class Oddity:
    """One batch statistic at a step: its value, what was usual, and how far off it is."""

    statistic: str
    step: int
    value: float
    usual: float
    score: float


def oddities(table: BatchTable, step: int, cadence: int, window: int) -> list[Oddity]:
    """Score each batch statistic at `step` against the rows before it, largest first.

    The row at `step` and those one logged point around it are looked at (a loop may log the next
    batch's data); scores use the median and MAD of up to `window` rows before.
    """
    found = []
    at = int(np.searchsorted(table.step, step - cadence))
    stop = int(np.searchsorted(table.step, step + cadence, side="right"))
    for name, value in table.statistics.items():
        past = _finite(value[max(0, at - window) : at])
        if past.size < 10:
            continue
        middle, spread = usual_level(past)
        here = value[at:stop]
        z = np.where(np.isfinite(here), np.abs(here - middle) / spread, -1.0)
        if z.size == 0 or z.max() < 0:
            continue
        i = int(np.argmax(z))
        found.append(Oddity(name, int(table.step[at + i]), float(here[i]), middle, float(z[i])))
    return sorted(found, key=lambda o: -o.score)


def _finite(value: F64) -> F64:
    return value[np.isfinite(value)]


def batch_before(table: BatchTable | None, draft: Draft, cadence: int) -> Mapping[str, Any]:
    """The data indices and statistics of the rows at and just before an onset, JSON-ready."""
    if table is None:
        return {}
    low = int(np.searchsorted(table.step, draft.onset - 2 * cadence))
    high = int(np.searchsorted(table.step, draft.onset, side="right"))
    if high <= low:
        return {}
    rows = slice(low, high)
    return {
        "steps": [int(s) for s in table.step[rows]],
        "ids": {name: list(column[rows])[:MOST_IDS] for name, column in table.ids.items()},
        "statistics": {
            name: [None if not np.isfinite(v) else float(v) for v in column[rows]]
            for name, column in table.statistics.items()
        },
    }


def examine(timeline: Timeline) -> Outcome:
    """Compare the batch at each serious onset with the batches before it."""
    view = timeline.view
    table = view.run.batch
    findings: list[Finding] = []
    signs: list[Sign] = []
    looked: list[str] = []
    if table is not None:
        looked += [f"batch indices: {', '.join(table.ids)}"] if table.ids else []
        looked += [f"batch statistics: {', '.join(table.statistics)}"] if table.statistics else []
    for number in timeline.judged:
        draft = timeline.episodes[number]
        if draft.kind == "grad_spike":
            continue
        if table is not None and table.statistics:
            _odd_batch(timeline, number, draft, findings, signs)
        _hints_of_empty_targets(number, draft, findings, signs)
    if timeline.loss_episodes or view.loss is not None:
        looked.append("zero and lone non-finite losses")
    reason = ""
    if table is None:
        reason = "no data indices and no batch statistics are logged"
        if view.loss is None:
            return Outcome(2, TITLE, (), (), (), reason)
    return Outcome(
        2, TITLE, tuple(looked), tuple(findings), tuple(signs), reason if not findings else ""
    )


def _odd_batch(
    timeline: Timeline, number: int, draft: Draft, findings: list[Finding], signs: list[Sign]
) -> None:
    view = timeline.view
    assert view.run.batch is not None
    limit = view.limits(BATCH_OUTLIER, "min_score")
    window = int(view.limits(BATCH_OUTLIER, "window"))
    odd = oddities(view.run.batch, draft.onset, view.cadence, window)
    if not odd:
        return
    worst = odd[0]
    if worst.score < limit:
        if worst.score < 0.7 * limit:
            signs.append(
                Sign(
                    "batch_usual",
                    1.0,
                    f"the logged batch statistics at step {draft.onset} are as usual "
                    f"({', '.join(o.statistic for o in odd)})",
                    (draft.onset,),
                    tuple(o.statistic for o in odd),
                    number,
                )
            )
        return
    text = (
        f"{worst.statistic} is {worst.value:.4g} at step {worst.step}, usual is {worst.usual:.4g} "
        f"({worst.score:.0f} robust standard deviations off)"
    )
    lasting = [o.statistic for o in odd if o.score >= limit]
    findings.append(
        finding(
            BATCH_OUTLIER,
            text,
            step=worst.step,
            last_step=worst.step,
            data={o.statistic: {"value": o.value, "usual": o.usual, "score": o.score} for o in odd},
        )
    )
    signs.append(
        Sign(
            "batch_outlier",
            ramp(worst.score, 0.7 * limit, 1.5 * limit),
            text,
            (worst.step,),
            tuple(lasting),
            number,
        )
    )


def _hints_of_empty_targets(
    number: int, draft: Draft, findings: list[Finding], signs: list[Sign]
) -> None:
    zeros = [e for e in draft.events if e.kind == "zero_loss"]
    if zeros:
        steps = tuple(e.onset for e in zeros)
        text = (
            f"loss and grad norm are exactly 0 at step{'s' if len(zeros) > 1 else ''} "
            f"{', '.join(str(s) for s in steps[:6])} between normal ones: no target was left in "
            "the batch"
        )
        findings.append(
            finding(
                ZERO_LOSS, text, step=steps[0], last_step=steps[-1], data={"steps": list(steps)}
            )
        )
        signs.append(Sign("zero_loss", 1.0, text, steps, ("loss", "grad_norm"), number))
    lone = [e for e in draft.events if e.kind == "lone_nan"]
    if lone and draft.kind == "lone_nan":
        steps = tuple(e.onset for e in lone)
        text = f"the loss is not finite at step {steps[0]} alone, and normal on the next step"
        findings.append(
            finding(
                EMPTY_BATCH, text, step=steps[0], last_step=steps[-1], data={"steps": list(steps)}
            )
        )
        signs.append(Sign("lone_nan", 1.0, text, steps, ("loss",), number))
