"""A number becomes text in one way: digits, separators, NaN and infinities."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabdiag.reporters.numbers import count, nats, number, percent, steps, strict_json, times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.0, "0"),
        (-0.0, "0"),
        (2000, "2,000"),
        (3.14159, "3.14"),
        (0.001, "0.001"),
        (0.00012345, "1.23e-4"),
        (31.0, "31"),
        (99999.6, "100,000"),
        (1234567.0, "1.23e6"),
        (5e-324, "4.94e-324"),
        (1.7e308, "1.7e308"),
        (-2.5, "-2.5"),
        (math.nan, "NaN"),
        (math.inf, "Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0.0, "<1 %"), (0.004, "<1 %"), (0.914, "91 %"), (0.996, ">99 %"), (1.0, ">99 %")],
)
def test_percent_never_claims_certainty(probability: float, text: str) -> None:
    assert percent(probability) == text


def test_small_words() -> None:
    assert count(1, "point") == "1 point"
    assert count(2000, "point") == "2,000 points"
    assert count(2, "loss", "losses") == "2 losses"
    assert (times(3.4), times(None), times(math.nan)) == ("3.4x", "-", "NaN")
    assert (nats(2.06), nats(-0.5), nats(math.inf)) == ("+2.1", "-0.5", "Inf")
    assert (steps(None), steps(7), steps(7, 7), steps(7, 9)) == (
        "no step",
        "step 7",
        "step 7",
        "steps 7 to 9",
    )


# Up to a size that its own rounding can't push over the largest float.
@given(
    st.floats(-1.79e308, 1.79e308)
    | st.just(math.inf)
    | st.just(math.nan)
    | st.integers(-(10**18), 10**18)
)
def test_number_is_one_short_word(value: float) -> None:
    text = number(value)
    assert text
    assert " " not in text
    assert math.isnan(value) or float(text.replace(",", "")) == pytest.approx(value, rel=6e-3)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES)
def test_strict_json_has_no_bare_nan(value: Any) -> None:
    text = json.dumps(strict_json(value), allow_nan=False)
    json.loads(text, parse_constant=pytest.fail)
    text.encode("utf-8")


@given(st.text(st.characters(categories=["Cs"]), min_size=1))
def test_a_lone_surrogate_is_replaced(text: str) -> None:
    assert strict_json(text) == "\ufffd" * len(text)


def test_strict_json_keeps_whole_numbers_and_six_digits() -> None:
    assert strict_json(123456789.0) == 123456789.0
    assert strict_json(0.123456789) == 0.123457
    assert strict_json({"a": (math.nan, math.inf, -math.inf)}) == {
        "a": ["NaN", "Infinity", "-Infinity"]
    }


def test_strict_json_takes_numpy_scalars_and_records() -> None:
    @dataclass(frozen=True)
    class Record:
        size: float
        step: int

    assert strict_json(Record(np.float64(1.5), np.int64(7))) == {"size": 1.5, "step": 7}
    assert type(strict_json(np.int64(7))) is int


def test_strict_json_refuses_what_is_not_json() -> None:
    with pytest.raises(TypeError, match="set"):
        strict_json({"a": {1, 2}})
