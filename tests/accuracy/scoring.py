"""Answers against labels: every measure of the labelled runs, as plain numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.accuracy.answers import FAILED, NAMED_LAYERS, Answer
from tests.accuracy.labels import Label, same_layer
from tests.accuracy.shares import Share, brier, calibration_error, share

SURE = 0.9  # probability from which an answer counts as said with confidence
NEAR_POINTS = 1  # logged points between the named and the true onset
CLOSE_POINTS = 5
FULL_LOG = frozenset({"loss", "grad_norm", "lr", "param_norm"})


@dataclass(frozen=True)
class Logged:
    """Which of loss, grad norm (before clipping), LR and param norm the log holds.

    `at_all`: at least once. `every_step`: at every step that has a loss, cadence 1.
    """

    at_all: frozenset[str] = frozenset()
    every_step: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Judged:
    """One answer, judged.

    `onset_points`: distance to the nearest true onset in logged points; infinite where none was
    named, None where the run has no onset after its start. `layer_place`: place (from 0) of the
    first layer at fault among those named; infinite when not among the first three, None where no
    layer is at fault.
    """

    label: Label
    answer: Answer
    logged: Logged
    right: bool
    onset_points: float | None
    layer_place: float | None


def judge(label: Label, answer: Answer, logged: Logged) -> Judged:
    """Compare one answer with its label."""
    return Judged(
        label=label,
        answer=answer,
        logged=logged,
        right=answer.cause in (label.cause, *label.acceptable),
        onset_points=_onset_points(label, answer),
        layer_place=_layer_place(label, answer),
    )


def _onset_points(label: Label, answer: Answer) -> float | None:
    if not label.onsets:
        return None
    if answer.onset_step is None:
        return math.inf
    return min(abs(answer.onset_step - step) for step in label.onsets) / label.cadence


def _layer_place(label: Label, answer: Answer) -> float | None:
    if not label.faulty or not label.layers:
        return None
    for place, named in enumerate(answer.layers[:NAMED_LAYERS]):
        if any(same_layer(named, label, truth) for truth in label.layers):
            return place
    return math.inf


@dataclass(frozen=True)
class Measure:
    """One line of the table: a share, or a number over `n` runs (NaN: nothing to measure)."""

    name: str
    share: Share | None = None
    number: float = math.nan
    n: int = 0


@dataclass(frozen=True)
class Group:
    """The runs of one kind: how many, and how many of them were answered right."""

    name: str
    right: Share
    right_faulty: Share
    inconclusive: Share


@dataclass(frozen=True)
class Scores:
    """All measures of one set of answers."""

    measures: tuple[Measure, ...]
    recall: Mapping[str, Share]
    groups: Mapping[str, tuple[Group, ...]] = field(default_factory=dict)


def score(judged: Sequence[Judged]) -> Scores:
    """Compute every measure of a set of judged answers."""
    recall = {
        cause: share(run.right for run in judged if run.label.cause == cause)
        for cause in sorted({run.label.cause for run in judged})
    }
    measures = (
        *_cause_measures(judged, recall),
        *_place_measures(judged),
        *_calibration_measures(judged),
        *_silence_measures(judged),
    )
    groups = {title: _groups(judged, kinds) for title, kinds in GROUPINGS.items()}
    return Scores(measures, recall, groups)


def _cause_measures(judged: Sequence[Judged], recall: Mapping[str, Share]) -> list[Measure]:
    faulty = [run for run in judged if run.label.faulty]
    healthy = [run for run in judged if not run.label.faulty]
    pair = {"lr", "param_norm"}
    macro = statistics.fmean(hit.value for hit in recall.values()) if recall else math.nan
    return [
        Measure("cause right, all runs", share(run.right for run in judged)),
        Measure("cause right, faulty runs", share(run.right for run in faulty)),
        Measure(
            "  fault visible", share(run.right for run in faulty if run.label.seen_by_a_sensor)
        ),
        Measure(
            "  LR and param norm logged",
            share(run.right for run in faulty if pair <= run.logged.at_all),
        ),
        Measure(
            "  both at every step",
            share(run.right for run in faulty if pair <= run.logged.every_step),
        ),
        Measure("macro recall over causes", number=macro, n=len(recall)),
        Measure("healthy: verdict none", share(run.answer.cause == "none" for run in healthy)),
        Measure("healthy: no warning or error", share(run.answer.loud == 0 for run in healthy)),
    ]


def _place_measures(judged: Sequence[Judged]) -> list[Measure]:
    away = [run.onset_points for run in judged if run.onset_points is not None]
    named = [points for points in away if math.isfinite(points)]
    places = [run.layer_place for run in judged if run.layer_place is not None]
    return [
        Measure("onset within 1 point", share(points <= NEAR_POINTS for points in away)),
        Measure("onset within 5 points", share(points <= CLOSE_POINTS for points in away)),
        Measure(
            "onset, median points off",
            number=statistics.median(named) if named else math.nan,
            n=len(named),
        ),
        Measure("layer first", share(place == 0 for place in places)),
        Measure("layer among first three", share(place < NAMED_LAYERS for place in places)),
    ]


def _calibration_measures(judged: Sequence[Judged]) -> list[Measure]:
    said, right = [], []
    for run in judged:
        if run.answer.cause not in ("inconclusive", FAILED) and run.answer.probability is not None:
            said.append(run.answer.probability)
            right.append(run.right)
    sure = [hit for probability, hit in zip(said, right, strict=True) if probability >= SURE]
    return [
        Measure("calibration error (ECE)", number=calibration_error(said, right), n=len(said)),
        Measure("Brier score", number=brier(said, right), n=len(said)),
        Measure("wrong though said with >= 0.9", share(not hit for hit in sure)),
    ]


def _silence_measures(judged: Sequence[Judged]) -> list[Measure]:
    faulty = [run for run in judged if run.label.faulty]
    literal = [run for run in faulty if run.logged.every_step >= FULL_LOG]
    full = [run for run in faulty if _full_log(run)]
    return [
        Measure("inconclusive, faulty runs", share(_inconclusive(run) for run in faulty)),
        Measure("  all four logged", share(_inconclusive(run) for run in full)),
        Measure("  all four at every step", share(_inconclusive(run) for run in literal)),
        Measure("no report came out", share(run.answer.cause == FAILED for run in judged)),
    ]


def _full_log(run: Judged) -> bool:
    """Loss, grad norm and LR at every step, and the param norm at its own, slower pace."""
    each_step = FULL_LOG - {"param_norm"}
    return run.logged.every_step >= each_step and run.logged.at_all >= FULL_LOG


def _inconclusive(run: Judged) -> bool:
    return run.answer.cause == "inconclusive"


def _groups(
    judged: Sequence[Judged], kinds: Callable[[Judged], Sequence[str]]
) -> tuple[Group, ...]:
    members: dict[str, list[Judged]] = {}
    for run in judged:
        for kind in kinds(run):
            members.setdefault(kind, []).append(run)
    return tuple(
        Group(
            name=kind,
            right=share(run.right for run in runs),
            right_faulty=share(run.right for run in runs if run.label.faulty),
            inconclusive=share(_inconclusive(run) for run in runs),
        )
        for kind, runs in sorted(members.items(), key=lambda entry: _order(entry[0]))
    )


def _order(kind: str) -> tuple[float, str]:
    return (float(kind), "") if kind.isdigit() else (math.inf, kind)


def _what_was_logged(run: Judged) -> list[str]:
    logging = run.label.logging
    kinds = []
    if logging.get("layers", "none") == "none":
        kinds.append("no per-layer norms")
    if logging.get("grad_norm") == "missing":
        kinds.append("no grad norm")
    if logging.get("grad_norm") == "post_clip":
        kinds.append("grad norm clipped")
    if run.label.cadence >= 10:
        kinds.append("every 10 steps or less")
    if logging.get("loss_averaged"):
        kinds.append("loss averaged")
    if logging.get("resumed_from") is not None:
        kinds.append("restart in the log")
    if "lr" not in run.logged.at_all or "param_norm" not in run.logged.at_all:
        kinds.append("no LR or param norm")
    if _full_log(run):
        kinds.append("all four logged")
    return kinds


GROUPINGS: Mapping[str, Callable[[Judged], Sequence[str]]] = {
    "fault": lambda run: [run.label.fault],
    "logging style": lambda run: [str(run.label.logging.get("style", "?"))],
    "cadence": lambda run: [str(run.label.cadence)],
    "what was logged": _what_was_logged,
}


def with_own_hit_rate(judged: Sequence[Judged]) -> list[Judged]:
    """Give every answer the same probability, the share of answers that are right.

    For a baseline that says no probability: the best constant that it could have said.
    """
    rate = share(run.right for run in judged).value
    return [replace(run, answer=replace(run.answer, probability=rate)) for run in judged]
