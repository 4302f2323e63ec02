"""What must not matter does not: the verdict on a real log stays, whatever its dress."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabdiag import analyze
from stabdiag.findings import Report
from tests.nuisance import logs
from tests.nuisance.logs import LABELLED, SAMPLES, Change, load, report_of, verdict_of

# the log and what is wrong with it
TRUTH = {
    SAMPLES / "healthy.csv": "none",
    SAMPLES / "bad_batch.parquet": "data",
    SAMPLES / "fp16_overflow.jsonl": "overflow",
    LABELLED / "d007.csv": "optimizer",
    LABELLED / "d003.csv": "state_corruption",
}
PATHS = list(TRUTH)
TIMED = [p for p, cause in TRUTH.items() if cause != "none"]
each = pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
each_timed = pytest.mark.parametrize("path", TIMED, ids=lambda p: p.stem)


@cache
def usual(path: Path) -> Report:
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return analyze(path)


@each
def test_the_logs_are_understood_to_begin_with(path: Path, tmp_path: Path) -> None:
    assert usual(path).verdict.cause == TRUTH[path]
    assert verdict_of(report_of(load(path), tmp_path)) == verdict_of(usual(path))


SORTED = "SD704"  # that rows were out of order is said
SAME: dict[str, Change] = {
    "columns in another order": logs.permuted(3),
    "rows in another order": logs.shuffled(3),
    "harmless columns": logs.with_harmless_columns(3),
    "csv": logs.written_as(".csv"),
    "tsv": logs.written_as(".tsv"),
    "jsonl": logs.written_as(".jsonl"),
    "parquet": logs.written_as(".parquet"),
}


@each
@pytest.mark.parametrize("change", SAME)
def test_dress_does_not_move_the_verdict(path: Path, change: str, tmp_path: Path) -> None:
    report = report_of(SAME[change](load(path)), tmp_path)
    before, after = usual(path).verdict, report.verdict
    assert (after.cause, after.onset_step) == (before.cause, before.onset_step)
    assert after.probability == pytest.approx(before.probability, abs=1e-6)
    found = [f.rule for f in report.findings if f.rule != SORTED]
    assert found == [f.rule for f in usual(path).findings]


@each
@pytest.mark.parametrize("choice", range(1, 4))
def test_other_names_do_not_move_the_verdict(path: Path, choice: int, tmp_path: Path) -> None:
    report = report_of(logs.renamed(choice)(load(path)), tmp_path)
    assert verdict_of(report) == verdict_of(usual(path))
    assert set(report.run.series) >= {"loss", "grad_norm", "lr"} & set(usual(path).run.series)


@each
@pytest.mark.parametrize("factor", [0.25, 2.0])
def test_the_unit_of_the_loss_does_not_move_the_verdict(
    path: Path, factor: float, tmp_path: Path
) -> None:
    report = report_of(logs.scaled(factor)(load(path)), tmp_path)
    assert verdict_of(report) == verdict_of(usual(path))


@each
@pytest.mark.parametrize("constant", [-0.4, 1.0])
def test_an_offset_of_the_loss_does_not_move_the_verdict(
    path: Path, constant: float, tmp_path: Path
) -> None:
    report = report_of(logs.shifted(constant)(load(path)), tmp_path)
    assert verdict_of(report) == verdict_of(usual(path))


@each_timed
@pytest.mark.parametrize("steps", [40, 100])
def test_a_longer_healthy_past_moves_the_onset_alone(
    path: Path, steps: int, tmp_path: Path
) -> None:
    onset = usual(path).verdict.onset_step
    assert onset is not None
    report = report_of(logs.with_longer_past(onset, steps)(load(path)), tmp_path)
    assert report.verdict.cause == TRUTH[path]
    assert report.verdict.onset_step == onset + steps


def sure_of_another(report: Report, cause: str) -> bool:
    """Whether a cause that is not the true one is named with 0.9 or more."""
    named = report.verdict.cause
    return named not in (cause, "none", "inconclusive") and report.verdict.probability >= 0.9


@each
@pytest.mark.parametrize("every", [2, 5, 10])
def test_fewer_points_never_make_it_sure_of_another_cause(
    path: Path, every: int, tmp_path: Path
) -> None:
    report = report_of(logs.thinned(every)(load(path)), tmp_path)
    assert not sure_of_another(report, TRUTH[path]), report.verdict.summary
    if TRUTH[path] == "none":
        assert report.verdict.cause in ("none", "inconclusive")


LEFT_OUT: list[tuple[str, ...]] = [
    ("grad_norm",),
    ("param_norm",),
    ("lr",),
    ("layers",),
    ("batch",),
]
LEFT_OUT += [("layers", "batch"), ("grad_norm", "param_norm", "layers"), ("param_norm", "lr")]
LEFT_OUT += [("grad_norm", "param_norm", "lr", "layers", "batch", "loss_scale")]


@each
@pytest.mark.parametrize("names", LEFT_OUT, ids="+".join)
def test_fewer_series_never_make_it_sure_of_another_cause(
    path: Path, names: tuple[str, ...], tmp_path: Path
) -> None:
    report = report_of(logs.without(*names)(load(path)), tmp_path)
    assert not sure_of_another(report, TRUTH[path]), report.verdict.summary
    if TRUTH[path] == "none":
        assert report.verdict.cause in ("none", "inconclusive")


dresses = st.builds(
    lambda seed, names, suffix, shuffle: (seed, names, suffix, shuffle),
    st.integers(0, 1000),
    st.integers(0, 34),
    st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]),
    st.booleans(),
)


@each
@settings(max_examples=4, deadline=None, derandomize=True)
@given(dress=dresses)
def test_all_of_it_together_does_not_move_the_verdict(
    path: Path, dress: tuple[int, int, str, bool]
) -> None:
    seed, names, suffix, shuffle = dress
    log = logs.renamed(names)(load(path))
    log = logs.with_harmless_columns(seed)(log)
    log = logs.permuted(seed)(log)
    if shuffle:
        log = logs.shuffled(seed)(log)
    with TemporaryDirectory() as folder:
        report = report_of(logs.written_as(suffix)(log), Path(folder))
    assert verdict_of(report) == verdict_of(usual(path))
