"""The numbers of a run that a policy bounds."""

from __future__ import annotations

import numpy as np

from stabdiag.findings import Report
from stabdiag.gate.records import Measured
from stabdiag.model import MAIN_SERIES, Run, Series
from stabdiag.rules.timeline import GRAD_SPIKE
from stabdiag.signals.trend import growth
from stabdiag.steps.episodes import LOSS_KINDS

_LAST = 10  # logged points whose median is the final loss: one batch is no level
_GROWTH_STEPS = 50


def measured(run: Run, report: Report) -> Measured:
    """Return what a policy may bound, None where the log does not hold it.

    The final loss is the median of the last 10 logged points, Inf or NaN where most of these are
    not finite. The parameter growth is the norm at the end over that at the start.
    """
    loss, norm = run.series.get("loss"), run.series.get("param_norm")
    grad = run.series.get("grad_norm")
    kinds = [one.kind for one in report.episodes]
    grew = growth(norm.step, norm.value, window_steps=_GROWTH_STEPS) if norm is not None else None
    finite = [s for name in MAIN_SERIES if (s := run.series.get(name))]
    return Measured(
        loss_spikes=sum(k in LOSS_KINDS for k in kinds) if loss else None,
        grad_spikes=sum(f.rule == GRAD_SPIKE.id for f in report.findings) if grad else None,
        non_finite=sum(series.non_finite for series in finite) if finite else None,
        param_growth=grew.ratio if grew is not None else None,
        final_loss=_final(loss) if loss is not None and loss.points else None,
        last_step=report.run.last_step,
    )


def _final(loss: Series) -> float:
    last = loss.value[-_LAST:]
    finite = last[np.isfinite(last)]
    return float(np.median(finite)) if 2 * finite.size >= last.size else float("nan")
