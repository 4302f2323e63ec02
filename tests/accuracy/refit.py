"""Refit the weight table from labelled runs: `python -m tests.accuracy.refit --bench DIR ...`.

The ledger is a multinomial logistic model: a cause's score is its prior plus the sum of weight
times strength over the signs. The fit minimises the negative log likelihood of the label (an
acceptable alternative counts as right, the label itself a little more), plus a ridge that pulls
each weight towards the reasoned one times a common factor. Signs of weights never change, weights
that are not in the reasoned table stay 0, everything is rounded to 0.1 nats. Factor and ridge are
chosen by cross-validation over configurations, so that no seed of a run is tested on its sisters.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stabdiag import read_run
from stabdiag.causes.ledger import joined, scaled, strongest
from stabdiag.causes.weights import CLASSES
from stabdiag.diagnose import examine
from stabdiag.errors import StabdiagError
from stabdiag.settings import Settings
from tests.accuracy.labels import Label, read_labels
from tests.accuracy.reasoned import PRIOR, WEIGHTS

F64 = NDArray[np.float64]
WEIGHTS_FILE = Path(__file__).resolve().parents[2] / "stabdiag/causes/weights.py"
OWN_CAUSE = 0.3  # share of the likelihood that asks for the label itself, not an alternative
FOLDS = 5
GRID = [(factor, ridge) for factor in (1.0, 1.2, 1.4, 1.6) for ridge in (0.3, 1.0, 3.0)]
STEPS, RATE = 1500, 0.05  # of Adam: plain, and enough for some hundred weights


@dataclass(frozen=True)
class Table:
    """Weights [S, C] over signs and causes, priors [C]."""

    weights: F64
    prior: F64


@dataclass(frozen=True)
class Runs:
    """Signs x [N, S], what is acceptable [N, C], the label itself [N, C], and the fold [N]."""

    x: F64
    acceptable: F64
    own: F64
    fold: NDArray[np.int64]


def shows(label: Label) -> bool:
    """Whether a run's fault left a trace in what was logged: only such a run can teach."""
    return label.visible is None or any(label.visible.values())


def signs_of(label: Label) -> dict[str, float] | None:
    """Strength of each deciding sign of a run, None where it can't be read."""
    try:
        seen = examine(read_run(label.path), Settings())
    except StabdiagError:
        return None
    return {name: sign.strength for name, sign in strongest(scaled(joined(seen.deciding))).items()}


def gather(labels: Sequence[Label], processes: int) -> Runs:
    """Look at every run and put its signs beside its label."""
    with ProcessPoolExecutor(processes) as pool:
        seen = list(pool.map(signs_of, labels, chunksize=4))
    kept = [(a, s) for a, s in zip(labels, seen, strict=True) if s is not None]
    names = list(WEIGHTS)
    x = np.array([[s.get(n, 0.0) for n in names] for _, s in kept])
    acceptable = np.zeros((len(kept), len(CLASSES)))
    own = np.zeros_like(acceptable)
    groups = [configuration(label) for label, _ in kept]
    order = {g: i for i, g in enumerate(dict.fromkeys(groups))}
    for i, (label, _) in enumerate(kept):
        own[i, CLASSES.index(label.cause)] = 1.0
        for cause in (label.cause, *label.acceptable):
            acceptable[i, CLASSES.index(cause)] = 1.0
    fold = np.array([order[g] % FOLDS for g in groups])
    return Runs(x, acceptable, own, fold)


def configuration(label: Label) -> str:
    """What runs share that must not be split between fitting and testing."""
    return label.group or re.sub(r"[_\d]+$", "", label.run_id)


def reasoned(factor: float) -> Table:
    """The reasoned table times a common factor."""
    w = np.array([[WEIGHTS[n].get(c, 0.0) for c in CLASSES] for n in WEIGHTS])
    return Table(factor * w, factor * np.array([PRIOR[c] for c in CLASSES]))


def probabilities(x: F64, table: Table) -> F64:
    """The softmax over the causes' sums, [N, C]."""
    score = x @ table.weights + table.prior
    share = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def fit(runs: Runs, rows: NDArray[np.bool_], anchor: Table, ridge: float) -> Table:
    """Fit the weights on some of the runs, by Adam with the signs of the anchor."""
    x, acceptable, own = runs.x[rows], runs.acceptable[rows], runs.own[rows]
    sign = np.sign(anchor.weights)
    parameters = [anchor.weights.copy(), anchor.prior.copy()]
    anchors = [anchor.weights, anchor.prior]
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    for t in range(1, STEPS + 1):
        share = probabilities(x, Table(*parameters))
        right = share * acceptable
        right /= right.sum(axis=1, keepdims=True)
        wrong = share - ((1 - OWN_CAUSE) * right + OWN_CAUSE * own)
        gradients = [x.T @ wrong * (sign != 0), wrong.sum(axis=0)]
        for k, gradient in enumerate(gradients):
            g = gradient + ridge * (parameters[k] - anchors[k])
            first[k] = 0.9 * first[k] + 0.1 * g
            second[k] = 0.999 * second[k] + 0.001 * g * g
            step = first[k] / (1 - 0.9**t) / (np.sqrt(second[k] / (1 - 0.999**t)) + 1e-8)
            parameters[k] = parameters[k] - RATE * step
        kept = np.where(sign > 0, np.maximum(parameters[0], 0), np.minimum(parameters[0], 0))
        parameters[0] = kept * (sign != 0)
    return Table(np.round(parameters[0], 1), np.round(parameters[1] - parameters[1].mean(), 1))


def held_out(runs: Runs, factor: float, ridge: float) -> F64:
    """Probabilities of each run by a table that was fitted without its fold, [N, C]."""
    out = np.zeros_like(runs.own)
    for k in range(FOLDS):
        test = runs.fold == k
        if test.any():
            table = fit(runs, ~test, reasoned(factor), ridge)
            out[test] = probabilities(runs.x[test], table)
    return out


def loss_of(runs: Runs, share: F64) -> float:
    """Mean negative log likelihood of what is acceptable."""
    right = np.maximum((share * runs.acceptable).sum(axis=1), 1e-9)
    return float(-np.mean(np.log(right)))


def summary(runs: Runs, share: F64) -> str:
    """Accuracy, quiet, calibration and Brier score in one line."""
    index = share.argmax(axis=1)
    top = share.max(axis=1)
    right = runs.acceptable[np.arange(index.size), index] > 0
    faulty = runs.own[:, CLASSES.index("none")] == 0
    none = index == CLASSES.index("none")
    edges = np.minimum((top * 10).astype(int), 9)
    gaps = [
        np.mean(edges == b) * abs(top[edges == b].mean() - right[edges == b].mean())
        for b in range(10)
        if (edges == b).any()
    ]
    sure = top >= 0.9
    calibration = f"ECE {sum(gaps):.3f}, Brier {np.mean((top - right) ** 2):.3f}"
    return (
        f"faulty {right[faulty].mean():.3f} of {faulty.sum()}, "
        f"quiet {none[~faulty].mean():.3f} of {(~faulty).sum()}, {calibration}, "
        f"wrong at >= 0.9: {np.mean(~right[sure]) if sure.any() else 0:.3f} of {sure.sum()}, "
        f"log loss {loss_of(runs, share):.3f}"
    )


def table_text(table: Table) -> str:
    """The two dictionaries of weights.py."""
    lines = ["PRIOR: dict[str, float] = {"]
    lines += [f'    "{c}": {v:.1f},' for c, v in zip(CLASSES, table.prior, strict=True)]
    lines += ["}", "", "WEIGHTS: dict[str, dict[str, float]] = {"]
    for name, row in zip(WEIGHTS, table.weights, strict=True):
        cells = [f'"{c}": {v:.1f}' for c, v in zip(CLASSES, row, strict=True) if v]
        lines.append(f'    "{name}": {{{", ".join(cells)}}},')
    return "\n".join([*lines, "}", ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Cross-validate, fit on all runs, print, and with --write put the table into the package."""
    parser = argparse.ArgumentParser(description="Refit the weights from labelled runs.")
    parser.add_argument("--bench", type=Path, action="append", required=True, metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--factor", type=float, help="instead of the chosen one")
    parser.add_argument("--ridge", type=float, help="instead of the chosen one")
    parser.add_argument("--write", action="store_true", help=f"rewrite {WEIGHTS_FILE.name}")
    options = parser.parse_args(arguments)
    labels = [label for bench in options.bench for label in read_labels(bench) if shows(label)]
    runs = gather(labels, options.jobs)
    for factor in (1.0, 1.4):
        print(f"reasoned x {factor}: {summary(runs, probabilities(runs.x, reasoned(factor)))}")
    best = (np.inf, 1.0, 1.0)
    for factor, ridge in GRID if None in (options.factor, options.ridge) else ():
        share = held_out(runs, factor, ridge)
        print(f"held out, x {factor}, ridge {ridge}: {summary(runs, share)}")
        best = min(best, (loss_of(runs, share), factor, ridge))
    factor = options.factor if options.factor is not None else best[1]
    ridge = options.ridge if options.ridge is not None else best[2]
    everything = np.ones(runs.fold.size, dtype=np.bool_)
    table = fit(runs, everything, reasoned(factor), ridge)
    print(f"chosen x {factor}, ridge {ridge}: {summary(runs, probabilities(runs.x, table))}")
    if options.write:
        text = WEIGHTS_FILE.read_text(encoding="utf-8")
        head = text[: text.index("PRIOR: dict")]
        WEIGHTS_FILE.write_text(head + table_text(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
