"""The name of a series that stands only in the name of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stabdiag.readers.source import Source

SCALAR_EXPORT = ("Wall time", "Step", "Value")
_RUN_AND_TAG = re.compile(r"run-.*?-tag-(?P<tag>.+)", re.DOTALL)


def is_scalar_export(names: Sequence[str]) -> bool:
    """Say whether this is the header of TensorBoard's export of one scalar."""
    return tuple(names) == SCALAR_EXPORT


def series_name(source: Source) -> str:
    """Name the series of a one-metric file: the tag of `run-<run>-tag-<tag>.csv`, or the stem.

    TensorBoard writes the slashes of a tag as underscores; they stay so. A pipe has no name:
    "Value".
    """
    match = _RUN_AND_TAG.fullmatch(source.stem)
    return match["tag"] if match else source.stem or "Value"
