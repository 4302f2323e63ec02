"""What a reader must do with any file at all."""

from __future__ import annotations

from pathlib import Path

from stabdiag.errors import StabdiagError
from stabdiag.readers import (
    arrow_cells,  # noqa: F401  each reader is imported here, so that its coverage leads the fuzzer
    csv_log,  # noqa: F401
    event_files,  # noqa: F401
    json_log,  # noqa: F401
    jsonl_log,  # noqa: F401
    parquet_log,  # noqa: F401
    read_log,
    text_log,  # noqa: F401
)


def survives(log: Path) -> str:
    """Read a file; return "" for a table that holds together, else the error's first line.

    Raises:
        AssertionError: columns that do not fit the table, or an error that says nothing to do.
    """
    try:
        table = read_log([log])
        columns = table.load(table.names)
    except StabdiagError as err:
        if not (err.what.strip() and err.todo.strip()):
            raise AssertionError("an error that does not say what, or what to do") from err
        return err.what
    assert set(columns) == set(table.names)
    for name, column in columns.items():
        assert column.kind == table.kinds[name]
        assert len(column.value) == len(column.logged) == table.rows
    assert len(table.line) == table.rows
    return ""
