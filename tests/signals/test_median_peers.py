"""Medians: of a long series, and of the others beside each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stabdiag.model import F64
from stabdiag.signals.median import LONG, median, row_medians
from stabdiag.signals.peers import finite_median, largest_other, median_without_each

# few values, so that many are equal, and the two that are not finite
VALUES = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.0, 3.0, 1e300, np.nan, np.inf])
TABLES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=VALUES)


def plain(values: F64) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")


@given(TABLES)
def test_the_median_of_each_row_is_that_of_its_finite_values(table: F64) -> None:
    np.testing.assert_array_equal(finite_median(table), [plain(row) for row in table])


@given(TABLES)
def test_medians_of_rows_are_those_of_each_row(table: F64) -> None:
    filled = np.nan_to_num(table, posinf=7.0)
    np.testing.assert_array_equal(row_medians(filled), np.median(filled, axis=1))


@given(TABLES)
def test_each_is_left_out_of_its_own_median(table: F64) -> None:
    wanted = [[plain(np.delete(row, j)) for j in range(row.size)] for row in table]
    np.testing.assert_array_equal(median_without_each(table), wanted)


@given(arrays(np.float64, st.integers(1, 9), elements=VALUES))
def test_the_largest_other_is_the_largest_without_it(values: F64) -> None:
    for j, found in enumerate(largest_other(values).tolist()):
        rest = np.delete(values, j)
        rest = rest[np.isfinite(rest)]
        assert found == rest.max() if rest.size else np.isnan(found)


@pytest.mark.parametrize("size", [1, 2, LONG - 1, LONG, LONG + 1, 5 * LONG + 3])
@pytest.mark.parametrize("shape", ["noise", "trend", "constant", "steps", "two levels", "spaced"])
def test_the_median_of_a_long_series_is_exact(size: int, shape: str) -> None:
    draw = np.random.default_rng(size)
    series = {
        "noise": draw.standard_normal(size),
        "trend": np.exp(-np.linspace(0.0, 5.0, size)) + 0.01 * draw.standard_normal(size),
        "constant": np.full(size, 2.5),
        "steps": np.floor(5.0 * draw.random(size)),
        "two levels": np.where(draw.random(size) < 0.5, 1.0, 1e12),
        "spaced": np.where(np.arange(size) % 5 == 0, 1e9, draw.standard_normal(size)),
    }[shape]
    assert median(series) == np.median(series)
