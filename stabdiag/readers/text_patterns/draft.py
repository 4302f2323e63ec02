"""Rows of one format as arrays, and how two formats' rows become one table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stabdiag.model import F64, I64, Mask
from stabdiag.readers.text_patterns.collect import Found


@dataclass
class Draft:
    """Rows while they are being settled; `aside` marks rows of a companion format."""

    kind: list[str]
    step: I64
    line: I64
    stream: list[tuple[str, str]]
    shape: list[tuple[str, ...]]
    digest: I64
    aside: Mask
    cells: dict[str, tuple[I64, F64]]


def draft_of(found: Found, scale_name: str) -> Draft:
    """Turn the growing lists of one format into arrays; `scale_name` is the loss scale's name."""
    rows, aside = found.rows, found.pattern.stepless
    kinds, streams, shapes = list(rows.kinds), list(rows.streams), list(rows.shapes)
    plain = [tuple(sorted(shape)) for shape in shapes]
    cells = {}
    for name, (index, value) in rows.cells.items():
        known = scale_name if aside and name == "loss_scale" else name
        cells[known] = (np.asarray(index, dtype=np.int64), np.asarray(value, dtype=np.float64))
    return Draft(
        kind=[kinds[code] for code in rows.kind],
        step=np.array(rows.step, dtype=np.int64),
        line=np.array(rows.line, dtype=np.int64),
        stream=[streams[code] for code in rows.stream],
        shape=[plain[code] for code in rows.shape],
        digest=np.array(rows.digest, dtype=np.int64),
        aside=np.full(len(rows), aside),
        cells=cells,
    )


def joined(first: Draft, second: Draft) -> Draft:
    """Merge two drafts by file line; on one line the first comes first."""
    line = np.concatenate([first.line, second.line])
    order = np.argsort(line, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    offset = len(first.kind)
    cells: dict[str, tuple[I64, F64]] = {}
    for name in [*first.cells, *(n for n in second.cells if n not in first.cells)]:
        parts = [
            (cells_of[name], shift)
            for cells_of, shift in ((first.cells, 0), (second.cells, offset))
            if name in cells_of
        ]
        index = np.concatenate([place[cell[0] + shift] for cell, shift in parts])
        value = np.concatenate([cell[1] for cell, _ in parts])
        by_row = np.argsort(index, kind="stable")
        cells[name] = (index[by_row], value[by_row])
    kind, stream = first.kind + second.kind, first.stream + second.stream
    shape = first.shape + second.shape
    return Draft(
        kind=[kind[i] for i in order],
        step=np.concatenate([first.step, second.step])[order],
        line=line[order],
        stream=[stream[i] for i in order],
        shape=[shape[i] for i in order],
        digest=np.concatenate([first.digest, second.digest])[order],
        aside=np.concatenate([first.aside, second.aside])[order],
        cells=cells,
    )


def kept_cells(draft: Draft, keep: Mask) -> list[tuple[str, tuple[I64, F64]]]:
    """Return the cells of the rows that are kept, with their new row numbers."""
    place = np.cumsum(keep) - 1
    result = []
    for name, (index, value) in draft.cells.items():
        stays = keep[index]
        result.append((name, (place[index[stays]].astype(np.int64), value[stays])))
    return result


def taken(draft: Draft, keep: Mask) -> Draft:
    """Return the draft with the rows where `keep` holds."""
    rows = np.flatnonzero(keep)
    return Draft(
        kind=[draft.kind[i] for i in rows],
        step=draft.step[rows],
        line=draft.line[rows],
        stream=[draft.stream[i] for i in rows],
        shape=[draft.shape[i] for i in rows],
        digest=draft.digest[rows],
        aside=draft.aside[rows],
        cells=dict(kept_cells(draft, keep)),
    )
