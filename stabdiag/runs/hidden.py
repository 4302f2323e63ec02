"""NaN that the log does not spell: an empty cell where a value always stood, a 0.0 in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stabdiag.columns import ColumnRole
from stabdiag.model import F64, I64, Mask

# A metric is expected in a row when it stood in this share of the rows like it.
ALWAYS = 0.98
# ... and in at least so many of them; fewer show no habit.
MIN_ROWS = 5
# A metric logged every so many steps is due when its gaps are all equal, so many of them.
MIN_GAPS = 4

# Metrics that turn NaN together with a failing step, in the order in which they are judged.
_MAY_FAIL = (
    "loss",
    "grad_norm",
    "grad_norm_clipped",
    "grad_param_ratio",
    "update_norm",
    "param_norm",
    "activation_max",
    "attn_logit_max",
)
# What can't turn NaN by itself: the cells that say what kind of row it is.
_CANNOT_FAIL = frozenset(
    {"lr", "loss_scale", "skipped", "nan_count", "epoch", "tokens", "wall_time", "seq_len"}
)


@dataclass(frozen=True)
class TrainRows:
    """Rows of one run in order, shape [P] each: values and presence by canonical name.

    `train` rows are training records. `present` masks columns that can't turn NaN themselves
    (learning rate, batch ids and the like); rows with the same of them are alike.
    """

    step: I64
    segment: I64
    train: Mask
    value: Mapping[str, F64]
    logged: Mapping[str, Mask]
    present: Mapping[str, Mask]


@dataclass(frozen=True)
class Hidden:
    """What is read as NaN, masks [P] over the rows.

    `silent` holds missing cells by canonical name, `zeros` losses of 0.0. `trouble` marks rows
    with a non-finite value of any metric that may fail, written or inferred.
    """

    silent: Mapping[str, Mask]
    zeros: Mask
    trouble: Mask


def hidden_nan(rows: TrainRows) -> Hidden:
    """Find the cells that stand for a NaN without saying so.

    A missing loss counts only where the gradient norm of the row, if one is usually logged, is
    missing or not finite too; a missing gradient norm also beside a finite loss (a skipped step).
    Not counted: metrics logged now and then, at another cadence or in other records, and what
    ends at a restart.
    """
    silent = {name: np.zeros_like(rows.train) for name in _MAY_FAIL if name in rows.logged}
    incomplete = [name for name in silent if np.any(rows.train & ~rows.logged[name])]
    alike = _alike(rows) if incomplete else np.zeros_like(rows.step)
    for name in incomplete:
        silent[name] = _silent(rows, name, alike)
    zeros = _zeros(rows)
    trouble = zeros.copy()
    for name, logged in rows.logged.items():
        if name in _MAY_FAIL:
            trouble |= (logged & ~np.isfinite(rows.value[name])) | silent[name]
    for name in incomplete:
        if not silent[name].any():
            silent[name] = due(rows.step, rows.logged[name], trouble & rows.train)
    return Hidden({name: mask for name, mask in silent.items() if mask.any()}, zeros, trouble)


def _alike(rows: TrainRows) -> I64:
    """A number for each row: equal where the same columns are filled."""
    code = np.zeros(rows.step.size, dtype=np.int64)
    # Columns that are always or never there tell nothing; odd factors keep patterns apart even
    # when they overflow.
    for mask in rows.present.values():
        if mask.any() and not mask.all():
            code = code * 3 + mask
    return code


def _silent(rows: TrainRows, name: str, alike: I64) -> Mask:
    """Rows without the metric although rows like them have it, shape [P]."""
    logged = rows.logged[name]
    found: Mask = np.zeros(logged.size, dtype=np.bool_)
    missing = rows.train & ~logged
    if name == "loss":
        missing &= _norm_failed(rows)
    if missing.any():
        # Another row of the step may hold it.
        key = rows.segment * (np.ptp(rows.step) + 1) + rows.step
        missing &= ~np.isin(key, key[logged])
    if not missing.any() or not logged.any():
        return found
    for code in np.unique(alike[missing]):
        group = np.flatnonzero(rows.train & (alike == code))
        there = logged[group]
        tail, whole = _tails(there, rows.segment[group])
        head = there[~tail]
        if head.size < MIN_ROWS or np.mean(head) < ALWAYS:
            continue
        # A metric silent from a restart on: the new process logs something else. Not so the loss.
        gone = ~there if name == "loss" else ~there & ~whole
        found[group[gone]] = True
    first = int(np.flatnonzero(logged)[0])
    found[:first] = False
    found &= missing
    return found


def _norm_failed(rows: TrainRows) -> Mask:
    """Rows whose gradient norm is missing or not finite; all rows where none is logged."""
    if "grad_norm" not in rows.logged:
        return np.ones(rows.step.size, dtype=np.bool_)
    failed: Mask = ~(rows.logged["grad_norm"] & np.isfinite(rows.value["grad_norm"]))
    return failed


def _tails(there: Mask, segment: I64) -> tuple[Mask, Mask]:
    """Rows behind the last logged one of their segment, and those of segments without any."""
    tail = np.zeros_like(there)
    whole = np.zeros_like(there)
    for own in np.unique(segment):
        at = np.flatnonzero(segment == own)
        logged = np.flatnonzero(there[at])
        if logged.size:
            tail[at[logged[-1] + 1 :]] = True
        else:
            tail[at] = whole[at] = True
    return tail, whole


def _zeros(rows: TrainRows) -> Mask:
    """Losses of exactly 0.0 beside a NaN gradient norm, shape [P].

    The Hugging Face Trainer (`logging_nan_inf_filter`) writes 0.0 for a NaN loss.
    """
    if "loss" not in rows.logged or "grad_norm" not in rows.logged:
        return np.zeros(rows.step.size, dtype=np.bool_)
    zero = rows.logged["loss"] & (rows.value["loss"] == 0.0)
    found: Mask = zero & rows.logged["grad_norm"] & np.isnan(rows.value["grad_norm"])
    return found


def due(step: I64, logged: Mask, trouble: Mask) -> Mask:
    """Rows of `trouble` where a metric with an exact rhythm was due but is missing, shape [P].

    Args:
        step: steps of the rows.
        logged: where the metric is logged.
        trouble: training rows that hold a non-finite value of another metric.
    """
    found: Mask = np.zeros(step.size, dtype=np.bool_)
    if not np.any(trouble & ~logged):
        return found
    own = np.unique(step[logged])
    gaps = np.diff(own)
    if gaps.size < MIN_GAPS or np.any(gaps != gaps[0]):
        return found
    found = trouble & ~logged & (step > own[0]) & ((step - own[0]) % gaps[0] == 0)
    return found & ~np.isin(step, own)


def is_unfailing(name: str, role: ColumnRole) -> bool:
    """Whether a series can't turn NaN by itself, so that its cells tell kinds of rows apart.

    Evaluation writes counts and scores beside its loss, which are there even if the loss is NaN.
    """
    evaluated = role.kind == "other" and role.scope == "eval"
    return name in _CANNOT_FAIL or role.kind == "batch_statistic" or evaluated
