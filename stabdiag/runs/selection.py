"""Which of a log's runs is meant: the one named, the only one, or the one that is evident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.columns import ColumnPlan
from stabdiag.errors import ManyRunsError, UsageError
from stabdiag.model import LogTable, Note
from stabdiag.runs.find import Part, find_runs

# A run is evident when every other has less than this share of its points: a trial beside it.
EVIDENT = 0.1
_MOST_NAMED = 8


@dataclass(frozen=True)
class RunSummary:
    """One run of a log: its name, its first and last step (None when empty), its rows."""

    name: str
    first_step: int | None
    last_step: int | None
    rows: int


def list_runs(table: LogTable, plan: ColumnPlan) -> tuple[RunSummary, ...]:
    """Return the runs in a table, in file order."""
    return tuple(_summary(part) for part in find_runs(table, plan))


def _summary(part: Part) -> RunSummary:
    steps = part.step[part.kinds.train[part.take]]
    steps = steps if steps.size else part.step
    if not steps.size:
        return RunSummary(part.name, None, None, 0)
    return RunSummary(part.name, int(np.min(steps)), int(np.max(steps)), int(part.rows.size))


def chosen_run(
    table: LogTable, parts: Sequence[Part], run: str | None
) -> tuple[Part, tuple[Note, ...]]:
    """The run asked for, or the one that is evident; notes say which others there are.

    Raises:
        ManyRunsError: several runs, none evident and none named.
        UsageError: no run has that name or number.
    """
    names = tuple(part.name for part in parts)
    where = ", ".join(table.files[:3])
    if run is not None:
        by_number = {str(index): part for index, part in enumerate(parts, start=1)}
        # A name that is a number too is the name.
        found = {**by_number, **{part.name: part for part in parts}}.get(run)
        if found is not None:
            return found, ()
        raise UsageError(
            f"{where} holds no run {run!r}", f"choose one with --run: {_listed(names)}"
        )
    if len(parts) == 1:
        return parts[0], ()
    best = max(parts, key=lambda part: part.points)
    rest = [part for part in parts if part is not best]
    if all(part.points < EVIDENT * best.points for part in rest):
        text = f"of {len(parts)} runs {best.name} has nearly all points; left out: "
        return best, (Note("guessed", text + _listed([p.name for p in rest]), len(rest)),)
    raise ManyRunsError(
        f"{where} holds {len(parts)} runs: {_listed([f'{i}: {n}' for i, n in enumerate(names, 1)])}",
        "choose one with --run NAME or --run NUMBER, counted from 1",
        names,
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
