"""The policy from TOML: `[gate]` in stabdiag.toml, `[tool.stabdiag.gate]`, or a file of its own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from stabdiag.config import PROJECT_NAME, nearest
from stabdiag.errors import UsageError
from stabdiag.findings import CAUSES, FAIL_ON, NO_CAUSE, Severity
from stabdiag.gate.records import Accepted, Policy
from stabdiag.rules import CATALOGUE


def load_policy(path: Path, *, named: bool = False) -> Policy:
    """Read the policy in `path`; a file without one is the default policy, unless it was `named`.

    Raises:
        UsageError: not a readable TOML file, an unknown key (the message names the nearest),
            rule or cause, or a value that is not of its kind; with file and line. A file that was
            named for its policy has none: what stands in it would bind nobody.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as err:
        reason = getattr(err, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"policy {path}: {reason}", "Name a TOML file with --policy.") from err
    except tomllib.TOMLDecodeError as err:
        raise UsageError(f"policy {path} is not TOML: {err}", "Correct it there.") from err
    if path.name == PROJECT_NAME:
        table = table.get("tool", {}).get("stabdiag", {})
    own = table.get("gate", {})
    if named and "gate" not in table:
        header = "[tool.stabdiag.gate]" if path.name == PROJECT_NAME else "[gate]"
        raise UsageError(f"policy {path}: no {header} in it", f"Write the policy under {header}.")
    if not isinstance(own, dict):
        raise UsageError(f"{path}: `gate` is not a table", "Write it as [gate].")
    return _policy(own, path, _Places(text))


class _Places:
    """The lines of the keys in a policy's text."""

    def __init__(self, text: str) -> None:
        self.keys: dict[str, int] = {}
        self.accepts: list[int] = []
        section = ""
        for number, line in enumerate(text.splitlines(), start=1):
            if found := re.match(r"\s*\[{1,2}\s*([^\]]+?)\s*\]", line):
                section = found[1].replace(" ", "")
                if section.endswith("gate.accept"):
                    self.accepts.append(number)
            elif section.endswith("gate") and (found := re.match(r"\s*([\w-]+)\s*=", line)):
                self.keys[found[1].replace("-", "_")] = number

    def of(self, path: Path, key: str) -> str:
        line = self.keys.get(key)
        return f"{path}:{line}" if line else str(path)


def _policy(table: Mapping[str, Any], path: Path, places: _Places) -> Policy:
    values: dict[str, Any] = {"source": path.name, "lines": places.keys}
    for raw, value in table.items():
        key = raw.replace("-", "_")
        where = places.of(path, key)
        if key == "accept":
            values[key] = _accepts(value, path, places)
            continue
        if key not in _READ:
            known = [name.replace("_", "-") for name in (*_READ, "accept")]
            raise UsageError(
                f"{where}: unknown key `{raw}` in the policy",
                f"The nearest known key is `{nearest(raw, known)}`; all: {', '.join(known)}.",
            )
        wanted, read = _READ[key]
        try:
            values[key] = read(value)
        except (TypeError, ValueError) as err:
            raise UsageError(
                f"{where}: `{raw}` is {value!r}, which is not {wanted}", f"Write it as {wanted}."
            ) from err
    return Policy(**values)


def _accepts(value: Any, path: Path, places: _Places) -> tuple[Accepted, ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise UsageError(f"{path}: `accept` is not a list of tables", "Write [[gate.accept]].")
    lines = places.accepts if len(places.accepts) == len(value) else [0] * len(value)
    return tuple(_accepted(one, line, path) for one, line in zip(value, lines, strict=True))


def _accepted(table: Mapping[str, Any], line: int, path: Path) -> Accepted:
    where = f"{path}:{line}" if line else str(path)
    known = ("rule", "layer", "steps", "reason", "until")
    for key in table:
        if key not in known:
            raise UsageError(
                f"{where}: unknown key `{key}` in an acceptance",
                f"The nearest known key is `{nearest(key, list(known))}`.",
            )
    rules = [rule.id for rule in CATALOGUE]
    rule = table.get("rule")
    if rule not in rules:
        raise UsageError(
            f"{where}: `rule` is {rule!r}, which is no rule",
            "Name one such as SD101; `stabdiag explain` lists them all.",
        )
    try:
        first, last = _span(table.get("steps"))
        until = _day(table.get("until"))
        layer = _text(table["layer"]) if "layer" in table else None
        reason = _text(table.get("reason", ""))
    except (TypeError, ValueError) as err:
        raise UsageError(
            f"{where}: an acceptance of {rule} can't be read: {err or 'a value of another kind'}",
            'Write layer and reason as texts, steps as "0:100", until as 2027-01-31.',
        ) from err
    return Accepted(str(rule), layer, first, last, reason, until, line)


def _day(value: Any) -> date | None:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    return date.fromisoformat(_text(value))


def _span(value: Any) -> tuple[int | None, int | None]:
    if value is None:
        return None, None
    left, colon, right = _text(value).partition(":")
    if not colon:
        raise ValueError(f"steps is {value!r}, which is not A:B")
    return (int(left) if left else None), (int(right) if right else None)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise TypeError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _severity(value: Any) -> Severity | None:
    if value not in FAIL_ON:
        raise ValueError
    return FAIL_ON[value]


def _causes(value: Any) -> tuple[str, ...]:
    known = (*CAUSES, *NO_CAUSE)
    if not isinstance(value, list) or any(one not in known for one in value):
        raise TypeError
    return tuple(value)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or any(isinstance(one, bool) for one in value):
        raise TypeError
    return tuple(str(one) if isinstance(one, int) else _text(one) for one in value)


_READ: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "fail_on": ("info, warning, error or never", _severity),
    "max_loss_spikes": ("a whole number from 0", _count),
    "max_grad_spikes": ("a whole number from 0", _count),
    "no_non_finite": ("true or false", _truth),
    "max_param_growth": ("a number", _number),
    "max_final_loss": ("a number", _number),
    "min_last_step": ("a whole number from 0", _count),
    "min_audit_score": ("a whole number from 0", _count),
    "require": ("a list of workflow steps and series", _words),
    "allow_causes": (f"a list of {', '.join((*CAUSES, *NO_CAUSE))}", _causes),
}
