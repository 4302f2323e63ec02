"""What the user says a column is, checked against what there is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from stabdiag.columns.aliases import ALIASES, CANONICAL
from stabdiag.columns.names import RUN_SEPARATOR
from stabdiag.columns.records import ColumnRole, RoleKind, Scope
from stabdiag.errors import UsageError
from stabdiag.model import LAYER_METRICS, LogTable

_KINDS: dict[str, RoleKind] = {alias.canonical: alias.kind for alias in ALIASES}
_SERIES = tuple(name for name in CANONICAL if name not in ("run", "row_kind"))


def given_roles(
    table: LogTable, column_map: Mapping[str, str], step_column: str | None
) -> dict[str, str]:
    """Column to canonical name, as given by the user.

    Raises:
        UsageError: an unknown column or series; it names the nearest known one.
    """
    given: dict[str, str] = {}
    pairs = list(column_map.items())
    if step_column is not None:
        pairs.append(("step", step_column))
    for canonical, column in pairs:
        # In a chart export the metric alone stands for that column of every run.
        columns = [n for n in table.names if n == column or n.endswith(f"{RUN_SEPARATOR}{column}")]
        if not columns:
            todo = "`stabdiag columns` lists the columns"
            raise UsageError(
                f"{table.files[0]} has no column {column!r}", _nearest(column, table.names) or todo
            )
        metric, slash, layer = canonical.partition("/")
        known = canonical in _SERIES or (slash and layer and metric in LAYER_METRICS)
        if not known:
            raise UsageError(
                f"no series is called {canonical!r}",
                _nearest(canonical, _SERIES) or f"known series: {', '.join(_SERIES)}",
            )
        given |= dict.fromkeys([column] if column in columns else columns, canonical)
    return given


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"did you mean {found[0]!r}?" if found else ""


def given_role(column: str, canonical: str, run: str | None) -> ColumnRole:
    """The role of a column that the user assigned."""
    metric, slash, layer = canonical.partition("/")
    why = "given by the user"
    if slash:
        return ColumnRole(column, "layer", metric, layer, why, run=run)
    scope: Scope = "eval" if canonical == "val_loss" else "train"
    return ColumnRole(column, _KINDS[canonical], canonical, None, why, scope=scope, run=run)
