"""Where a JSON document holds a run's rows: records in a list, or columns side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stabdiag.readers.records import Record
from stabdiag.readers.series_name import SCALAR_EXPORT
from stabdiag.readers.tally import Tally

_DEEPEST = 3
Columns = dict[str, list[Any] | dict[str, Any]]  # cells in a list, or by row number (pandas)


def holds_series(document: Mapping[str, Any]) -> bool:
    """Say whether an object holds a run's series, not just one record."""
    return bool(_record_list(document) or _split_frame(document) or columns_in(document))


def records_in_document(document: Any, series: str, tally: Tally) -> list[Record]:
    """Return the records of a document: those of its longest list, or itself as the only one.

    Points [wall time, step, value] become records in which the value is called `series`.
    """
    if isinstance(document, list):
        return _listed(document, series, tally)
    if not isinstance(document, dict):
        return []
    split = _split_frame(document)
    if split:
        return split
    listed = _record_list(document)
    return [document] if listed is None else _listed(listed, series, tally)


def _listed(values: Sequence[Any], series: str, tally: Tally) -> list[Record]:
    records: list[Record] = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict) and value:
            records.append(value)
        elif isinstance(value, list) and len(value) == 3:
            records.append(dict(zip((*SCALAR_EXPORT[:2], series), value, strict=True)))
        elif isinstance(value, dict):
            tally.add("dropped", "an empty record {}", [number])
        else:
            tally.add("dropped", "an element that is no record", [number])
    return records


def _record_list(document: Mapping[str, Any]) -> list[Any] | None:
    history = document.get("log_history")
    if isinstance(history, list):
        return history
    return max(_record_lists(document, _DEEPEST), key=len, default=None)


def _record_lists(document: Mapping[str, Any], depth: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    for value in document.values():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found.append(value)
        elif isinstance(value, dict) and depth > 1:
            found.extend(_record_lists(value, depth - 1))
    return found


def _split_frame(document: Mapping[str, Any]) -> list[Record]:
    """Read pandas' orient="split": column names and rows apart."""
    names, rows = document.get("columns"), document.get("data")
    if not (isinstance(names, list) and isinstance(rows, list)):
        return []
    keys = [str(name) for name in names]
    if not all(isinstance(row, list) and len(row) == len(keys) for row in rows):
        return []
    return [dict(zip(keys, row, strict=True)) for row in rows]


def columns_in(document: Any) -> Columns:
    """Return the columns of a document that is mostly columns; a record may hold a list of ids."""
    if not isinstance(document, dict) or _record_list(document) or _split_frame(document):
        return {}
    columns = _columns(document, "")
    single = sum(not isinstance(value, list | dict) for value in document.values())
    return columns if len(columns) > single else {}


def _columns(document: Mapping[str, Any], prefix: str) -> Columns:
    columns: Columns = {}
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and not isinstance(value[0], list | dict):
            columns[name] = value
        elif isinstance(value, dict) and value:
            if all(row.isdecimal() for row in value):
                columns[name] = value
            elif prefix.count("/") < _DEEPEST:
                columns |= _columns(value, f"{name}/")
    return columns


def aligned(columns: Columns, tally: Tally) -> dict[str, list[Any]]:
    """Lay columns side by side; one of another length than most is left out and said."""
    length = Counter(len(cells) for cells in columns.values()).most_common(1)[0][0]
    rows: dict[str, None] = {}
    for cells in columns.values():
        if isinstance(cells, dict) and len(cells) == length:
            rows |= dict.fromkeys(cells)
    beside: dict[str, list[Any]] = {}
    for name, cells in columns.items():
        if len(cells) != length:
            text = f"{name!r} has {len(cells)} values where the others have {length}: left out"
            tally.add("dropped", text, [], 1)
        elif isinstance(cells, dict):
            beside[name] = [cells.get(row) for row in rows]
        else:
            beside[name] = cells + [None] * max(0, len(rows) - length)
    return beside
