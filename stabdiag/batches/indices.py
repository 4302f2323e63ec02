"""What the log's data indices mean: which samples made the batch of a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from stabdiag.errors import InputError, UsageError
from stabdiag.model import EXACT, I64, BatchTable, Run

_FIRST = frozenset(
    ["data_start", "data_index_start", "first_index", "index_start", "start_index", "sample_start"]
)
_LAST = frozenset(
    ["data_end", "data_index_end", "last_index", "index_end", "end_index", "sample_end"]
)
_SHARDS = frozenset(["shard", "shard_id", "shard_idx", "file_id", "dataset_index"])
_OFFSETS = frozenset(["shard_offset", "data_offset", "sample_offset"])
_BATCHES = frozenset(["batch_id", "batch_idx", "batch_index", "batch_ids", "batch_number"])
_SEEDS = frozenset(["seed", "data_seed"])
_ID_WORDS = re.compile(r"(^|_)(ids?|idx|index|indices|indexes|samples?|docs?|examples?)(_|$)")
_RANGE = re.compile(r"\s*(\d+)\s*(-|:|\.\.)\s*(\d+)\s*")
WHOLE = re.compile(r"\d{1,18}")  # an id that may be a place; int64 holds it
_ROUNDED = re.compile(r"-?\d+\.\d+e\+\d+|-?\d{16,}\.0")
MOST_SEQUENCES = 4096  # of one batch that are inspected

Means = Literal["ids", "places", "batch"]


@dataclass(frozen=True)
class BatchIds:
    """The samples of one batch, as the log names them; `shards` where it names a shard for each."""

    step: int
    ids: tuple[str, ...]
    shards: tuple[str, ...] = ()


@dataclass(frozen=True)
class Indices:
    """How the batch of a step is found, in words; `steps` [N] are those that have one.

    `means` says what an id is: a sample's "ids" (its place, or its name), "places" alone, or the id
    of a whole "batch" that the corpus' records bear. `at(i)` gives the batch of `steps[i]`.
    `size` is that of a batch where samples are counted by it; `by_batch`: a short one as whole.
    """

    described: str
    means: Means
    steps: I64
    at: Callable[[int], BatchIds]
    size: int | None = None
    by_batch: bool = False

    def of_step(self, step: int) -> BatchIds:
        """The batch of a logged step.

        Raises:
            InputError: that step has none; the nearest that have are named.
        """
        place = int(np.searchsorted(self.steps, step))
        if place < self.steps.size and self.steps[place] == step:
            return self.at(place)
        near = self.steps[max(0, place - 1) : place + 1].tolist()
        raise InputError(
            f"step {step} has no data indices in the log",
            f"The nearest steps that have: {', '.join(map(str, near))}.",
        )


def indices_of(run: Run, batch_size: int | None) -> Indices | None:
    """How the log names the data of each step; None where it does not.

    `batch_size` is what the user says; it makes samples of batch ids, offsets and counts.

    Raises:
        UsageError: the indices say where a batch begins but not how long it is.
    """
    table = run.batch
    named = _by_role(table) if table is not None else {}
    if table is not None:
        for way in (_lists, _ranges, _offsets, _single):
            found = way(table, named, batch_size)
            if found is not None:
                return found
    consumed = _consumed(run, batch_size)
    if consumed is not None:
        return consumed
    return None if table is None else _batches(table, named, batch_size)


def batch_keys(run: Run) -> dict[int, str]:
    """The id of the batch of each step that the log has one for."""
    column = _by_role(run.batch).get("batch") if run.batch is not None else None
    if run.batch is None or column is None:
        return {}
    cells = zip(run.batch.step.tolist(), run.batch.parts[column], strict=True)
    return {step: cell[0] for step, cell in cells if cell is not None and len(cell) == 1}


def logged_seed(run: Run) -> int:
    """The seed that the log gives in every row; 0 where it has none, or more than one."""
    if run.batch is None:
        return 0
    column = _by_role(run.batch).get("seed")
    seeds = {n for n in _numbers(run.batch, column) if n is not None} if column else set()
    return seeds.pop() if len(seeds) == 1 else 0


def _by_role(table: BatchTable) -> dict[str, str]:
    """The index columns by what they say, the first of each kind."""
    roles: dict[str, str] = {}
    for column in table.parts:
        name = re.sub(r"[^a-z0-9]+", "_", re.split(r"[/.]", column.lower())[-1]).strip("_")
        for role, names in (
            ("first", _FIRST),
            ("last", _LAST),
            ("shard", _SHARDS),
            ("offset", _OFFSETS),
            ("batch", _BATCHES),
            ("seed", _SEEDS),
        ):
            if name in names:
                roles.setdefault(role, column)
                break
        else:
            if _ID_WORDS.search(name):
                roles.setdefault("sample", column)
    return roles


def _lists(table: BatchTable, named: Mapping[str, str], size: int | None) -> Indices | None:
    for role in ("sample", "batch"):
        column = named.get(role)
        if column is None:
            continue
        cells = table.parts[column]
        if any(cell is not None and len(cell) > 1 for cell in cells):
            shard = named.get("shard")
            said = f"column {column!r} lists the samples of each batch"
            if shard is not None:
                said += f", in the shard of column {shard!r}"
            return _from_cells(table, said, cells, shard)
        if any(cell is not None and _RANGE.fullmatch(cell[0]) for cell in cells if cell):
            spans = [None if cell is None else _span(cell[0]) for cell in cells]
            return _from_cells(
                table, f"column {column!r} holds ranges of samples", spans, named.get("shard")
            )
    return None


def _span(text: str) -> tuple[str, ...]:
    """A range in text: 100-131 includes its end; 100:132 and 100..132 do not (Python, Rust)."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return (text,)
    first, last = int(match[1]), int(match[3]) + (match[2] == "-")
    return _run_of(first, last)


def _run_of(first: int, stop: int) -> tuple[str, ...]:
    """The ids of a range, at most one more than are inspected."""
    return tuple(str(i) for i in range(first, min(stop, first + MOST_SEQUENCES + 1)))


def _ranges(table: BatchTable, named: Mapping[str, str], size: int | None) -> Indices | None:
    """First and last index of each batch. Whether the last is in it shows where batches meet."""
    if "first" not in named or ("last" not in named and size is None):
        return None
    first = _numbers(table, named["first"])
    if "last" not in named:
        spans = [None if a is None else _run_of(a, a + (size or 0)) for a in first]
        said = f"samples from {named['first']!r} on, --batch-size {size}"
        return _from_cells(table, said, spans, named.get("shard"), "places")
    last = _numbers(table, named["last"])
    after = [
        b - e
        for e, b in zip(last[:-1], first[1:], strict=True)
        if e is not None and b is not None and 0 <= b - e <= 1
    ]
    included = not after or 2 * sum(after) >= len(after)
    if not after and size is not None:
        included = any(
            a is not None and e is not None and e - a + 1 == size
            for a, e in zip(first, last, strict=True)
        )
    spans = [
        None if a is None or b is None else _run_of(a, b + included)
        for a, b in zip(first, last, strict=True)
    ]
    why = "the next batch begins there" if after and not included else "taken as included"
    if after and included:
        why = "included: the next batch begins one later"
    said = f"samples from {named['first']!r} to {named['last']!r} ({why})"
    return _from_cells(table, said, spans, named.get("shard"), "places")


def _offsets(table: BatchTable, named: Mapping[str, str], size: int | None) -> Indices | None:
    if "offset" not in named:
        return None
    if size is None:
        raise UsageError(
            f"column {named['offset']!r} says where a batch begins; how many samples are in it?",
            "Give --batch-size N.",
        )
    spans = [None if a is None else _run_of(a, a + size) for a in _numbers(table, named["offset"])]
    shard = named.get("shard")
    said = f"{size} samples from {named['offset']!r} on"
    if shard is not None:
        said += f" in the shard of column {shard!r}"
    return _from_cells(table, said, spans, shard, "places")


def _single(table: BatchTable, named: Mapping[str, str], size: int | None) -> Indices | None:
    if "sample" not in named:
        return None
    column = named["sample"]
    said = f"column {column!r} names one sample a step"
    return _from_cells(table, said, table.parts[column], named.get("shard"))


def _batches(table: BatchTable, named: Mapping[str, str], size: int | None) -> Indices | None:
    """A number for each batch: samples in order by --batch-size, or a field of the records."""
    if "batch" not in named:
        return None
    column = named["batch"]
    if size is None:
        said = f"column {column!r} names the batch; the samples are the records that bear its id"
        return _from_cells(table, said, table.parts[column], None, "batch")
    spans = [
        None if b is None else _run_of(b * size, (b + 1) * size) for b in _numbers(table, column)
    ]
    said = f"batch {column!r} counted from 0, --batch-size {size}"
    found = _from_cells(table, said, spans, None, "places")
    return None if found is None else replace(found, size=size, by_batch=True)


def _consumed(run: Run, size: int | None) -> Indices | None:
    """Samples consumed so far: those of a step are the last ones counted."""
    series = run.series.get("tokens")
    if series is None or not re.search(r"sample|example", series.column.lower()):
        return None
    keep = np.isfinite(series.value) & (series.value >= 0) & (series.value < EXACT)
    step, total = series.step[keep], series.value[keep].astype(np.int64)
    if step.size < 2:
        return None
    if size is None:
        dense = np.diff(step) == 1
        rises = np.diff(total)[dense]
        if rises.size == 0 or np.median(rises) < 1:
            raise UsageError(
                f"column {series.column!r} counts samples, but not at every step",
                "Say how many make a batch with --batch-size N.",
            )
        size = int(np.median(rises))
    count = size

    def at(place: int) -> BatchIds:
        stop = int(total[place])
        own = count
        if place and step[place] - step[place - 1] == 1 and total[place] > total[place - 1]:
            own = int(total[place] - total[place - 1])
        return BatchIds(int(step[place]), _run_of(max(0, stop - own), stop))

    said = f"the last {size} samples counted by {series.column!r} (taken as counted after the step)"
    return Indices(said, "places", step, at, size)


def exact(ids: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The ids themselves.

    Raises:
        InputError: one lost its last digits, as single numbers from 2^53 on do in a log.
    """
    rounded = next((name for name in ids if _ROUNDED.fullmatch(name)), None)
    if rounded is None:
        return ids
    raise InputError(
        f"{where}: {rounded} is from 2^53 on, where single numbers lose their last digits",
        "Log such ids as a list, [id], or as words, such as doc-123.",
    )


def _numbers(table: BatchTable, column: str) -> list[int | None]:
    return [
        int(cell[0]) if cell is not None and cell and WHOLE.fullmatch(cell[0]) else None
        for cell in table.parts[column]
    ]


def _from_cells(
    table: BatchTable,
    said: str,
    cells: Sequence[tuple[str, ...] | None],
    shard: str | None,
    means: Means = "ids",
) -> Indices | None:
    """Indices from a cell for each row; None where all are empty."""
    rows = np.array([i for i, cell in enumerate(cells) if cell], dtype=np.int64)
    if rows.size == 0:
        return None
    shards = table.parts[shard] if shard is not None else None

    def at(place: int) -> BatchIds:
        row = int(rows[place])
        ids = exact(cells[row] or (), f"data indices of step {int(table.step[row])}")
        if shards is None:
            return BatchIds(int(table.step[row]), ids)
        own = shards[row] or ("",)
        each = own if len(own) == len(ids) else own[:1] * len(ids)
        return BatchIds(int(table.step[row]), ids, each)

    return Indices(said, means, table.step[rows], at)
