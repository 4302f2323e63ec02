"""What is known of a table of text while its blocks are read: its columns and its troubles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from stabdiag.readers.csv_dialect import Dialect
from stabdiag.readers.tally import Tally


@dataclass(frozen=True)
class Row:
    """One row: its first line in the file (1-based) and its cells as written."""

    line: int
    cells: list[str]


@dataclass
class CsvTable:
    """A table of text being read.

    `columns` are the names in force, unique; a second header in the middle replaces them.
    `kinds` are the Arrow types that the columns turned out to have so far: float64, or string for
    dates and times, which stay as written. `held` is a row with too many cells, kept back until
    the next row shows whether that is the rule from there on; `last_size` is the number of cells
    of the row before it.
    """

    name: str
    dialect: Dialect
    columns: tuple[str, ...]
    tally: Tally
    kinds: dict[str, pa.DataType] = field(default_factory=dict)
    held: Row | None = None
    last_size: int = 0

    def drop_held(self) -> None:
        """Leave out the row kept back: the next one is not like it."""
        if self.held is not None:
            self.tally.add("dropped", "a row with more cells than the header", [self.held.line])
            self.held = None


def column_names(cells: Sequence[str], tally: Tally, line: int) -> tuple[str, ...]:
    """Turn the cells of a header into unique names.

    A column without a name (pandas and R write their index so) is called "Unnamed: i"; the second
    column of a name is called "name (2)", with a note, since either may be the one that counts.
    """
    names: list[str] = []
    taken: dict[str, int] = {}
    for index, cell in enumerate(cells):
        name = cell.strip() or f"Unnamed: {index}"
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            again = f"{name} ({taken[name]})"
            tally.add(
                "guessed", f"two columns are called {name!r}: a later one is {again!r}", [line]
            )
            name = again
        names.append(name)
    return tuple(names)
