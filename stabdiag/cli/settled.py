"""Flags over configuration: one checked value for each option, or an error that says what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from stabdiag.cli.options import AnalysisOptions, OutputOptions, ReadingOptions
from stabdiag.config import Config, load_config, nearest
from stabdiag.errors import UsageError
from stabdiag.findings import FAIL_ON, Severity
from stabdiag.settings import Settings

T = TypeVar("T")

LEAST_WINDOW = 10  # points that a baseline needs before it expects anything
NEVER = "never"


def configuration(reading: ReadingOptions) -> Config:
    """Return the configuration in force for this command."""
    return load_config(reading.config, Path.cwd())


def settings_of(reading: ReadingOptions, analysis: AnalysisOptions, config: Config) -> Settings:
    """Return the settings of the analysis, each checked.

    Raises:
        UsageError: a value out of its range or not of its form; the message names the option.
    """
    first, last = _step_range(_first(reading.steps, config.steps))
    return Settings(
        spike_threshold=_positive(_first(analysis.spike_threshold, config.spike_threshold)),
        window=_window(_first(analysis.window, config.window)),
        first_step=first,
        last_step=last,
        run=_first(reading.run, config.run),
        column_map=dict(config.map) | _column_map(reading.map or ()),
        step_column=_first(reading.step_column, config.step_column),
        thresholds=_finite(config),
    )


def fail_on(analysis: AnalysisOptions, config: Config) -> Severity | None:
    """Return the severity from which the command exits 1; None is never."""
    word = _first(analysis.fail_on, config.fail_on)
    return FAIL_ON[one_of("--fail-on", NEVER if word is None else word, list(FAIL_ON))]


def required(analysis: AnalysisOptions, config: Config) -> tuple[str, ...]:
    """Return the workflow steps and series without which the command exits 3."""
    return tuple(analysis.require or config.require)


def format_of(output: OutputOptions, config: Config, formats: Sequence[str]) -> str:
    """Return the name of the report format: one of `formats`.

    A flag must name one of them; a configuration that names another is meant for `analyze`.
    """
    if output.format is not None:
        return one_of("--format", output.format, list(formats))
    from stabdiag.reporters import FORMATS

    word = one_of("format", config.format or "text", list(FORMATS))
    return word if word in formats else "text"


def _first(flag: T | None, configured: T | None) -> T | None:
    return configured if flag is None else flag


def one_of(option: str, word: str, known: list[str]) -> str:
    """Return `word` where it is one of `known`; else a UsageError names the nearest."""
    if word in known:
        return word
    raise UsageError(
        f"{option} is {word!r}, which is none of {', '.join(known)}",
        f"The nearest is `{option} {nearest(word, known)}`.",
    )


def _positive(threshold: float | None) -> float | None:
    if threshold is None or (math.isfinite(threshold) and threshold > 0):
        return threshold
    raise UsageError(
        f"--spike-threshold is {threshold}; it counts robust standard deviations",
        "Give a finite number above 0, such as --spike-threshold 6.",
    )


def _window(window: int | None) -> int | None:
    if window is None or window >= LEAST_WINDOW:
        return window
    raise UsageError(
        f"--window is {window}; a baseline needs at least {LEAST_WINDOW} points",
        f"Give a whole number from {LEAST_WINDOW}, such as --window 100.",
    )


def _step_range(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    left, colon, right = text.partition(":")
    try:
        first = int(left) if left.strip() else None
        last = int(right) if right.strip() else None
    except ValueError:
        colon = ""
    if not colon or (first is None and last is None):
        raise UsageError(
            f"--steps is {text!r}, which is not A:B",
            "Give two whole numbers, such as --steps 100:500, or one, as in --steps 100: .",
        )
    if first is not None and last is not None and first > last:
        raise UsageError(
            f"--steps {text} ends before it begins", f"Turn it round: --steps {last}:{first}."
        )
    return first, last


def _column_map(pairs: Sequence[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for pair in pairs:
        series, equals, column = pair.partition("=")
        if not (series and equals and column):
            raise UsageError(
                f"--map is {pair!r}, which is not SERIES=COLUMN",
                "Give a series and its column, such as --map loss=train/loss.",
            )
        if columns.get(series, column) != column:
            raise UsageError(
                f"--map gives two columns for {series!r}: {columns[series]!r} and {column!r}",
                "Keep one of them.",
            )
        columns[series] = column
    return columns


def _finite(config: Config) -> Mapping[str, float]:
    for name, limit in config.thresholds.items():
        if not math.isfinite(limit):
            raise UsageError(
                f"{config.source}: the threshold {name!r} is {limit}", "Give a finite number."
            )
    return config.thresholds
