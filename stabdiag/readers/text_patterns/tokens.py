"""Numbers, units and `key: value` pairs in a line of text.

Every expression here is linear in the length of the line: repetitions are bounded or can't
overlap, since a log may hold lines of any length and content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

NUM = (
    r"[-+]?(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,6}(?![0-9,])(?:\.[0-9]{1,12})?"
    r"|(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,5})?"
    r"|(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)(?:\.0)?)"
)
UNIT = r"(?:ms|us|s/it|it/s|min|[KMGT]i?B(?:/s)?|TFLOPS|[KMBTkGgshmxz]|%)?"
WRAP = r"(?:(?:np|numpy|torch)?\.?(?:float(?:16|32|64)|int(?:32|64)|tensor)\(|bfloat16\()?"
# What may not follow a value: more of a word, a clock time, a date, a version, a range.
END = r"(?![\w:]|\.[0-9]|-[0-9])"

VALUE = re.compile(rf"\s{{0,20}}{WRAP}({NUM})({UNIT}){END}")
FIELD = re.compile(
    rf"(?<![\w/.@-])[\"']?([A-Za-z_][\w./@%+-]{{0,119}})[\"']?[ \t]{{0,9}}[:=][ \t]{{0,20}}"
    rf"[\"']?{WRAP}({NUM})({UNIT}){END}"
)
SEGMENT = re.compile(
    rf"\s{{0,40}}([A-Za-z_#][^:=|\n]{{0,79}}?)\s{{0,9}}[:=]\s{{0,20}}{WRAP}({NUM})({UNIT}){END}"
)
BLANK_SEGMENT = re.compile(
    rf"\s{{0,40}}([A-Za-z_#][^:=|\n]{{0,79}}?)\s{{1,20}}{WRAP}({NUM})({UNIT})\s{{0,40}}(?:\(|$)"
)

TIMING = re.compile(
    r"(?:^|[\W_])(?:time|times|timing|dt|eta|tps|wps|ups|mfu|hfu|t?flops|step_avg|avg_ms|speed|"
    r"throughput|elapsed|wall|sec|secs|seconds|ms|memory|mem|max_mem|max_memory|samplespersec|"
    r"s/it|it/s|tok/s|remaining|runtime)(?:$|[\W_])",
    re.IGNORECASE,
)
COUNTED_THINGS = re.compile(r"tok|sample|image|example|frame", re.IGNORECASE)
TIME_UNITS = frozenset(("ms", "us", "s", "min", "h", "m", "s/it", "it/s"))
MAGNITUDE = {"K": "e3", "k": "e3", "M": "e6", "B": "e9", "G": "e9", "T": "e12"}


def is_timing(key: str) -> bool:
    """Tell whether `key` names a time, a speed or a memory size, where `nan` is no NaN metric."""
    return TIMING.search(key) is not None


def to_float(text: str) -> float:
    """Read one number that matched NUM; 'nan', 'inf', 'nan.0' and thousands separators included."""
    try:
        return float(text)
    except ValueError:
        word = text.replace(",", "")
    if word.endswith(".0") and word[-5:-2].lower() in ("nan", "inf", "ity"):
        word = word[:-2]
    return float(word)


def value_of(key: str, number: str, unit: str) -> float | None:
    """Return the value of one field, or None where the log says that it was not measured.

    Units are dropped, except that 1.25M of tokens, samples or images is 1250000. A NaN time or
    speed (first steps) and a negative utilisation (nanoGPT's mfu of -100) are not measurements.
    """
    value = to_float(number)
    if not math.isfinite(value) and (unit in TIME_UNITS or is_timing(key)):
        return None
    if value < 0 and key.lower() in ("mfu", "hfu"):
        return None
    if unit in MAGNITUDE and COUNTED_THINGS.search(key) and number[-1:].isdigit():
        return to_float(number + MAGNITUDE[unit]) if "e" not in number.lower() else value
    return value


def fields(text: str) -> dict[str, float]:
    """Find all `key: value` and `key=value` pairs; keys hold no blanks. First wins on a repeat."""
    found: dict[str, float] = {}
    for match in FIELD.finditer(text):
        key = match[1]
        if key not in found:
            value = value_of(key, match[2], match[3])
            if value is not None:
                found[key] = value
    return found


def segment_field(segment: str) -> tuple[str, float | None] | None:
    """Read one `key: value` or `key value` segment whose key may hold blanks, else None."""
    colon = ":" in segment or "=" in segment
    match = SEGMENT.match(segment) if colon else BLANK_SEGMENT.match(segment)
    if match is None:
        return None
    key = match[1].strip()
    return key, value_of(key, match[2], match[3])


def segment_fields(segments: Iterator[str] | list[str]) -> dict[str, float]:
    """Read the segments of a line that is split at bars or commas; missing ones are left out."""
    found: dict[str, float] = {}
    for segment in segments:
        pair = segment_field(segment)
        if pair is not None and pair[1] is not None and pair[0] not in found:
            found[pair[0]] = pair[1]
    return found


def integer(text: str) -> int:
    """Read a step number, thousands separators allowed; at most 18 digits, else 0."""
    digits = text.replace(",", "")
    return int(digits) if 0 < len(digits) <= 18 else 0


def whole(value: float, otherwise: int) -> int:
    """Return a step that the log wrote as a float, `otherwise` when it is no sensible count."""
    return int(value) if math.isfinite(value) and 0 <= value < 2**53 else otherwise
