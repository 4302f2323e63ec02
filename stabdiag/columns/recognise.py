"""One column's role from its name and kind alone, before columns compete for a series."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stabdiag.columns.aliases import (
    BY_NAME,
    NOT_A_LOSS,
    NOT_METRIC_BEGINNINGS,
    NOT_METRIC_ENDINGS,
    NOT_METRICS,
    Match,
)
from stabdiag.columns.layers import layer_of
from stabdiag.columns.names import Name, readings, scope_of, words
from stabdiag.columns.records import ColumnRole
from stabdiag.model import ColumnKind

_GROUP_NUMBER = re.compile(r"^(?P<base>[a-z_]*?)_?(?:pg|group|param_group)?_?(?P<number>[0-9]+)$")
_OPTIMIZER_LR = re.compile(r"^lr-[A-Za-z]")
# Only these are looked for behind a path that is not known ("info/learner/p0/total_loss").
_BEHIND_ANY_PATH = frozenset({"loss", "grad_norm", "param_norm", "lr", "loss_scale"})
_BATCH_GROUPS = ("data/", "batch/", "data.", "batch.")
_PREFERRED_EVAL = ("val", "valid", "validation", "eval", "evaluation", "dev")


@dataclass(frozen=True)
class Candidate:
    """A role and how well the name fits it: a smaller `fit` is preferred among rivals."""

    role: ColumnRole
    fit: tuple[int, ...] = ()


def recognise(column: str, name: str, kind: ColumnKind, run: str | None = None) -> Candidate:
    """The role that a column's own name and kind give it.

    Args:
        column: the column as the table names it.
        name: the metric's name: the column itself, or its part behind the run in a chart export.
        kind: "number", "text" or "list".
        run: the run that the column belongs to in a chart export.
    """
    if kind != "number":
        return Candidate(_not_a_number(column, name, kind, run))
    layered = _by_layer(column, name, run) if "/" in name or "." in name else None
    # A path behind the metric can be nothing else, and tables have thousands of them.
    if layered and "." in (layered.role.layer or ""):
        return layered
    if name.endswith(("__MIN", "__MAX")):
        return Candidate(_ignored(column, run, "minimum or maximum drawn by the chart, no metric"))
    if _is_not_metric(name) and not name.lower().startswith(_BATCH_GROUPS):
        return Candidate(_ignored(column, run, "timing, hardware or progress, no metric"))
    found = _by_alias(column, name, run) or layered or _by_layer(column, name, run)
    if found:
        return found
    if name.lower().startswith(_BATCH_GROUPS):
        why = "logged under data or batch: a statistic of the batch"
        return Candidate(ColumnRole(column, "batch_statistic", f"other/{name}", None, why, run=run))
    return _by_last_part(column, name, run) or _extra(column, name, run)


def _ignored(column: str, run: str | None, why: str) -> ColumnRole:
    return ColumnRole(column, "ignored", "", None, why, run=run)


def _is_not_metric(name: str) -> bool:
    text = words(name)
    if text in NOT_METRICS or text.endswith(NOT_METRIC_ENDINGS):
        return True
    if text.startswith(NOT_METRIC_BEGINNINGS):
        return True
    inner = readings(name)[-1].core
    return inner in NOT_METRICS or not text


def _not_a_number(column: str, name: str, kind: ColumnKind, run: str | None) -> ColumnRole:
    for reading in readings(name):
        match = BY_NAME.get(reading.core)
        if match and match.kind in ("batch_id", "run"):
            return ColumnRole(
                column, match.kind, match.canonical, None, _why(match, reading), run=run
            )
        if kind == "text" and match and match.canonical in ("step", "row_kind"):
            return ColumnRole(
                column, match.kind, match.canonical, None, _why(match, reading), run=run
            )
    if kind == "list":
        if layer_of(name):
            return _ignored(column, run, "a histogram, not a norm")
        if name.lower().startswith(_BATCH_GROUPS):
            return ColumnRole(
                column, "batch_id", "batch_id", None, "a list for each batch", run=run
            )
        return _ignored(column, run, "lists, no metric")
    return _ignored(column, run, "text, no metric")


def _by_alias(column: str, name: str, run: str | None) -> Candidate | None:
    for reading in readings(name):
        match = BY_NAME.get(reading.core)
        if match is None and _OPTIMIZER_LR.match(name):
            match = BY_NAME["lr"]
        number = 0
        if match is None:
            match, number = _numbered_lr(reading.core)
        if match is None:
            continue
        # A literal hit such as "train_loss" still says where it was measured.
        scope = reading.scope or scope_of(words(name))
        if match.canonical == "row_kind":
            return None
        if scope == "eval" and match.canonical not in ("loss", "val_loss"):
            return None
        return Candidate(
            _metric(column, match, reading, scope == "eval", run),
            _fit(name, match, reading, number),
        )
    return None


def _metric(
    column: str, match: Match, reading: Name, evaluation: bool, run: str | None
) -> ColumnRole:
    canonical = "val_loss" if evaluation else match.canonical
    return ColumnRole(
        column,
        match.kind,
        canonical,
        None,
        _why(match, reading, canonical),
        reading=match.reading,
        scope="eval" if canonical == "val_loss" else "train",
        run=run,
    )


def _fit(name: str, match: Match, reading: Name, number: int) -> tuple[int, ...]:
    text = words(name)
    test_set = int(not any(part in _PREFERRED_EVAL for part in text.split("_")))
    cadence = {"step": 0, "": 1, "mean": 2, "epoch": 3}[reading.cadence]
    # W&B's own call counter comes after every counter that the loop logs itself.
    call_counter = int(name.rsplit("/", 1)[-1] in ("_step", "_timestamp", "_runtime"))
    return (
        call_counter,
        match.order,
        test_set if match.canonical == "loss" else 0,
        reading.stripped,
        cadence,
        number,
    )


def _numbered_lr(core: str) -> tuple[Match | None, int]:
    """Learning rates of several parameter groups: lr/pg0, learning_rate_group1, current_lr_0."""
    numbered = _GROUP_NUMBER.match(core)
    if numbered is None:
        return None, 0
    match = BY_NAME.get(numbered["base"])
    if match is None or match.canonical != "lr":
        return None, 0
    return match, int(numbered["number"])


def _by_layer(column: str, name: str, run: str | None) -> Candidate | None:
    found = layer_of(name)
    if found is None:
        return None
    metric, layer = found
    why = f"{metric.replace('_', ' ')} of one layer"
    fit = 0
    if metric == "activation_max" and "mean" in words(name).split("_"):
        why, fit = "mean absolute activation of one layer, read as its size", 1
    return Candidate(ColumnRole(column, "layer", metric, layer, why, run=run), (fit,))


def _by_last_part(column: str, name: str, run: str | None) -> Candidate | None:
    path, slash, last = name.rpartition("/")
    if not slash:
        return None
    found = next(((r, BY_NAME[r.core]) for r in readings(last) if r.core in BY_NAME), None)
    if found is None or found[1].canonical not in _BEHIND_ANY_PATH:
        return None
    reading, match = found
    evaluation = scope_of(words(name)) == "eval"
    if evaluation and match.canonical != "loss":
        return None
    role = _metric(column, match, reading, evaluation, run)
    # 100 places behind every name without an unknown path.
    return Candidate(role, (0, 100 + match.order, 0, path.count("/") + 1, 1, 0))


def _extra(column: str, name: str, run: str | None) -> Candidate:
    parts = words(name).split("_")
    scope = scope_of("_".join(parts))
    if "loss" in parts and not NOT_A_LOSS.intersection(parts) and scope != "eval":
        why = "a further loss or a part of one"
        return Candidate(
            ColumnRole(column, "metric", f"loss/{name}", None, why, "as_logged", "train", run)
        )
    why = "a number with no known meaning"
    if scope == "eval":
        why = "a number from evaluation"
    return Candidate(
        ColumnRole(column, "other", f"other/{name}", None, why, "as_logged", scope, run)
    )


def _why(match: Match, reading: Name, canonical: str = "") -> str:
    said = reading.core.replace("_", " ")
    where = (
        f" of {'evaluation' if canonical == 'val_loss' else 'training'}" if reading.scope else ""
    )
    meaning = (canonical or match.canonical).replace("_", " ")
    if said == meaning:
        return f"named so{where}"
    base = {"power_of_two": ", given as its base-2 logarithm", "inverted": ", turned around"}
    return f'"{said}"{where} is a name of {meaning}{base.get(match.reading, "")}'
