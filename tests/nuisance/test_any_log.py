"""Whatever a log holds, the answer is a report that fits together: no crash, no warning."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from stabdiag.diagnose import JUDGED, diagnose
from stabdiag.errors import InputError
from stabdiag.findings import CAUSES, NO_CAUSE, Report, Severity
from stabdiag.model import Run
from stabdiag.rules import CATALOGUE
from stabdiag.settings import Settings
from tests.make_runs import Cell, run_from

# no shrinking: it takes minutes, and the examples are the same every time
FAST = (Phase.explicit, Phase.generate)
ODD = [None, math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-30, 3e38, 65504.0]
MAIN = ("loss", "val_loss", "grad_norm", "param_norm", "lr", "loss_scale", "activation_max")
SERIES = (*MAIN, "grad_param_ratio", "skipped", "grad_norm_clipped")
LAYERS = ("h.0.attn.c_proj.weight", "h.1.mlp.c_fc.weight", "h.1.ln_1.weight", "lm_head.weight")


@st.composite
def column(draw: st.DrawFn, points: int) -> list[Cell]:
    """A plain series (constant, noise, falling, growing) with odd cells in some places."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    t = np.arange(points)
    level = draw(st.sampled_from([0.0, 1e-6, 1.0, 3.0, 1e4, 1e30]))
    shape = draw(st.integers(0, 4))
    cells: list[Cell] = {
        0: np.full(points, level),
        1: level * (1.0 + 0.05 * rng.standard_normal(points)),
        2: level * (0.2 + np.exp(-t / 30.0)) + 0.01 * level * rng.standard_normal(points),
        3: level * np.exp(np.minimum(0.05 * t, 300.0)),
        4: level * rng.standard_t(1.5, points),
    }[shape].tolist()
    for _ in range(draw(st.integers(0, 3))):
        if points:
            start = draw(st.integers(0, points - 1))
            stop = draw(st.one_of(st.just(start + 1), st.integers(start, points)))
            cells[start:stop] = [draw(st.sampled_from(ODD))] * (stop - start)
    if draw(st.integers(0, 5)) == 0:
        every = draw(st.integers(2, 20))
        cells = [c if i % every == 0 else None for i, c in enumerate(cells)]
    return cells


@dataclass(frozen=True)
class Log:
    """A log in memory; shown by its size, since its cells would fill pages."""

    columns: dict[str, list[Cell]]
    layers: dict[str, list[Cell]]
    batch: dict[str, list[Cell]] | None

    def __repr__(self) -> str:
        return f"Log({len(self.columns['step'])} rows, {[*self.columns, *self.layers]})"

    def run(self) -> Run:
        return run_from(self.columns, layers=self.layers, batch=self.batch)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    points = draw(st.sampled_from([1, 2, 3, 5, 9, 15, 40, 130, 250]))
    names = draw(st.lists(st.sampled_from(SERIES), min_size=1, max_size=6, unique=True))
    steps = np.arange(points) * draw(st.sampled_from([1, 1, 1, 10, 500]))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, points))
        steps[at:] -= min(int(steps[at]), 20) if at < points else 0
    columns: dict[str, list[Cell]] = {"step": list(steps.tolist())}
    columns |= {n: draw(column(points)) for n in names}
    layers = {
        f"{metric}/{layer}": draw(column(points))
        for metric in draw(st.lists(st.sampled_from(("grad_norm", "param_norm")), unique=True))
        for layer in LAYERS
    }
    batch = {"seq_len": draw(column(points))} if draw(st.booleans()) else None
    return Log(columns, layers, batch)


def fits_together(report: Report) -> None:
    known = {rule.id: rule for rule in CATALOGUE}
    verdict = report.verdict
    assert verdict.cause in (*CAUSES, *NO_CAUSE)
    assert 0.0 <= verdict.probability <= 1.0
    assert math.isclose(sum(c.probability for c in report.causes), 1.0)
    loud = any(f.severity >= Severity.WARNING and f.rule < "SD7" for f in report.findings)
    assert (verdict.health == "healthy") == (verdict.cause == "none" and not loud)
    assert verdict.cause != "none" or verdict.onset_step is None
    first, last = report.run.first_step, report.run.last_step
    assert first is not None
    assert last is not None
    steps = [f.step for f in report.findings] + [e.onset_step for e in report.episodes]
    assert all(first <= s <= last for s in [*steps, verdict.onset_step] if s is not None)
    for episode in report.episodes:
        assert episode.onset_step <= episode.peak_step
        assert episode.end_step is None or episode.end_step >= episode.onset_step
        assert episode.steps_lost >= 0
        assert episode.recovered == (episode.recovery in ("fast", "slow"))
    for finding in report.findings:
        assert finding.severity <= known[finding.rule].severity
        assert not {"nan", "None"} & set(finding.message.split())  # numbers are words
    assert [w.step for w in report.workflow] == [1, 2, 3, 4, 5]
    for result in report.workflow:
        assert result.reason, f"step {result.step} is {result.status} without a reason"
    numbered = sorted(i for w in report.workflow for i in w.findings)
    assert numbered == list(range(len(numbered)))
    assert [r.rank for r in report.layers] == list(range(1, len(report.layers) + 1))


@settings(max_examples=150, deadline=None, derandomize=True, phases=FAST)
@given(log=logs())
def test_any_log_gives_a_report_that_fits_together(log: Log) -> None:
    run = log.run()
    if not set(JUDGED) & ({*run.series} | {*run.layers}):
        with pytest.raises(InputError):
            diagnose(run, Settings())
        return
    report = diagnose(run, Settings())
    fits_together(report)
    assert repr(diagnose(run, Settings())) == repr(report)


@settings(max_examples=40, deadline=None, derandomize=True, phases=FAST)
@given(
    log=logs(),
    threshold=st.one_of(st.none(), st.floats(0.5, 50.0)),
    window=st.one_of(st.none(), st.integers(3, 500)),
)
def test_any_threshold_and_window_will_do(
    log: Log, threshold: float | None, window: int | None
) -> None:
    run = log.run()
    with contextlib.suppress(InputError):
        fits_together(diagnose(run, Settings(spike_threshold=threshold, window=window)))
