"""What the grad norm did before an onset: lead with its uncertainty, lone blips, rise."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stabdiag.signals.precursors import blip_rate, lead_between, lone_blips, rise_before
from tests.signals.effort import EXAMPLES

F64: TypeAlias = NDArray[np.float64]


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 100), st.integers(1, 100))
def test_a_lead_is_known_to_within_the_coarser_cadence(
    loss: int, grad: int, loss_cadence: int, grad_cadence: int
) -> None:
    lead = lead_between(loss, grad, loss_cadence=loss_cadence, grad_cadence=grad_cadence)
    assert lead.steps == loss - grad
    assert lead.uncertainty == max(loss_cadence, grad_cadence) - 1


@pytest.mark.parametrize(("loss", "grad"), [(None, 5), (5, None), (None, None)])
def test_a_lead_needs_both_onsets_and_says_which_lacks(loss: int | None, grad: int | None) -> None:
    lead = lead_between(loss, grad, loss_cadence=1, grad_cadence=1)
    assert lead.steps is None
    assert lead.uncertainty is None
    assert ("loss" if loss is None else "grad-norm") in lead.reason


def flat(points: int = 100) -> tuple[F64, F64]:
    return np.zeros(points), np.zeros(points)


def test_lone_blips_are_counted_and_stretches_are_not() -> None:
    norm, level = flat()
    norm[[60, 70, 71, 75, 76, 77]] = np.log(4.0)
    assert lone_blips(norm, level, 80, back=25, factor=3.0).tolist() == [60, 70]


def test_blips_outside_the_window_or_too_small_do_not_count() -> None:
    norm, level = flat()
    norm[[10, 80, 90]] = np.log(10.0)
    norm[70] = np.log(2.9)
    assert lone_blips(norm, level, 80, back=25, factor=3.0).size == 0


def test_nan_is_no_blip() -> None:
    norm, level = flat()
    norm[60], level[65] = np.nan, np.nan
    norm[65] = 9.0
    assert lone_blips(norm, level, 80, back=25, factor=3.0).size == 0


def test_the_base_rate_is_the_share_of_blips_before() -> None:
    norm, level = flat()
    norm[[5, 15, 25, 35, 95]] = np.log(4.0)
    level[:10] = np.nan
    assert blip_rate(norm, level, 50, factor=3.0) == pytest.approx(3 / 40)
    assert blip_rate(norm, level, 0, factor=3.0) == 0.0
    assert blip_rate(np.full(9, np.nan), np.zeros(9), 9, factor=3.0) == 0.0


def test_rise_before_is_the_median_so_one_point_says_nothing() -> None:
    norm, level = flat()
    norm[75] = 5.0
    assert rise_before(norm, level, 80, back=6) == 0.0
    norm[74:80] = 0.7
    assert rise_before(norm, level, 80, back=6) == pytest.approx(0.7)
    assert rise_before(norm, level, 0, back=6) == 0.0
