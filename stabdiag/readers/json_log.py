"""JSON documents: lists of records, columns, trainer states; cut ones as far as they go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.assembled import assemble
from stabdiag.readers.json_shapes import aligned, columns_in, records_in_document
from stabdiag.readers.pieces import Piece
from stabdiag.readers.records import (
    Record,
    columns_piece,
    records_piece,
    row_kinds,
    tree_order,
)
from stabdiag.readers.series_name import SCALAR_EXPORT, series_name
from stabdiag.readers.source import Source, whole_text
from stabdiag.readers.tally import Tally

_HISTORY_START = re.compile(r'"log_history"\s*:\s*\[')
_LIST_START = re.compile(r'\A\s*\[|"[^"\\]*"\s*:\s*\[(?=\s*\{)')
_BETWEEN = re.compile(r"[\s,]*")
_TODO = 'name a log with a list of records, such as [{"step": 1, "loss": 2.5}, ...]'


def read_json(source: Source) -> LogTable:
    """Read a JSON document that holds a run's records or columns.

    Raises:
        InputError: it is no JSON, or holds neither records nor columns of equal length.
    """
    tally = Tally()
    document = _document(source, tally)
    piece, records = _rows(document, source, tally)
    if not piece.rows:
        raise InputError(f"{source.name}: a JSON document without records", _TODO)
    trainer_state = isinstance(document, dict) and "log_history" in document
    cells = assemble([piece])
    if cells.place is not None:
        records = [records[row] for row in cells.place.tolist()]
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
        place=cells.place,
        notes=(*source.notes.values(), *tally.notes(), *cells.notes),
        facts=_facts(document) if trainer_state else {},
        row_kind=tuple(map(_trainer_kind, records)) if trainer_state else row_kinds(cells),
    )


def _rows(document: Any, source: Source, tally: Tally) -> tuple[Piece, list[Record]]:
    """Turn what the document holds into rows; the records too, where it holds records."""
    columns = columns_in(document)
    if columns:
        return columns_piece(aligned(columns, tally)), []
    records = records_in_document(document, series_name(source), tally)
    return records_piece(list(enumerate(records, start=1)), tally), records


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
