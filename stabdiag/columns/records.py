"""What understanding a table's columns gives: one role a column, and what the rows count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stabdiag.model import Note

RoleKind = Literal[
    "metric",
    "step",
    "epoch",
    "tokens",
    "time",
    "batch_id",
    "batch_statistic",
    "layer",
    "run",
    "restart",
    "ignored",
    "other",
]
Reading = Literal["as_logged", "power_of_two", "inverted"]
Scope = Literal["", "train", "eval"]


@dataclass(frozen=True)
class ColumnRole:
    """How one column is read.

    `name` is the canonical name of its series ("loss", "grad_norm", "other/<column>"; for a layer
    the metric alone, with `layer` as the log names it; "" when ignored). `reading` says how a cell
    becomes a value, `scope` whether the column belongs to evaluation, `run` which run of a chart
    export it belongs to (None: all). `why` is one short reason in words.
    """

    column: str
    kind: RoleKind
    name: str
    layer: str | None
    why: str
    reading: Reading = "as_logged"
    scope: Scope = ""
    run: str | None = None


@dataclass(frozen=True)
class ColumnPlan:
    """The roles of all columns of one table, in the table's order, and what was chosen among them.

    `step` is the column that numbers the rows (None: rows are counted), `axis` what it counts
    ("step", "epoch", "tokens", "row"). `run_column` tells stacked runs apart, `restart_column`
    counts restarts, `kind_column` tells train from eval rows. `wide_runs` names the runs of a chart
    export with one column a run and metric.
    `sums` maps a canonical name to the columns whose sum stands for it, `roots` to those whose
    squares' sum has it as its root (a norm over the layers).
    """

    roles: tuple[ColumnRole, ...]
    step: str | None
    axis: str
    run_column: str | None = None
    restart_column: str | None = None
    kind_column: str | None = None
    wide_runs: tuple[str, ...] = ()
    sums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
