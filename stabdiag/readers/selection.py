"""Which rows of a very long log are looked at, so that memory does not grow with its length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stabdiag.model import F64, I64, Mask

# Means of so many neighbours are compared: a lone spike, a swell, a level that changes.
_WIDTHS = (1, 16, 256)
# Of the usual difference of neighbours; 8 standard deviations of independent normal noise.
_JUMP = 12.0
_MOST_TURNS = 8  # of a cell, where a column turns non-finite or back
_MOST_CHANGES = 16  # of a cell, in a column that otherwise stays as it is
_RISING = 0.9  # share of a counter's changes that rise
_RARE = 1024  # a column with a value in one of so many rows, or fewer, is rare


@dataclass(frozen=True)
class Extent:
    """How many rows are looked at, all in rows; project choices.

    Up to `most_rows` all are. Beyond, `ends` at either end, `around` before and after each of
    `most_jumps` jumps, the rows of rare columns, and stretches of `stretch` rows as often as
    leaves half of `most_rows` for them. `cell` rows are looked at for jumps at a time.
    """

    most_rows: int = 1 << 21  # twice a long run; about a GB while it is analysed
    cell: int = 1 << 14
    ends: int = 1 << 16
    stretch: int = 1 << 10  # ten times the window of a baseline
    around: int = 1 << 9
    most_jumps: int = 512

    @property
    def most_rare(self) -> int:
        """Rows of rare columns that are kept at most."""
        return self.most_rows // 8


@dataclass
class _Jumps:
    """The strongest jumps of one kind in one column, strongest first."""

    strength: F64 = field(default_factory=lambda: np.zeros(0))
    row: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, strength: F64, row: I64, most: int) -> None:
        """Add further ones; of equals the earlier row comes first."""
        all_strength = np.append(self.strength, strength)
        all_rows = np.append(self.row, row)
        order = np.lexsort((all_rows, -all_strength))[:most]
        self.strength, self.row = all_strength[order], all_rows[order]


class Selection:
    """The rows that are kept of those seen so far.

    What was once left out is never asked for again: a row that is kept of N rows was kept of any
    fewer that held the cell after its own.
    """

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self.seen = 0
        self._jumps: dict[tuple[str, str], _Jumps] = {}
        self._last: dict[str, float] = {}
        self._rare = np.zeros(0, dtype=np.int64)
        self._rare_index = np.zeros(0, dtype=np.int64)
        self._rare_count = 0

    @property
    def every(self) -> int:
        """One stretch in so many is kept; a power of two."""
        return _halvings(self.seen, self.extent.most_rows // 2)

    def look(self, columns: Mapping[str, tuple[F64, Mask]], rows: int) -> None:
        """Take the next `rows` rows, of which `columns` holds (value, logged), shape [rows] each."""
        rare = np.zeros(rows, dtype=np.bool_)
        for name, (value, logged) in columns.items():
            at = np.flatnonzero(logged)
            if at.size * _RARE <= self.extent.cell:
                rare[at] = True
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    self._look_for_jumps(name, value[at], at + self.seen)
        self._add_rare(np.flatnonzero(rare) + self.seen)
        self._forget_weak()
        self.seen += rows

    def keeps(self, rows: I64) -> Mask:
        """Say which of these rows are kept, shape [N]; `rows` rise."""
        extent = self.extent
        kept: Mask = (rows // extent.stretch) % self.every == 0
        kept |= (rows < extent.ends) | (rows >= self.seen - extent.ends)
        jumps = np.concatenate([np.zeros(0, dtype=np.int64), *(j.row for j in self._ranked())])
        first = np.searchsorted(rows, jumps - extent.around)
        last = np.searchsorted(rows, jumps + extent.around, side="right")
        for a, b in zip(first.tolist(), last.tolist(), strict=True):
            kept[a:b] = True
        kept[np.flatnonzero(np.isin(rows, self._rare, assume_unique=True))] = True
        return kept

    def _add_rare(self, rows: I64) -> None:
        index = np.arange(self._rare_count, self._rare_count + rows.size)
        self._rare_count += rows.size
        # some in a row, so that of two kinds of rows in turn neither goes missing
        thinned = _halvings(self._rare_count, self.extent.most_rare)
        self._rare = np.append(self._rare, rows)
        self._rare_index = np.append(self._rare_index, index)
        if self._rare.size > self.extent.most_rare:
            kept = (self._rare_index // 64) % thinned == 0
            self._rare, self._rare_index = self._rare[kept], self._rare_index[kept]

    def _look_for_jumps(self, name: str, value: F64, row: I64) -> None:
        """Find where a column's logged values jump, turn non-finite, or change at last."""
        last = self._last.get(name, float(value[0]))
        self._last[name] = float(value[-1])
        value, row = np.append(last, value), np.append(row[0], row)
        finite = np.isfinite(value)
        turns = row[np.flatnonzero(finite[1:] != finite[:-1])[:_MOST_TURNS] + 1]
        self._add(name, "finite", -turns.astype(np.float64), turns)
        value, row = value[finite], row[finite]
        for width in _WIDTHS:
            count = value.size // width
            if count < 3:
                return
            mean = value[: count * width].reshape(count, width).mean(axis=1)
            self._add_steps(name, str(width), mean, row[: count * width : width])

    def _add_steps(self, name: str, kind: str, mean: F64, row: I64) -> None:
        step = np.diff(mean)
        change = np.abs(step)
        usual = float(np.median(change))
        if usual > 0:
            strong = np.flatnonzero(change > _JUMP * usual)
            self._add(name, kind, change[strong] / usual, row[strong + 1])
            if kind == "1" and np.mean(step > 0) >= _RISING:
                self._add_returns(name, step / usual, row)
            return
        strong = np.flatnonzero(change)
        if strong.size <= _MOST_CHANGES:
            size = np.abs(mean[strong]) + np.abs(mean[strong + 1])
            self._add(name, "changes", change[strong] / size, row[strong + 1])

    def _add_returns(self, name: str, step: F64, row: I64) -> None:
        """Where a counter falls back: where it stood there before, unless that is long ago."""
        falls = np.flatnonzero(step < -_JUMP)
        before = row[falls] + np.maximum(step[falls], -1e15).astype(np.int64)
        here = before >= self.seen + self.extent.cell + self.extent.around - self.extent.ends
        self._add(name, "returns", -step[falls][here], before[here])

    def _add(self, name: str, kind: str, strength: F64, row: I64) -> None:
        if row.size:
            jumps = self._jumps.setdefault((name, kind), _Jumps())
            jumps.add(strength, row, self.extent.most_jumps)

    def _ranked(self) -> list[_Jumps]:
        return [self._jumps[key] for key in sorted(self._jumps)]

    def _forget_weak(self) -> None:
        """Leave the first `most_jumps`: the strongest of each kind, then the second of each ..."""
        left = self.extent.most_jumps
        share = {key: 0 for key in sorted(self._jumps)}
        while left and (more := [k for k in share if share[k] < self._jumps[k].row.size]):
            for key in more[:left]:
                share[key] += 1
            left -= min(left, len(more))
        for key, count in share.items():
            jumps = self._jumps[key]
            jumps.strength, jumps.row = jumps.strength[:count], jumps.row[:count]


def _halvings(count: int, most: int) -> int:
    """Return the smallest power of two by which `count` has to be divided to be `most` at most."""
    power = 1
    while count > most * power:
        power *= 2
    return power
