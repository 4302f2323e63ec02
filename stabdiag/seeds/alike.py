"""Whether several runs are one experiment: what differs between them beside the seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stabdiag.errors import InputError
from stabdiag.model import Run
from stabdiag.signals.pairs import common, rates_apart

_MAIN = ("loss", "grad_norm", "lr")


def notes_on(runs: Sequence[Run]) -> list[str]:
    """Say what makes the runs less comparable: cadence, series, learning rate, layers, reach.

    Raises:
        InputError: two of them have no common steps, so that nothing can be the same place.
    """
    first, notes = runs[0], []
    for run in runs[1:]:
        if not _overlap(first, run):
            raise InputError(
                f"{run.files[0]}: no steps in common with {first.files[0]}",
                "name seeds of one experiment, or choose common steps with --steps A:B",
            )
    for name in _MAIN:
        having = [run for run in runs if name in run.series]
        if having and len(having) < len(runs):
            notes.append(f"{name} is logged by {len(having)} of {len(runs)} runs")
        cadences = sorted({run.series[name].cadence for run in having})
        if name == "loss" and len(cadences) > 1:
            notes.append(f"the loss is logged every {' and every '.join(map(str, cadences))} steps")
    other = [run.files[0] for run in runs[1:] if _other_rate(first, run)]
    if other:
        notes.append(f"another learning rate than {first.files[0]}: {', '.join(other)}")
    if _models(runs) > 1:
        notes.append("the runs have different layers: not one model")
    return notes


def more_than_the_seed(runs: Sequence[Run]) -> str:
    """A sentence to end the summary with where the runs differ in more than the seed, else ""."""
    what = ["model"] if _models(runs) > 1 else []
    what += ["learning rate"] if any(_other_rate(runs[0], run) for run in runs[1:]) else []
    return f" They differ in more than the seed: {' and '.join(what)}." if what else ""


def _models(runs: Sequence[Run]) -> int:
    """How many sets of layers there are among the runs that log layers."""
    layers = {tuple(sorted({n for names in run.layers.values() for n in names})) for run in runs}
    return len(layers - {()})


def _overlap(a: Run, b: Run) -> bool:
    spans = [[(s.first_step, s.last_step) for s in run.segments] for run in (a, b)]
    if not all(spans):
        return False
    (first_a, last_a), (first_b, last_b) = (
        (min(x for x, _ in span), max(y for _, y in span)) for span in spans
    )
    return first_a <= last_b and first_b <= last_a


def _other_rate(a: Run, b: Run) -> bool:
    if "lr" not in a.series or "lr" not in b.series:
        return False
    x, y = a.series["lr"], b.series["lr"]
    _, rate, other = common(x.step, x.value, y.step, y.value)
    return bool(np.any(rates_apart(rate, other)))
