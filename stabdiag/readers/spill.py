"""Numbers of a log held in memory up to a budget, beyond it in a temporary file."""

from __future__ import annotations

import tempfile
import weakref
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

from stabdiag.readers.arrays import float_array, float_values, valid_mask

# Project choice: with it a log of 200 layers over 100,000 steps stays in memory, and one of any
# number of layers, or of any number of shards, needs no more than this.
BUDGET_BYTES = 256 << 20


@dataclass
class _Used:
    bytes: int = 0

    def give_back(self, own: _Used) -> None:
        self.bytes -= own.bytes


_USED = _Used()  # by all logs that are held


class Spill:
    """Where the numbers of one log are kept while it is read; the file goes away with the log."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._budget = budget
        self._own = _Used()
        self._file: IO[bytes] | None = None
        self._offset = 0
        weakref.finalize(self, _USED.give_back, self._own)

    def keep(self, cells: pa.Array) -> pa.Array | Spilled:
        """Keep an array of float64: as it is while the budget lasts, else written to the file."""
        size = cells.nbytes
        if _USED.bytes + size <= self._budget:
            _USED.bytes += size
            self._own.bytes += size
            return cells
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the last column
            weakref.finalize(self, self._file.close)
        self._file.seek(self._offset)
        written = self._file.write(float_values(cells).tobytes())
        if cells.null_count:
            written += self._file.write(np.packbits(valid_mask(cells)).tobytes())
        slot = Spilled(self, self._offset, len(cells), cells.null_count)
        self._offset += written
        return slot

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes that were kept."""
        assert self._file is not None
        self._file.seek(offset)
        return self._file.read(size)


@dataclass(frozen=True)
class Spilled:
    """Numbers of one column in the temporary file: float64 values, then their bits of validity."""

    spill: Spill
    offset: int
    length: int
    null_count: int

    def __len__(self) -> int:
        return self.length

    def cells(self) -> pa.Array:
        """Return the numbers as an Arrow array; null where a cell is missing."""
        size = 8 * self.length
        value = np.frombuffer(self.spill.read(self.offset, size), dtype=np.float64)
        if not self.null_count:
            return float_array(value)
        packed = self.spill.read(self.offset + size, (self.length + 7) // 8)
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=self.length)
        return float_array(value, bits.astype(np.bool_))
