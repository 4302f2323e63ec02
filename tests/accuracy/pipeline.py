"""One log through the tool and through the plain rule, several logs at a time."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from stabdiag import analyze
from stabdiag.columns import understand
from stabdiag.model import LogTable, Run
from stabdiag.readers import read_log
from stabdiag.reporters import json_report
from stabdiag.reporters.view import View
from stabdiag.runs import build_run
from tests.accuracy.answers import Answer
from tests.accuracy.baselines import NO_POINTS, PLAIN_RULES, Points, layers_by_ratio, plain_answer
from tests.accuracy.labels import Label
from tests.accuracy.scoring import FULL_LOG, Logged

EVERY_STEP = 0.95  # share of the loss's rows from which a series counts as logged with the loss

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome:
    """What one labelled log gave.

    `report` is the tool's JSON report, or `{"error": text}`. `baselines` maps the name of each
    plain rule to its answer; empty where they were not asked, or where the log can't be read.
    """

    report: Mapping[str, Any]
    logged: Logged = field(default_factory=Logged)
    baselines: Mapping[str, Answer] = field(default_factory=dict)


def run_all(work: Callable[[Task], Result], tasks: Sequence[Task], processes: int) -> list[Result]:
    """Do `work` for each task in `processes` processes; the order of the tasks is kept."""
    if processes == 1 or len(tasks) < 2:
        return [work(task) for task in tasks]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        return list(pool.map(work, tasks))


def report_of(path: Path) -> Mapping[str, Any]:
    """Analyse one log and return its JSON report, or `{"error": text}` where none came out.

    A crash of the tool is an error of that one log here: it must show in the table, and must not
    end the measurement.
    """
    try:
        report: Mapping[str, Any] = json.loads(json_report.render(analyze(path), View()))
    except Exception as err:
        return {"error": f"{type(err).__name__}: {err}"}
    return report


def read_run(path: Path) -> tuple[LogTable, Run]:
    """Read one log with the tool's own readers, column names and restarts."""
    table = read_log([str(path)])
    return table, build_run(table, understand(table))


def outcome_of(label: Label, *, with_baselines: bool) -> Outcome:
    """Run the tool, and if asked the plain rules, on one labelled log."""
    report = report_of(label.path)
    try:
        table, run = read_run(label.path)
        return Outcome(
            report=report,
            logged=what_is_logged(label, table),
            baselines=baseline_answers(run) if with_baselines else {},
        )
    except Exception as err:
        return Outcome({"error": f"{type(err).__name__}: {err}"})


outcome_with_baselines = partial(outcome_of, with_baselines=True)
outcome_alone = partial(outcome_of, with_baselines=False)


def what_is_logged(label: Label, table: LogTable) -> Logged:
    """Read from the log itself which of the four main series it holds, and how densely.

    The columns are those of the label, so this doesn't depend on how the tool understood them. A
    grad norm after clipping doesn't count.
    """
    columns = {name: label.columns.get(name, "") for name in sorted(FULL_LOG)}
    if label.logging.get("grad_norm", "pre") != "pre":
        columns["grad_norm"] = ""
    present = {name: column for name, column in columns.items() if column in table.kinds}
    loaded = table.load(sorted(set(present.values())))
    counts = {name: int(loaded[column].logged.sum()) for name, column in present.items()}
    enough = EVERY_STEP * counts.get("loss", 0)
    at_all = frozenset(name for name, count in counts.items() if count)
    dense = frozenset(name for name in at_all if counts[name] >= enough)
    return Logged(at_all, dense if label.cadence == 1 else frozenset())


def baseline_answers(run: Run) -> dict[str, Answer]:
    """Answer by each of the plain rules."""
    loss, grad_norm = (
        Points(run.series[name].step, run.series[name].value) if name in run.series else NO_POINTS
        for name in ("loss", "grad_norm")
    )
    layers = partial(layers_by_ratio, layer_points(run))
    return {rule.name: plain_answer(rule, loss, grad_norm, layers) for rule in PLAIN_RULES}


def layer_points(run: Run) -> dict[str, Points]:
    """Collect the per-layer grad norms of a run, layer name -> logged points."""
    collected = {}
    if "grad_norm" in run.layers:
        for block in run.layer_blocks("grad_norm"):
            for index, layer in enumerate(block.layers):
                kept = np.flatnonzero(block.logged[:, index])
                collected[layer] = Points(block.step[kept], block.value[kept, index])
    return collected
