"""The plain rule on series made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.accuracy.baselines import (
    F64,
    NO_POINTS,
    PLAIN_RULES,
    PlainRule,
    Points,
    layers_by_ratio,
    past_z,
    plain_answer,
)

STEPS = np.arange(300, dtype=np.int64)
EACH_RULE = pytest.mark.parametrize("rule", PLAIN_RULES, ids=lambda rule: rule.name)


def quiet() -> F64:
    return np.asarray(2.0 + 0.01 * np.sin(STEPS * 1.7), dtype=np.float64)


def points(value: F64) -> Points:
    return Points(STEPS, value)


def no_layers(_step: int) -> tuple[str, ...]:
    return ()


def cause(rule: PlainRule, loss: F64, grad_norm: F64) -> tuple[str, int | None]:
    answer = plain_answer(rule, points(loss), points(grad_norm), no_layers)
    return answer.cause, answer.onset_step


@EACH_RULE
def test_no_spike_is_none(rule: PlainRule) -> None:
    assert cause(rule, quiet(), quiet()) == ("none", None)


@EACH_RULE
def test_a_loss_spike_alone_or_at_the_same_step_is_data(rule: PlainRule) -> None:
    loss, grad_norm = quiet(), quiet()
    loss[200] = 4.0
    assert cause(rule, loss, grad_norm) == ("data", 200)
    grad_norm[200] = 4.0
    assert cause(rule, loss, grad_norm) == ("data", 200)


@EACH_RULE
def test_a_grad_norm_spike_before_is_optimizer_up_to_50_steps(rule: PlainRule) -> None:
    for lead, expected in ((1, "optimizer"), (50, "optimizer"), (51, "data")):
        loss, grad_norm = quiet(), quiet()
        loss[200], grad_norm[200 - lead] = 4.0, 4.0
        assert cause(rule, loss, grad_norm) == (expected, 200)


@EACH_RULE
def test_a_nan_after_the_spike_is_overflow(rule: PlainRule) -> None:
    loss, grad_norm = quiet(), quiet()
    loss[200], grad_norm[199], grad_norm[203] = 4.0, 4.0, np.nan
    assert cause(rule, loss, grad_norm) == ("overflow", 200)


@EACH_RULE
def test_a_nan_loss_is_a_spike(rule: PlainRule) -> None:
    loss = quiet()
    loss[250] = np.inf
    assert cause(rule, loss, quiet()) == ("overflow", 250)


def test_first_and_largest_spike_differ() -> None:
    loss = quiet()
    loss[150], loss[280] = 3.0, 9.0
    found = {rule.name: cause(rule, loss, quiet())[1] for rule in PLAIN_RULES}
    assert found == {"A": 150, "A'": 280, "B": 150, "B'": 280, "C": 150, "C'": 280}


def test_the_grad_norm_may_be_missing() -> None:
    loss = quiet()
    loss[200] = 4.0
    assert plain_answer(PLAIN_RULES[0], points(loss), NO_POINTS, no_layers).cause == "data"


def test_a_score_knows_only_the_past() -> None:
    value = quiet()
    later = value.copy()
    later[201:] = 50.0
    for rule in PLAIN_RULES:
        np.testing.assert_array_equal(past_z(value, rule)[:201], past_z(later, rule)[:201])
        assert np.isnan(past_z(value, rule)[: rule.window]).all()


def test_layers_are_ranked_by_the_multiple_of_their_own_past() -> None:
    loud, quiet_layer, broken = np.full(300, 5.0), np.full(300, 0.1), np.full(300, 1.0)
    loud[200], quiet_layer[200], broken[200] = 10.0, 3.0, np.nan
    late = Points(STEPS[250:], np.full(50, 9.0))
    layers = {
        "loud": points(loud),
        "quiet": points(quiet_layer),
        "broken": points(broken),
        "late": late,
    }
    assert layers_by_ratio(layers, 200) == ("broken", "quiet", "loud")
