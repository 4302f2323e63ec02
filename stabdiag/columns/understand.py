"""Which column is which series, and what numbers the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stabdiag.columns.choose import Chosen, choose, rivals
from stabdiag.columns.names import RUN_SEPARATOR, words
from stabdiag.columns.overrides import given_role, given_roles
from stabdiag.columns.recognise import Candidate, recognise
from stabdiag.columns.records import ColumnPlan, ColumnRole, RoleKind
from stabdiag.columns.restart_column import restart_column_of
from stabdiag.columns.row_words import SaidKinds, said_kinds
from stabdiag.columns.run_column import run_column_of
from stabdiag.columns.step_column import check_step, choose_step
from stabdiag.columns.whole_model import is_whole_model
from stabdiag.model import Column, LogTable, Mask, Note

_COUNTERS = ("step", "epoch", "tokens")
# Share of its steps that a clock must not run backwards in; a restart sets it back.
_RISING = 0.9


def understand(
    table: LogTable,
    column_map: Mapping[str, str] | None = None,
    step_column: str | None = None,
) -> ColumnPlan:
    """Find the role of every column of a table.

    Args:
        table: what a reader returned.
        column_map: canonical name (or "<layer metric>/<layer>") to the column that has it.
        step_column: the column that numbers the rows.

    Returns:
        The roles in the table's order, each with its reason; the step and run columns.

    Raises:
        UsageError: an override names a column or a series that doesn't exist, or steps that are
            no whole numbers.
    """
    given = given_roles(table, column_map or {}, step_column)
    step_column = step_column or next((c for c, name in given.items() if name == "step"), None)
    wide = _wide_runs(table.names)
    candidates = [_candidate(table, column, given, bool(wide)) for column in table.names]
    kind_column = _kind_column(candidates)
    said = said_kinds(table, kind_column)
    loaded = _load(table, candidates, losses=said is not None)
    candidates = [_checked_by_cells(candidate, loaded) for candidate in candidates]
    if said is not None:
        candidates = [_in_its_rows(candidate, loaded, said) for candidate in candidates]
    if table.format == "tensorboard":
        candidates = _named_by_file(candidates)
    chosen = []
    for run in (*wide, None):
        own = [c for c in candidates if c.role.run == run]
        taken = {c.role.name: c.role.column for c in own if c.role.column in given}
        chosen.append(choose(own, taken, loaded))
    roles = {role.column: role for part in chosen for role in part.roles}
    step, axis = _step(table, candidates, roles, loaded, step_column)
    run_column = run_column_of(table, list(roles.values()), step) if not wide else None
    restarts = restart_column_of(table, list(roles.values()), step)
    roots, rooted = _norm_of_layers(list(roles.values())) if not wide else ({}, ())
    return ColumnPlan(
        roles=tuple(
            _final(roles[column], step, axis, run_column, restarts) for column in table.names
        ),
        step=step,
        axis=axis,
        run_column=run_column,
        restart_column=restarts,
        kind_column=kind_column,
        wide_runs=wide,
        sums=_joined(chosen),
        roots=roots,
        notes=(*(note for part in chosen for note in part.notes), *rooted),
    )


def _wide_runs(names: Sequence[str]) -> tuple[str, ...]:
    """Runs of a chart export: every column but counters is "<run> - <metric>"."""
    inner = [name for name in names if RUN_SEPARATOR in name]
    if not inner:
        return ()
    around = [recognise(name, name, "number").role.kind for name in names if name not in inner]
    if any(kind not in (*_COUNTERS, "time", "ignored") for kind in around):
        return ()
    return tuple(dict.fromkeys(name.rpartition(RUN_SEPARATOR)[0] for name in inner))


def _candidate(table: LogTable, column: str, given: Mapping[str, str], wide: bool) -> Candidate:
    run, separator, metric = column.rpartition(RUN_SEPARATOR)
    own_run = run if wide and separator else None
    if column in given:
        return Candidate(given_role(column, given[column], own_run), (-1,))
    return recognise(column, metric if own_run else column, table.kinds[column], own_run)


def _load(table: LogTable, candidates: Sequence[Candidate], *, losses: bool) -> dict[str, Column]:
    """Cells of the columns whose name alone doesn't settle what they are."""
    wanted = {c.role.column for c in candidates if c.role.kind in (*_COUNTERS, "time")}
    if losses:
        wanted |= {c.role.column for c in candidates if _is_train_loss(c.role)}
    by_run: dict[str | None, list[Candidate]] = {}
    for candidate in candidates:
        by_run.setdefault(candidate.role.run, []).append(candidate)
    for own in by_run.values():
        for group in rivals(own).values():
            if len(group) > 1:
                wanted |= {c.role.column for c in group}
    names = [name for name in table.names if name in wanted]
    return table.load(names) if names else {}


def _checked_by_cells(candidate: Candidate, loaded: Mapping[str, Column]) -> Candidate:
    role = candidate.role
    column = loaded.get(role.column)
    if column is None or candidate.fit == (-1,):
        return candidate
    value = column.value[column.logged & np.isfinite(column.value)]
    other = f"other/{role.column}"
    if role.kind == "tokens" and value.size and not value.any():
        why = "constantly 0: no count of tokens"
        return replace(candidate, role=replace(role, kind="ignored", name="", why=why))
    if role.kind == "tokens" and value.size > 1 and value.min() == value.max():
        why = "the same in every row: of one batch, no count"
        return replace(candidate, role=replace(role, kind="other", name=other, why=why))
    if role.kind == "time" and value.size > 2 and np.mean(np.diff(value) >= 0) < _RISING:
        why = "a duration that doesn't rise: no clock"
        return replace(candidate, role=replace(role, kind="ignored", name="", why=why))
    return candidate


def _step(
    table: LogTable,
    candidates: Sequence[Candidate],
    roles: Mapping[str, ColumnRole],
    loaded: Mapping[str, Column],
    step_column: str | None,
) -> tuple[str | None, str]:
    if step_column is not None:
        check_step(table, step_column, loaded[step_column])
        return step_column, "step"
    counters = [c for c in candidates if c.role.kind in _COUNTERS and c.role.run is None]
    if not counters:
        return None, "row"
    return choose_step(counters, loaded, _measured(table, roles, loaded))


def _measured(
    table: LogTable, roles: Mapping[str, ColumnRole], loaded: Mapping[str, Column]
) -> Mask:
    """Rows that carry the loss, else the gradient norm, else any row."""
    for name in ("loss", "grad_norm", "val_loss"):
        columns = [role.column for role in roles.values() if role.name == name and role.run is None]
        if columns:
            cells = loaded[columns[0]] if columns[0] in loaded else table.load(columns)[columns[0]]
            if cells.logged.any():
                return cells.logged
    return np.ones(table.rows, dtype=np.bool_)


def _kind_column(candidates: Sequence[Candidate]) -> str | None:
    """The text column that says "train" or "val" for each row, where there is one."""
    return next((c.role.column for c in candidates if c.role.name == "row_kind"), None)


def _is_train_loss(role: ColumnRole) -> bool:
    return role.scope != "eval" and (role.name == "loss" or role.name.startswith("loss/"))


def _in_its_rows(candidate: Candidate, loaded: Mapping[str, Column], said: SaidKinds) -> Candidate:
    """A loss that only stands in rows of evaluation is a val loss, whatever its name."""
    role = candidate.role
    column = loaded.get(role.column)
    if column is None or not _is_train_loss(role) or not column.logged.any():
        return candidate
    if np.any(column.logged & ~said.other) or words(role.column) == "train_loss":
        return candidate
    why = "a loss that stands in evaluation rows alone"
    main = recognise(role.column, words(role.column).removeprefix("avg_"), "number")
    name = "val_loss" if main.role.name == "loss" else f"other/{role.column}"
    kind: RoleKind = "metric" if name == "val_loss" else "other"
    return Candidate(replace(role, kind=kind, name=name, scope="eval", why=why), main.fit)


def _named_by_file(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The tag of a TensorBoard export stands at the end of its file's name."""
    return [_by_ending(c) if c.role.name.startswith(("other/", "loss/")) else c for c in candidates]


def _by_ending(candidate: Candidate) -> Candidate:
    column = candidate.role.column
    parts = words(column).split("_")
    for first in range(1, len(parts)):
        found = recognise(column, "_".join(parts[first:]), "number", candidate.role.run)
        if found.role.kind == "metric" and "/" not in found.role.name:
            return found
    return candidate


def _norm_of_layers(
    roles: Sequence[ColumnRole],
) -> tuple[dict[str, tuple[str, ...]], tuple[Note, ...]]:
    """The layers whose norms make up the global gradient norm, where that isn't logged."""
    if any(
        role.name in ("grad_norm", "grad_norm_clipped") and role.layer is None for role in roles
    ):
        return {}, ()
    layers = [role for role in roles if role.kind == "layer" and role.name == "grad_norm"]
    if not is_whole_model([role.layer or "" for role in layers]):
        return {}, ()
    text = f"no global gradient norm is logged: it is made up from {len(layers)} layers"
    return {"grad_norm": tuple(role.column for role in layers)}, (Note("guessed", text),)


def _final(
    role: ColumnRole, step: str | None, axis: str, run_column: str | None, restarts: str | None
) -> ColumnRole:
    if role.column == step:
        return replace(role, why=f"{role.why}; numbers the rows")
    if role.kind == "step":
        chosen = step or "the row"
        why = f"a further counter: steps are read from {chosen}"
        return replace(role, kind="ignored", name="", why=why)
    if role.kind == "run" and role.column != run_column:
        return replace(role, kind="ignored", name="", why="the same run throughout")
    if role.column == run_column:
        return replace(role, kind="run", name="run", why="tells several runs apart")
    if role.column == restarts:
        return replace(role, kind="restart", name="segment", why="the recorder's count of restarts")
    return role


def _joined(chosen: Sequence[Chosen]) -> dict[str, tuple[str, ...]]:
    sums: dict[str, tuple[str, ...]] = {}
    for part in chosen:
        for name, columns in part.sums.items():
            sums[name] = (*sums.get(name, ()), *columns)
    return sums
