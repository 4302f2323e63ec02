"""The labelled runs: one folder with logs and a `labels.jsonl`, one JSON line a log."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Label:
    """What is known about one run; the names are those of `labels.jsonl`.

    Steps are as logged; None means never, or not measured. `layers` are columns of the log.
    `columns` says which column is which series (`*` in it: one column a layer).
    """

    path: Path
    run_id: str
    fault: str
    cause: str
    acceptable: tuple[str, ...]
    onset_step: int | None
    onset_logged_step: int | None
    loss_onset_step: int | None
    grad_onset_step: int | None
    layers: tuple[str, ...]
    group: str | None
    visible: Mapping[str, bool] | None
    logging: Mapping[str, Any]
    columns: Mapping[str, str]

    @property
    def faulty(self) -> bool:
        return self.cause != "none"

    @property
    def cadence(self) -> int:
        return int(self.logging.get("cadence") or 1)

    @property
    def first_step(self) -> int:
        return int(self.logging.get("first_step_offset") or 0)

    @property
    def onsets(self) -> tuple[int, ...]:
        """Every step that may count as the onset; empty for a fault that acts from the start."""
        if not self.faulty or self.onset_step is None or self.onset_step <= self.first_step:
            return ()
        named = (
            self.onset_step,
            self.onset_logged_step,
            self.loss_onset_step,
            self.grad_onset_step,
        )
        return tuple(sorted({step for step in named if step is not None}))

    @property
    def seen_by_a_sensor(self) -> bool:
        """Whether a logged loss or grad norm is off the clean run; True where not measured."""
        return self.visible is None or any(self.visible.values())


class BenchError(Exception):
    """A folder of labelled runs that is not there, or not one."""


def read_labels(bench: Path) -> list[Label]:
    """Read the labels of one folder, in the order of the file.

    Raises:
        BenchError: no such folder, no `labels.jsonl`, or a line in it that is not a label.
    """
    labels_file = bench / "labels.jsonl"
    if not labels_file.is_file():
        raise BenchError(f"no labelled runs: {labels_file} is not there")
    labels = []
    for number, line in enumerate(labels_file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            labels.append(_label(bench, json.loads(line)))
        except (ValueError, KeyError, TypeError) as err:
            raise BenchError(f"{labels_file}, line {number}: not a label ({err!r})") from err
    return labels


def _label(bench: Path, entry: Mapping[str, Any]) -> Label:
    return Label(
        path=bench / entry["file"],
        run_id=entry["id"],
        fault=entry["fault"],
        cause=entry["cause"],
        acceptable=tuple(entry.get("acceptable") or ()),
        onset_step=entry.get("onset_step"),
        onset_logged_step=entry.get("onset_logged_step"),
        loss_onset_step=entry.get("loss_onset_step"),
        grad_onset_step=entry.get("grad_onset_step"),
        layers=tuple(entry.get("layers") or ()),
        group=entry.get("group"),
        visible=entry.get("visible"),
        logging=entry.get("logging") or {},
        columns=entry.get("columns") or {},
    )


def select(labels: Sequence[Label], only: str | None, limit: int | None) -> list[Label]:
    """Keep the runs whose file, id, fault or cause matches the pattern `only`; at most `limit`."""
    kept = [
        label
        for label in labels
        if only is None
        or any(
            fnmatch.fnmatchcase(name, only)
            for name in (label.path.name, label.run_id, label.fault, label.cause)
        )
    ]
    return kept[:limit]


def same_layer(named: str, label: Label, truth: str) -> bool:
    """Whether the layer `named` in a report is the column `truth` of the label.

    The report may name the column itself, or the layer without the part of the column that names
    the metric (`gradients/h.0.weight` -> `h.0.weight`), as the label's `columns` tell it.
    """
    return named in {truth, *_bare_names(label, truth)}


def _bare_names(label: Label, column: str) -> list[str]:
    bare = []
    for key, pattern in label.columns.items():
        before, star, after = pattern.partition("*")
        if (
            key.startswith("layer_")
            and star
            and column.startswith(before)
            and column.endswith(after)
        ):
            bare.append(column[len(before) : len(column) - len(after)])
    return bare
