"""JSON documents: lists of records, columns, trainer states; cut ones as far as they go."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.pieces import assemble
from stabdiag.readers.records import Record, records_piece, row_kinds, tree_order
from stabdiag.readers.series_name import SCALAR_EXPORT, series_name
from stabdiag.readers.source import Source, whole_text
from stabdiag.readers.tally import Tally

_HISTORY_START = re.compile(r'"log_history"\s*:\s*\[')
_LIST_START = re.compile(r'\A\s*\[|"[^"\\]*"\s*:\s*\[(?=\s*\{)')
_BETWEEN = re.compile(r"[\s,]*")
_DEEPEST_LIST = 3
_TODO = 'name a log with a list of records, such as [{"step": 1, "loss": 2.5}, ...]'


def read_json(source: Source) -> LogTable:
    """Read a JSON document that holds a run's records or columns.

    Raises:
        InputError: it is no JSON, or holds neither records nor columns of equal length.
    """
    tally = Tally()
    document = _document(source, tally)
    records = _records(document, source, tally)
    if not records:
        raise InputError(f"{source.name}: a JSON document without records", _TODO)
    trainer_state = isinstance(document, dict) and "log_history" in document
    cells = assemble([records_piece(list(enumerate(records, start=1)), tally)])
    names = tree_order(cells)
    is_export = names[:2] == SCALAR_EXPORT[:2] and len(names) == 3
    return LogTable(
        files=(source.name,),
        format="trainer_state" if trainer_state else "tensorboard" if is_export else "json",
        names=names,
        kinds={name: cells.kinds[name] for name in names},
        rows=cells.rows,
        load=cells.load,
        line=cells.line,
        notes=(*source.notes.values(), *tally.notes(), *cells.notes),
        facts=_facts(document) if trainer_state else {},
        row_kind=tuple(map(_trainer_kind, records)) if trainer_state else row_kinds(cells),
    )


def _document(source: Source, tally: Tally) -> Any:
    text = whole_text(source)
    try:
        return json.loads(text)
    except RecursionError as err:
        raise InputError(f"{source.name}: JSON nested too deep to be a log", _TODO) from err
    except ValueError as err:
        problem = err
    document = _one_after_another(text)
    if document is None:
        document = _salvaged(text, tally)
    if document is None:
        where = ""
        if isinstance(problem, json.JSONDecodeError):
            where = f", line {problem.lineno}, column {problem.colno}"
        raise InputError(f"{source.name}{where}: broken JSON: {problem}", _TODO) from problem
    return document


def _one_after_another(text: str) -> list[Any] | None:
    """Read objects that were written one after another, each over several lines."""
    values, end = _values_from(text, 0)
    return values if len(values) > 1 and not text[end:].strip() else None


def _salvaged(text: str, tally: Tally) -> Any:
    """Read the whole records of a list whose end is lost; None where there is no such list."""
    history = _HISTORY_START.search(text)
    start = history or _LIST_START.search(text)
    if start is None:
        records, end = _values_from(text, 0)
    else:
        records, end = _values_from(text, start.end())
    if not records or not all(isinstance(r, dict | list) for r in records):
        return None
    if start is None and not all(isinstance(r, dict) for r in records):
        return None
    line = text.count("\n", 0, end) + 1
    tally.add("dropped", "the document breaks off after its last whole record", [line])
    return {"log_history": records} if history else records


def _values_from(text: str, position: int) -> tuple[list[Any], int]:
    """Decode the values that follow one another from a position; return them and where they end."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    while True:
        position = _skip(text, position)
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values, position
        values.append(value)


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _records(document: Any, source: Source, tally: Tally) -> list[Record]:
    if isinstance(document, list):
        return _listed(document, source, tally)
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("log_history"), list):
        return _listed(document["log_history"], source, tally)
    split = _split_frame(document)
    if split:
        return split
    listed = max(_record_lists(document, _DEEPEST_LIST), key=len, default=None)
    if listed:
        return _listed(listed, source, tally)
    columns = _main_columns(document)
    if columns:
        return _rows_of(columns, tally)
    return [document]


def _listed(values: Sequence[Any], source: Source, tally: Tally) -> list[Record]:
    """Take records out of a list; points [wall time, step, value] get the name of their file."""
    records: list[Record] = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict) and value:
            records.append(value)
        elif isinstance(value, list) and len(value) == 3:
            records.append(dict(zip((*SCALAR_EXPORT[:2], series_name(source)), value, strict=True)))
        elif isinstance(value, dict):
            tally.add("dropped", "an empty record {}", [number])
        else:
            tally.add("dropped", "an element that is no record", [number])
    return records


def holds_series(document: Mapping[str, Any]) -> bool:
    """Say whether an object holds a run's series, not just one record."""
    return "log_history" in document or bool(
        _split_frame(document) or _record_lists(document, _DEEPEST_LIST) or _main_columns(document)
    )


def _main_columns(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Find the columns of a document that is mostly columns; a record may hold a list of ids."""
    columns = _columns(document)
    single = sum(not isinstance(value, list | dict) for value in document.values())
    return columns if len(columns) > single else {}


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


def _columns(document: Mapping[str, Any], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    """Find the columns of a columnar document: lists of numbers, or objects by row number."""
    columns: dict[str, Mapping[str, Any]] = {}
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and not isinstance(value[0], list | dict):
            columns[name] = {str(index): cell for index, cell in enumerate(value)}
        elif isinstance(value, dict) and value:
            if all(row.isdecimal() for row in value):
                columns[name] = value
            elif prefix.count("/") < _DEEPEST_LIST:
                columns |= _columns(value, f"{name}/")
    return columns


def _rows_of(columns: Mapping[str, Mapping[str, Any]], tally: Tally) -> list[Record]:
    """Turn columns into records; columns of another length than most can't be laid beside them."""
    length = Counter(len(cells) for cells in columns.values()).most_common(1)[0][0]
    rows: dict[str, Record] = {}
    for name, cells in columns.items():
        if len(cells) != length:
            text = f"{name!r} has {len(cells)} values where the others have {length}: left out"
            tally.add("dropped", text, [], 1)
            continue
        for row, cell in cells.items():
            rows.setdefault(row, {})[name] = cell
    return list(rows.values())


def _trainer_kind(record: Record) -> str:
    """Tell the records of Hugging Face's log_history apart by their keys."""
    if "loss" in record:
        return "train"
    if any(key.startswith("eval_") for key in record):
        return "eval"
    if "train_loss" in record or "train_runtime" in record:
        return "summary"
    return "train"


def _facts(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(value)
        for key, value in document.items()
        if isinstance(value, str | int | float) and not key.startswith("_")
    }
