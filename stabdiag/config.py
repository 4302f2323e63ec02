"""The configuration: stabdiag.toml, or [tool.stabdiag] in pyproject.toml; a flag beats it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stabdiag.errors import UsageError

OWN_NAME = "stabdiag.toml"
PROJECT_NAME = "pyproject.toml"
_POLICY = "gate"


@dataclass(frozen=True)
class Config:
    """What the configuration says; None or empty where it says nothing.

    `source` names the file for messages, `path` is where it is. Values are checked for their type
    here, for their meaning where the flags of the same name are. Paths in `log` are relative to the
    file's folder.
    """

    source: str = ""
    path: Path | None = field(default=None, compare=False)
    log: tuple[str, ...] = ()
    spike_threshold: float | None = None
    window: int | None = None
    map: Mapping[str, str] = field(default_factory=dict)
    step_column: str | None = None
    steps: str | None = None
    run: str | None = None
    format: str | None = None
    fail_on: str | None = None
    require: tuple[str, ...] = ()
    color: bool = True
    quiet: bool = False
    thresholds: Mapping[str, float] = field(default_factory=dict)


def load_config(path: Path | None, folder: Path) -> Config:
    """Return the configuration in `path`, or the nearest one above `folder`, or an empty one.

    Raises:
        UsageError: no such file, not TOML, an unknown key (the message names the nearest known
            one) or a value of the wrong type.
    """
    if path is not None:
        table = _read(path)
        return _config(_own_table(path, table) or {}, path)
    for candidate in _candidates(folder):
        table = _read(candidate)
        own = _own_table(candidate, table)
        if own is not None:
            return _config(own, candidate)
    return Config()


def nearest(word: str, known: list[str]) -> str:
    """Return the known word most like `word`."""
    return difflib.get_close_matches(word, known, n=1, cutoff=0.0)[0]


def _candidates(folder: Path) -> Iterator[Path]:
    """Configuration files from `folder` upward, no further than the repository or the home."""
    for place in (folder, *folder.parents):
        for name in (OWN_NAME, PROJECT_NAME):
            if (place / name).is_file():
                yield place / name
        if (place / ".git").exists() or place == Path.home():
            return


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "not UTF-8 text"
        raise UsageError(
            f"configuration {path}: {reason}", "Name a readable TOML file with --config."
        ) from err
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise UsageError(
            f"configuration {path} is not TOML: {err}", "Correct the file at the place named."
        ) from err


def _own_table(path: Path, table: dict[str, Any]) -> dict[str, Any] | None:
    """The tool's table in a file; None where a pyproject.toml has none."""
    if path.name != PROJECT_NAME:
        return table
    tools = table.get("tool", {})
    own = tools.get("stabdiag") if isinstance(tools, dict) else None
    if own is not None and not isinstance(own, dict):
        raise UsageError(
            f"{path}: `stabdiag` under [tool] is not a table", "Write it as [tool.stabdiag]."
        )
    return own


def _config(table: Mapping[str, Any], path: Path) -> Config:
    values: dict[str, Any] = {"source": path.name, "path": path}
    for raw, value in table.items():
        key = raw.replace("-", "_")
        if key == _POLICY:  # read by `gate` alone
            continue
        if key not in _READ:
            near = nearest(raw, [_spelled(known) for known in _READ])
            raise UsageError(
                f"{path}: unknown key `{raw}`",
                f"The nearest known key is `{near}`; all: {', '.join(map(_spelled, _READ))}.",
            )
        wanted, read = _READ[key]
        try:
            values[key] = read(value)
        except (TypeError, ValueError) as err:
            raise UsageError(
                f"{path}: `{raw}` is {value!r}, which is not {wanted}",
                f"Write `{raw}` as {wanted}.",
            ) from err
    if "log" in values:
        values["log"] = tuple(str(path.parent / name) for name in values["log"])
    return Config(**values)


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise TypeError
    return tuple(_text(item) for item in items)


def _words(value: Any) -> tuple[str, ...]:
    """A list of texts or whole numbers, such as steps of the workflow."""
    items = value if isinstance(value, list) else [value]
    return tuple(_word(item) for item in items)


def _word(value: Any) -> str:
    return str(_whole(value)) if isinstance(value, int) else _text(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _mapping(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError
    return {name: _text(column) for name, column in value.items()}


def _thresholds(value: Any) -> dict[str, float]:
    """Thresholds by "RULE.name"; a bare `SD101.min_z = 6`, a table in TOML, means the same."""
    if not isinstance(value, dict):
        raise TypeError
    limits: dict[str, float] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            limits |= {f"{key}.{name}": _number(limit) for name, limit in item.items()}
        else:
            limits[key] = _number(item)
    return limits


_READ: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "log": ("a path or a list of paths", _texts),
    "spike_threshold": ("a number", _number),
    "window": ("a whole number", _whole),
    "map": ("a table of series and their columns", _mapping),
    "step_column": ("a text", _text),
    "steps": ('a text such as "100:500"', _text),
    "run": ("a text or a whole number", _word),
    "format": ("a text", _text),
    "fail_on": ("a text", _text),
    "require": ("a list of workflow steps and series", _words),
    "color": ("true or false", _truth),
    "quiet": ("true or false", _truth),
    "thresholds": ('a table such as {"SD101.min_z" = 6.0}', _thresholds),
}
