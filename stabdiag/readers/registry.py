"""The formats: one line each, in the order in which they are tried on a log's first bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from stabdiag.model import LogTable
from stabdiag.readers import recognise
from stabdiag.readers.event_files import recognise_events
from stabdiag.readers.source import Source


@dataclass(frozen=True)
class Reader:
    """One format: `recognise` says by which sign a log is of it ("" where it is not)."""

    name: str
    recognise: Callable[[Source], str]
    read: Callable[[Source], LogTable]


def _from(module: str, function: str) -> Callable[[Source], LogTable]:
    """Name a reader without importing it: Parquet's need not be loaded for a CSV."""

    def read(source: Source) -> LogTable:
        reader: Callable[[Source], LogTable] = getattr(
            import_module(f"stabdiag.readers.{module}"), function
        )
        return reader(source)

    return read


def _read_text(source: Source) -> LogTable:
    from stabdiag.readers.source import whole_text
    from stabdiag.readers.text_log import read_text

    return read_text(Path(source.name), whole_text(source))


READERS: tuple[Reader, ...] = (
    Reader("parquet", recognise.parquet, _from("parquet_log", "read_parquet")),
    Reader("arrow", recognise.arrow, _from("parquet_log", "read_arrow")),
    Reader("tensorboard events", recognise_events, _from("event_files", "read_events")),
    Reader("json lines", recognise.json_lines, _from("jsonl_log", "read_jsonl")),
    Reader("json", recognise.json_document, _from("json_log", "read_json")),
    Reader("csv", recognise.table_of_text, _from("csv_log", "read_csv")),
    Reader("text", recognise.text, _read_text),
)
