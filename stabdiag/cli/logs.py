"""Which log is meant where none was named, and the log last analysed from a folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from stabdiag.config import Config
from stabdiag.errors import UsageError

VARIABLE = "STABDIAG_LOG"
STANDARD_INPUT = Path("-")
# Names that a folder's one log may have; what is in it is the reader's business.
SUFFIXES = frozenset(
    {".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".log", ".out", ".txt"}
    | {".gz", ".zst", ".bz2", ".xz"}
)
# Files of those kinds that lie in many project folders and are no logs.
_NO_LOGS = ("requirements", "readme", "license", "notice", "changelog", "package", "tsconfig")
_SHOWN = 10


def meant_logs(
    named: Sequence[Path] | None, config: Config, folder: Path, say: Callable[[str], None]
) -> tuple[Path, ...]:
    """Return the logs to read: those named, else the one that is evident, said with `say`.

    In this order: the variable STABDIAG_LOG, `log` in the configuration, the log last analysed
    from `folder`, the one log in it.

    Raises:
        UsageError: none is evident; the message lists what was found.
    """
    if named:
        return tuple(named)
    variable = os.environ.get(VARIABLE)
    if variable:
        say(f"log: {variable} (from {VARIABLE})")
        return (Path(variable),)
    if config.log:
        say(f"log: {', '.join(config.log)} (from {config.source})")
        return tuple(map(Path, config.log))
    last = last_analysed(folder)
    if last:
        say(f"log: {', '.join(map(str, last))} (last analysed from this folder)")
        return last
    found = logs_in(folder)
    if len(found) == 1:
        say(f"log: {found[0].name} (the one log in this folder)")
        return (Path(found[0].name),)
    raise _not_evident(found)


def _not_evident(found: Sequence[Path]) -> UsageError:
    if not found:
        return UsageError(
            "no LOG was given and there is none in this folder",
            f"Name one, as in `stabdiag analyze run.jsonl`, or set {VARIABLE}.",
        )
    names = [path.name for path in found]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return UsageError(
        f"no LOG was given and this folder has {len(names)} that could be meant",
        f"Name one of: {', '.join(names[:_SHOWN])}{more}.",
    )


def logs_in(folder: Path) -> list[Path]:
    """Return the files of `folder` that may be logs by their name, sorted."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in entries if _may_be_log(path) and path.is_file()]


def _may_be_log(path: Path) -> bool:
    name = path.name.lower()
    return (
        path.suffix.lower() in SUFFIXES
        and not name.startswith(".")
        and not name.startswith(_NO_LOGS)
    )


def last_analysed(folder: Path) -> tuple[Path, ...]:
    """Return the logs last analysed from `folder`; empty where unknown or gone."""
    try:
        kept = json.loads(_memory(folder).read_text(encoding="utf-8"))
        logs = tuple(Path(name) for name in kept["logs"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return logs if all((folder / path).exists() for path in logs) else ()


def remember(logs: Sequence[Path], folder: Path) -> None:
    """Keep `logs` as those last analysed from `folder`; a cache that can't be written is no loss.

    Paths below `folder` are kept relative to it, so that a moved home stays right.
    """
    if STANDARD_INPUT in logs:
        return
    kept = {"folder": str(folder), "logs": [str(_short(path, folder)) for path in logs]}
    place = _memory(folder)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(kept), encoding="utf-8")
        beside.replace(place)
    except OSError:
        return


def _short(path: Path, folder: Path) -> Path:
    whole = path if path.is_absolute() else folder / path
    return whole.relative_to(folder) if whole.is_relative_to(folder) else whole


def cache_folder() -> Path:
    """Return the folder of this tool in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~").expanduser() / ".cache")
    return Path(home) / "stabdiag"


def _memory(folder: Path) -> Path:
    """The file of the user's cache that belongs to `folder`."""
    key = hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]
    return cache_folder() / "last-log" / f"{key}.json"
