"""Numbers of a log held in memory up to a budget, beyond it in a temporary file."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

# Project choice: with it a log of 200 layers over 100,000 steps stays in memory, and one of any
# number of layers needs no more than this.
BUDGET_BYTES = 256 << 20


@dataclass(frozen=True)
class Spilled:
    """Numbers of one column that lie in the temporary file: float64 values, then validity bits."""

    file: IO[bytes]
    offset: int
    length: int
    null_count: int

    type = pa.float64()

    def __len__(self) -> int:
        return self.length

    def read(self) -> pa.Array:
        """Return the numbers as an Arrow array; null where a cell is missing."""
        self.file.seek(self.offset)
        value = np.frombuffer(self.file.read(8 * self.length), dtype=np.float64)
        if not self.null_count:
            return pa.array(value)
        bits = np.frombuffer(self.file.read((self.length + 7) // 8), dtype=np.uint8)
        return pa.array(value, mask=np.unpackbits(bits, count=self.length).astype(bool))


class Spill:
    """Where the numbers of one log are kept while it is read; the file goes away with the log."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._left = budget
        self._file: IO[bytes] | None = None
        self._offset = 0

    def keep(self, cells: pa.Array) -> pa.Array | Spilled:
        """Keep an array of float64: as it is while the budget lasts, else written to the file."""
        size = cells.nbytes
        if size <= self._left:
            self._left -= size
            return cells
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as its columns
        value = cells.to_numpy(zero_copy_only=False)  # null becomes NaN; the bits tell them apart
        written = self._file.write(value.tobytes())
        if cells.null_count:
            written += self._file.write(np.packbits(np.asarray(cells.is_null())).tobytes())
        slot = Spilled(self._file, self._offset, len(cells), cells.null_count)
        self._offset += written
        return slot
