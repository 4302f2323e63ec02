"""`stabdiag compare`: the same, better or worse; false alarms and power measured; the gate."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from stabdiag.compare import compare
from stabdiag.comparison import Comparison
from tests.command_line import Command
from tests.make_runs import healthy, healthy_layers, spike
from tests.several.logs import LIMITS, side, wandering, write
from tests.several.schemas import validator

ROOT = Path(__file__).resolve().parents[2]
PAIRS = 24


def of(seen: Comparison, name: str) -> str:
    return next(change.judgement for change in seen.changes if change.name == name)


def test_another_seed_is_rarely_worse() -> None:
    """At most 5 % of healthy pairs; here none of 24 with a wander of half a percent each."""
    worse = 0
    for seed in range(PAIRS):
        pair = [wandering(400, 2 * seed + k, noise=0.05, wander=0.005) for k in (0, 1)]
        worse += of(compare(side(pair[0]), side(pair[1]), LIMITS), "loss") == "worse"
    assert worse <= 1


def test_a_loss_that_is_five_percent_worse_is_found() -> None:
    found = 0
    for seed in range(PAIRS):
        pair = [wandering(400, 2 * seed + k, noise=0.05, wander=0.005) for k in (0, 1)]
        pair[1]["loss"] *= 1.05
        found += of(compare(side(pair[0]), side(pair[1]), LIMITS), "loss") == "worse"
    assert found >= 0.9 * PAIRS


def test_small_differences_are_seen_where_the_data_is_the_same() -> None:
    base = healthy(400, noise=0.1)
    other = base | {"loss": base["loss"] * np.where(np.arange(400) < 250, 1.0, 1.01)}
    seen = compare(side(base), side(other), LIMITS)
    assert (seen.outcome, seen.severity) == ("worse", "warning")
    assert seen.parting is not None
    assert (seen.parting.first_step, seen.parting.exact) == (250, True)


def test_identical_logs() -> None:
    one = healthy(300) | {"loss": np.where(np.arange(300) == 299, math.nan, healthy(300)["loss"])}
    seen = compare(side(one), side(one), LIMITS)
    assert (seen.outcome, seen.severity, seen.parting) == ("identical", "", None)


def test_better_is_better() -> None:
    base, other = healthy(400, seed=1), healthy(400, seed=2)
    other["loss"] *= 0.9
    seen = compare(side(base), side(other), LIMITS)
    assert (seen.outcome, seen.severity) == ("better", "info" if seen.severity else "")


def test_a_new_divergence_is_an_error() -> None:
    base, other = healthy(400, seed=1), healthy(400, seed=2)
    other["loss"][250:] = np.linspace(3.0, 9.0, 150)
    other["grad_norm"][250:] *= 8.0
    seen = compare(side(base), side(other), LIMITS)
    assert (seen.outcome, seen.severity) == ("worse", "error")
    assert seen.new_findings
    assert seen.parting is not None
    assert seen.parting.first_step <= 260
    assert of(seen, "grad norm") == "changed"


def test_new_nan_and_spikes_are_worse_and_their_absence_better() -> None:
    base, other = healthy(600, seed=1), healthy(600, seed=2)
    other["loss"][300] = math.nan
    for at in range(100, 580, 60):
        spike(other, "loss", at, 3.0, 2)
    seen = compare(side(base), side(other), LIMITS)
    assert of(seen, "non-finite points") == "worse"
    assert of(seen, "loss spikes") == "worse"
    back = compare(side(other), side(base), LIMITS)
    assert of(back, "non-finite points") == "better"


def test_no_common_steps_can_not_be_told() -> None:
    base, other = healthy(200), healthy(200)
    other["step"] = other["step"] + 1000
    seen = compare(side(base), side(other), LIMITS)
    assert (seen.outcome, seen.steps) == ("unknown", None)
    assert "can't tell" in seen.summary


def test_equal_tokens_are_compared_where_steps_hold_other_numbers() -> None:
    base, other = healthy(400, seed=1), healthy(400, seed=2)
    base["tokens"] = 1000.0 * (np.arange(400) + 1)
    other["tokens"] = 2000.0 * (np.arange(400) + 1)
    seen = compare(side(base), side(other), LIMITS)
    assert of(seen, "loss at equal tokens") == "worse"


def test_the_layer_that_parts_is_named() -> None:
    layers = healthy_layers(300)
    other = dict(layers)
    name = next(n for n in layers if n.startswith("grad_norm/") and "c_fc" in n)
    other[name] = layers[name] * 6.0
    seen = compare(
        side(healthy(300, seed=1), layers=layers), side(healthy(300, seed=2), layers=other), LIMITS
    )
    change = next(c for c in seen.changes if c.name == "layer grad norms")
    assert change.judgement == "changed"
    assert name.removeprefix("grad_norm/") in change.text


def test_the_command_is_a_gate(command: Command, folder: Path) -> None:
    write(folder / "base.csv", healthy(400, seed=1))
    worse = healthy(400, seed=2)
    worse["loss"] *= 1.2
    write(folder / "worse.csv", worse)
    write(folder / "same.csv", healthy(400, seed=3))
    assert command("compare", "base.csv", "worse.csv").code == 0
    failed = command("compare", "base.csv", "worse.csv", "--fail-on", "warning")
    assert failed.code == 1
    assert "the candidate is worse" in failed.err
    assert command("compare", "base.csv", "worse.csv", "--fail-on", "error").code == 0
    assert command("compare", "base.csv", "same.csv", "--fail-on", "warning").code == 0
    assert command("compare", "base.csv", "none.csv").code == 2
    assert command("compare", "base.csv").code == 2
    short = write(folder / "short.csv", {k: v[:12] for k, v in healthy(400, seed=4).items()})
    assert command("compare", "base.csv", short, "--fail-on", "warning").code == 3


def test_page_and_json(command: Command, folder: Path) -> None:
    logs = [ROOT / "sample_logs" / f"seed_{n}.csv" for n in (1, 2)]
    page = command("compare", *logs)
    assert page.out.splitlines()[1].startswith(" WORSE  ")
    assert max(map(len, page.out.splitlines())) <= 80 + len(str(ROOT))
    document = json.loads(command("compare", *logs, "--format", "json").out)
    validator("compare").validate(document)
    assert document["outcome"] == "worse"
    assert document["thresholds"]["SD801.min_errors"] == pytest.approx(4.0)


@pytest.mark.parametrize("points", [60, 100, 200])
def test_a_common_fall_is_no_common_data(points: int) -> None:
    """Two seeds fall alike; only noise that goes up and down together is of the same batches."""
    for seed in range(12):
        pair = [side(healthy(points, seed=2 * seed + k)) for k in (0, 1)]
        assert "two data orders or seeds" in compare(*pair, LIMITS).noise


@pytest.mark.parametrize("points", [100, 400])
def test_the_same_batches_are_told_by_their_noise(points: int) -> None:
    base = healthy(points, noise=0.05)
    other = base | {"loss": base["loss"] + 0.004 * np.random.default_rng(5).standard_normal(points)}
    assert "what the same data leaves" in compare(side(base), side(other), LIMITS).noise
