"""Which logs are meant: the files below a folder, those of a pattern, those of an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from stabdiag.errors import UsageError
from stabdiag.readers.event_files import is_event_file
from stabdiag.readers.source import unpacked
from stabdiag.readers.store import listed, remote_uri

# By their name these are logs: one that can't be read is said.
TABLES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".feather", ".arrow"})
# These may be anything: one in which no log is recognised is left out, and counted.
MAYBE = frozenset({".json", ".log", ".out", ".txt"})
_METRIC_FOLDER = "metrics"  # MLflow and DVCLive: one file a metric


@dataclass(frozen=True)
class Found:
    """A log to judge; `sure` is False for a file found that may be anything."""

    log: str
    sure: bool


def find(places: Sequence[str]) -> tuple[Found, ...]:
    """Return the logs at `places`, each once, in the order of the places, then by name.

    A place is a log, a folder, a pattern with * or ?, or an address. A folder of event files or of
    one-metric files is one log; any other is searched, also behind links. Passed over are hidden
    files and folders, and in a folder pipes and devices.

    Raises:
        UsageError: a place holds nothing that may be a log.
        InputError: an object store can't be listed.
    """
    found: dict[str, Found] = {}
    for place in places:
        here = list(_at(place))
        if not here:
            raise UsageError(
                f"{place}: nothing there that may be a log",
                "Name a folder of logs, a pattern such as 'runs/*/metrics.csv', or logs.",
            )
        for one in here:
            found.setdefault(remote_uri(one.log) or os.path.realpath(one.log), one)
    return tuple(found.values())


def _at(place: str) -> Iterator[Found]:
    if remote_uri(place):
        yield from _elsewhere(remote_uri(place))
    elif os.path.isdir(place):
        yield from _below(Path(place))
    elif has_magic(place) and not os.path.exists(place):
        for match in sorted(glob(place, recursive=True)):
            if os.path.isdir(match):
                yield from _below(Path(match))
            else:
                yield Found(match, sure=True)
    elif os.path.exists(place):
        yield Found(place, sure=True)


def _below(folder: Path) -> Iterator[Found]:
    """The logs of a folder and of those in it, sorted by path; a folder that can't be read is one."""
    closed: list[str] = []
    entered: set[str] = set()  # a link may lead to a folder above it
    for here, folders, names in os.walk(
        folder, onerror=lambda err: closed.append(err.filename), followlinks=True
    ):
        if os.path.realpath(here) in entered:
            folders.clear()
            continue
        entered.add(os.path.realpath(here))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = [Path(here, name) for name in sorted(names) if not name.startswith(".")]
        files = [file for file in files if not os.path.exists(file) or os.path.isfile(file)]
        if _is_one_log(Path(here), files):
            folders.clear()
            yield Found(str(Path(here)), sure=True)
            continue
        for file in files:
            if is_event_file(file):
                yield Found(str(file), sure=True)
            elif kind := _kind(file.name):
                yield Found(str(file), sure=kind == "table")
    yield from (Found(place, sure=True) for place in closed)


def _elsewhere(uri: str) -> Iterator[Found]:
    """The logs below an address, as those of a folder here."""
    files = listed(uri)
    if len(files) == 1 and files[0].uri == uri:
        yield Found(uri, sure=True)
        return
    root = Path(urlsplit(uri).path)
    inside: dict[Path, list[Path]] = {}
    for file in files:
        place = root / file.below
        if not any(part.startswith(".") for part in Path(file.below).parts):
            inside.setdefault(place.parent, []).append(place)
    whole = {folder for folder, some in inside.items() if _is_one_log(folder, some)}
    said: set[Path] = set()
    for file in files:
        place = root / file.below
        one_log = next((f for f in reversed(place.parents) if f in whole), None)
        if one_log is not None and one_log not in said:
            said.add(one_log)
            above = len(place.relative_to(one_log).parts)
            yield Found(_above(file.uri, above), sure=True)
        elif (
            one_log is None
            and place in inside.get(place.parent, ())
            and (kind := _kind(place.name))
        ):
            yield Found(file.uri, sure=kind == "table")


def _above(uri: str, levels: int) -> str:
    """The address of a folder so many levels above a file."""
    parts = urlsplit(uri)
    return parts._replace(path=PurePosixPath(parts.path).parents[levels - 1].as_posix()).geturl()


def _is_one_log(folder: Path, files: Sequence[Path]) -> bool:
    """Whether the files of a folder are one run's: event files, or a metric each."""
    if any(_kind(file.name) == "table" for file in files):
        return folder.name == _METRIC_FOLDER and all(file.suffix == ".tsv" for file in files)
    return any(map(is_event_file, files)) or (
        folder.name == _METRIC_FOLDER and bool(files) and not any(file.suffix for file in files)
    )


def _kind(name: str) -> str:
    """Return "table", "maybe" or "" (no log) by a file's name."""
    suffix = PurePosixPath(unpacked(name.lower())).suffix
    return "table" if suffix in TABLES else "maybe" if suffix in MAYBE else ""
