"""What a reader makes of a log: its rows, some consecutive ones at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from stabdiag.model import I64
from stabdiag.readers.lists import MixedLists


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a log.

    `columns` holds Arrow arrays: numbers (null: missing), text (the cells as written), lists of
    numbers or text. An array has shape [rows], or, for a column named in `at`, the shape of
    `at[name]`: the 0-based rows of this piece that have a cell. `line` is the 1-based line of each
    row in its file.
    """

    rows: int
    line: I64
    columns: Mapping[str, pa.Array | MixedLists]
    at: Mapping[str, I64] = field(default_factory=dict)
