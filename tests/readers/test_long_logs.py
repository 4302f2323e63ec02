"""Logs of very many rows: some are left out, the ones that matter never, and it is said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import stabdiag
from stabdiag.findings import Report
from stabdiag.readers import read_log, read_table
from stabdiag.readers.arrays import float_values, valid_mask
from stabdiag.readers.gathered import EXTENT, Gathered
from stabdiag.readers.kinds import numbers_of
from stabdiag.readers.pieces import Piece
from stabdiag.readers.selection import Extent
from stabdiag.settings import Settings
from tests.command_line import Command

SMALL = Extent(most_rows=128, cell=16, ends=32, stretch=4, around=3, most_jumps=6)
MOST_HELD = 128 // 2 + 2 * 32 + 6 * (2 * 3 + 1) + 128 // 8
LONG = EXTENT.most_rows + 600_000

Values = NDArray[np.float64]


def piece(first: int, loss: Sequence[float | None], sparse: Sequence[float | None]) -> Piece:
    """Rows with a dense column, one that is there now and then, and a column of words."""
    rows = len(loss)
    at = np.array([i for i, value in enumerate(sparse) if value is not None], dtype=np.int64)
    columns = {
        "loss": pa.array(loss, pa.float64()),
        "word": pa.array([f"w{first + i}" for i in range(rows)]),
    }
    if at.size:
        columns["eval"] = pa.array([sparse[i] for i in at], pa.float64())
    line = np.arange(first + 2, first + 2 + rows, dtype=np.int64)
    return Piece(rows, line, columns, {"eval": at} if at.size else {})


def held(gathered: Gathered) -> object:
    """What is held, in a form that can be compared."""
    cells: dict[str, dict[int, object]] = {}
    for name, parts in gathered.parts.items():
        own = cells.setdefault(name, {})
        for part in parts:
            rows = np.arange(gathered.rows)[part.rows]
            if name == "word":
                own |= dict(zip(rows.tolist(), part.cells.to_pylist(), strict=True))
                continue
            numbers = numbers_of(part)
            logged = valid_mask(numbers).tolist()
            value = map(repr, float_values(numbers).tolist())
            own |= {r: v for r, v, ok in zip(rows.tolist(), value, logged, strict=True) if ok}
    place = gathered.place.tolist()
    return gathered.rows, place, gathered.line.tolist(), cells, gathered.notes


def gathered_in(
    loss: Sequence[float | None], sparse: list[float | None], cuts: list[int]
) -> object:
    gathered = Gathered(SMALL)
    for a, b in zip([0, *cuts], [*cuts, len(loss)], strict=True):
        gathered.add(piece(a, loss[a:b], sparse[a:b]))
    gathered.end()
    return held(gathered)


@st.composite
def long_logs(draw: st.DrawFn) -> tuple[list[float | None], list[float | None]]:
    size = draw(st.integers(129, 1200))
    noise = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(size)
    loss: list[float | None] = noise.tolist()
    for row in draw(st.lists(st.integers(0, size - 1), max_size=8)):
        loss[row] = draw(st.sampled_from([None, math.nan, math.inf, 1e308, -1e308, 50.0]))
    every = draw(st.integers(1, 40))
    return loss, [float(i) if i % every == 0 else None for i in range(size)]


@given(log=long_logs(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_held_of_a_long_log_does_not_depend_on_how_it_was_cut(
    log: tuple[list[float | None], list[float | None]], data: st.DataObject
) -> None:
    loss, sparse = log
    cuts = sorted(set(data.draw(st.lists(st.integers(1, len(loss) - 1), max_size=12))))
    whole = gathered_in(loss, sparse, [])
    assert gathered_in(loss, sparse, cuts) == whole


@given(log=long_logs())
@settings(max_examples=150, deadline=None)
def test_the_cells_held_of_a_long_log_are_those_of_their_rows(
    log: tuple[list[float | None], list[float | None]],
) -> None:
    loss, sparse = log
    cuts = list(range(20, len(loss), 20))
    rows, place, line, cells, notes = gathered_in(loss, sparse, cuts)  # type: ignore[misc]
    assert rows == len(place) <= MOST_HELD
    assert place == sorted(set(place))
    assert line == [row + 2 for row in place]
    assert [note.count for note in notes] == [len(loss) - rows]
    assert set(range(32)) <= set(place)
    assert set(range(len(loss) - 32, len(loss))) <= set(place)
    assert cells["word"] == {i: f"w{row}" for i, row in enumerate(place)}
    for name, values in (("loss", loss), ("eval", sparse)):
        expected = {i: repr(values[row]) for i, row in enumerate(place) if values[row] is not None}
        assert cells.get(name, {}) == expected


@given(at=st.integers(0, 1199), value=st.sampled_from([math.nan, math.inf, -math.inf, 40.0]))
@settings(max_examples=100, deadline=None)
def test_the_rows_around_a_jump_are_held_wherever_it_is(at: int, value: float) -> None:
    loss: list[float | None] = np.random.default_rng(3).uniform(size=1200).tolist()
    loss[at] = value
    _, place, *_ = gathered_in(loss, [None] * 1200, list(range(50, 1200, 50)))  # type: ignore[misc]
    assert set(range(max(0, at - 3), min(1200, at + 4))) <= set(place)


def test_where_a_counter_returns_to_is_held_beside_where_it_falls_back() -> None:
    gathered = Gathered(SMALL)
    step = np.arange(1000.0)
    step[612:] -= 14
    for a in range(0, 1000, 40):
        line = np.arange(a, a + 40)
        gathered.add(Piece(40, line, {"step": pa.array(step[a : a + 40])}))
    gathered.end()
    assert {595, 596, 597, 598, 599, 600, 610, 611, 612, 613} <= set(gathered.place.tolist())


def training(rows: int) -> dict[str, Values]:
    draw = np.random.default_rng(11)
    progress = np.arange(rows) / rows
    return {
        "step": np.arange(float(rows)),
        "loss": (2 + 3 * np.exp(-6 * progress) + 0.03 * draw.standard_normal(rows)).round(5),
        "grad_norm": np.exp(0.15 * draw.standard_normal(rows)).round(5),
    }


def with_nan(log: dict[str, Values], at: int) -> dict[str, Values]:
    for name in ("loss", "grad_norm"):
        log[name][at:] = math.nan
    return log


def facts(report: Report) -> tuple[object, ...]:
    verdict = report.verdict
    return verdict.health, verdict.cause, verdict.onset_step


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("long") / "run.csv"
    pa.csv.write_csv(pa.table(with_nan(training(LONG), LONG - 300_001)), path)
    yield path
    path.unlink()


def test_a_long_table_is_judged_as_a_short_one_and_says_what_was_left_out() -> None:
    log = training(LONG)
    at, decay = 1_800_017, np.exp(-np.arange(40) / 8)
    log["loss"][at : at + 40] += 1.5 * decay
    log["grad_norm"][at - 6 : at + 40] *= 6
    short = {name: values[at - 200_000 : at + 200_000] for name, values in log.items()}
    report = stabdiag.analyze(pa.table(log))
    assert facts(report) == facts(stabdiag.analyze(pa.table(short)))
    assert report.verdict.onset_step == at - 6
    assert report.run.rows + report.run.rows_left_out == LONG
    assert report.run.rows < EXTENT.most_rows
    assert [note["count"] for note in report.run.notes] == [report.run.rows_left_out]


def test_a_long_log_reads_alike_as_csv_and_as_parquet_of_one_row_group(
    long_csv: Path, tmp_path: Path
) -> None:
    table = pa.table(with_nan(training(LONG), LONG - 300_001))
    pq.write_table(table, tmp_path / "run.parquet", row_group_size=LONG)
    as_csv, as_parquet = read_log([long_csv]), read_log([tmp_path / "run.parquet"])
    assert as_csv.place is not None
    assert as_parquet.place is not None
    assert np.array_equal(as_csv.place, as_parquet.place)
    assert np.array_equal(as_csv.line, as_csv.place + 2)
    for name in ("step", "loss", "grad_norm"):
        one, other = as_csv.load([name])[name], as_parquet.load([name])[name]
        assert np.array_equal(one.value, other.value, equal_nan=True)
        assert np.array_equal(one.logged, other.logged)


def test_shards_that_are_long_together_read_as_the_one_log_they_are(tmp_path: Path) -> None:
    table = pa.table(with_nan(training(LONG), LONG - 300_001))
    whole = read_table(table)
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, path in enumerate(paths):
        pq.write_table(table.slice(i * LONG // 3, (i + 1) * LONG // 3 - i * LONG // 3), path)
    shards = read_log(paths)
    assert shards.place is not None
    assert whole.place is not None
    assert np.array_equal(shards.place, whole.place)
    assert np.array_equal(shards.load(["step"])["step"].value, shards.place)
    assert [note.count for note in shards.notes] == [LONG - shards.rows]


def test_the_first_nan_of_a_long_log_is_dated_exactly(command: Command, long_csv: Path) -> None:
    done = command("analyze", long_csv)
    shown = " ".join(done.out.split())
    left_out = LONG - read_log([long_csv]).rows
    assert (done.code, f"at step {LONG - 300_001}" in shown) == (0, True)
    assert "DIVERGED" in shown
    assert f"rows ({left_out:,} left out: see the notes)" in shown
    assert f"of {LONG:,} rows" in shown


@pytest.mark.parametrize("first", [100_000, LONG - 310_000, LONG - 900])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_steps_asked_for_of_a_long_log_are_all_looked_at(
    suffix: str, first: int, long_csv: Path, tmp_path: Path
) -> None:
    path = long_csv
    if suffix == "parquet":
        path = tmp_path / "run.parquet"
        pq.write_table(pa.table(with_nan(training(LONG), LONG - 300_001)), path)
    last = first + 19_999 if first < LONG - 20_000 else None
    run = stabdiag.read_run(path, settings=Settings(first_step=first, last_step=last))
    step = run.series["loss"].step
    assert step.tolist() == list(range(first, LONG if last is None else last + 1))
    assert (run.rows_left_out, run.weight) == (0, 1.0)


def test_a_few_steps_between_those_looked_at_of_a_long_log_are_found(long_csv: Path) -> None:
    place = read_log([long_csv]).place
    assert place is not None
    gap = int(np.argmax(np.diff(place) > 500))
    first = int(place[gap]) + 100
    run = stabdiag.read_run(long_csv, settings=Settings(first_step=first, last_step=first + 50))
    assert run.series["loss"].step.tolist() == list(range(first, first + 51))


def test_rows_of_a_long_log_without_a_step_keep_their_number() -> None:
    log = with_nan(training(LONG), 1_200_003)
    del log["step"]
    report = stabdiag.analyze(pa.table(log))
    assert report.run.axis == "row"
    assert (report.run.last_step, report.verdict.onset_step) == (LONG - 1, 1_200_003)


def test_a_table_of_as_many_rows_as_are_held_is_read_whole() -> None:
    table = read_table(pa.table({"step": np.arange(float(EXTENT.most_rows))}))
    assert (table.rows, table.place, table.notes) == (EXTENT.most_rows, None, ())
