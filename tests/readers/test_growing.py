"""A log that grows reads, wherever its writer stands, as the whole file would."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers import gathered, growing, read_log
from stabdiag.readers import source as source_module
from stabdiag.readers.growing import GrowingLog
from stabdiag.readers.selection import Extent

ROOT = Path(__file__).resolve().parents[2]
ROWS = 400


def csv_log(end: str = "\n") -> bytes:
    rows = [f'{i},{4 - i / 200:.4f},{"nan" if i == 250 else 1.5},"é {i}"' for i in range(ROWS)]
    rows[120] = '120,3.4,1.5,"a cell"'
    rows[121] = '121,3.3,1.5,"of two' + end + 'lines"'
    rows[200] = "200,3.0"
    rows[300] = "step,loss,grad_norm,note"
    return end.join(["step,loss,grad_norm,note", *rows, ""]).encode()


def jsonl_log() -> bytes:
    lines = [f'{{"step": {i}, "loss": {4 - i / 200:.4f}, "note": "é"}}' for i in range(ROWS)]
    lines[100] = '{"step": 100, "loss": NaN, "new/key": 1}'
    lines[200] = "no record"
    lines[300] = '{"step": 300, "loss": 2.5, "time": "2024-01-01 10:00:00"}'
    return "\n".join([*lines, ""]).encode()


def text_log() -> bytes:
    return "".join(f"step {i}: train loss {4 - i / 200:.4f}\n" for i in range(ROWS)).encode()


LOGS = {
    "run.csv": csv_log(),
    "crlf.csv": csv_log("\r\n"),
    "bad.csv": csv_log().replace(b"\xc3", b"\xff", 30),
    "run.jsonl": jsonl_log(),
    "run.log": text_log(),
}


def seen(log: LogTable) -> object:
    columns = log.load(log.names)
    cells = {
        name: (c.kind, c.logged.tolist(), repr(c.value.tolist()), c.text, c.lists)
        for name, c in columns.items()
    }
    return (log.format, log.names, log.kinds, log.rows, log.line.tolist(), log.notes, cells)


def outcome(read: object) -> object:
    try:
        return seen(read()) if callable(read) else None
    except InputError as err:
        return (err.what, err.todo)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a log of a few hundred rows settles many times."""
    monkeypatch.setattr(growing, "HEAD_BYTES", 1000)
    monkeypatch.setattr(source_module, "HEAD_BYTES", 1000)
    monkeypatch.setattr(growing, "_SETTLED_BYTES", 900)
    monkeypatch.setattr(growing, "_OPEN_BYTES", 300)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", LOGS)
@given(cuts=st.lists(st.integers(1, 20_000), min_size=1, max_size=12))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_log_reads_as_the_whole_file_wherever_it_was_cut(name: str, cuts: list[int]) -> None:
    data = LOGS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        log = GrowingLog(path)
        assert not log.update()
        for cut in sorted({min(cut, len(data)) for cut in cuts}):
            path.write_bytes(data[:cut])  # the same file: opened, cut and filled again
            assert log.update()
            assert outcome(log.table) == outcome(lambda: read_log([path]))
            assert not log.update()
            assert log.read_bytes == cut
        assert log.restarts == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("last", [b"\xc3", b"\r", b'"', b",", b"\n", b"{", b"-"])
def test_a_log_cut_inside_a_character_a_line_end_or_a_cell_reads_as_the_whole_file(
    name: str, last: bytes, tmp_path: Path
) -> None:
    data = LOGS[name]
    cuts = [place + 1 for place in range(2_000, len(data)) if data[place : place + 1] == last]
    path = tmp_path / name
    log = GrowingLog(path)
    for cut in cuts[:: max(1, len(cuts) // 25)]:
        path.write_bytes(data[:cut])
        log.update()
        assert outcome(log.table) == outcome(lambda: read_log([path]))
    assert log.restarts == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["run.csv", "run.jsonl"])
@given(cuts=st.lists(st.integers(1, 20_000), min_size=1, max_size=12))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_very_long_log_reads_as_the_whole_file_wherever_it_was_cut(
    name: str, cuts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Extent(most_rows=64, cell=16, ends=32, stretch=4, around=2, most_jumps=4)
    monkeypatch.setattr(gathered, "EXTENT", few)
    data = LOGS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        log = GrowingLog(path)
        for cut in sorted({min(cut, len(data)) for cut in (*cuts, len(data))}):
            path.write_bytes(data[:cut])
            log.update()
            assert outcome(log.table) == outcome(lambda: read_log([path]))
        assert log.table().rows_left_out > 100


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", LOGS)
def test_rows_of_a_log_by_line_are_looked_at_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    log = GrowingLog(path)
    for start in range(0, len(LOGS[name]), 777):
        with path.open("ab") as file:
            file.write(LOGS[name][start : start + 777])
        log.update()
    assert log.read_bytes == len(LOGS[name])
    settled = log.settled_rows / log.table().rows
    assert settled > 0.8 if name.endswith(("csv", "jsonl")) else settled == 0


@pytest.mark.parametrize(
    "log", ["lr_too_high.jsonl", "healthy.csv", "fp16_overflow.jsonl", "poor_init.csv"]
)
def test_recorded_logs_read_the_same_as_they_grow(log: str, tmp_path: Path) -> None:
    data = (ROOT / "sample_logs" / log).read_bytes()
    path = tmp_path / log
    grown = GrowingLog(path)
    for cut in range(len(data) // 7 + 1, len(data) + 7, len(data) // 7 + 1):
        path.write_bytes(data[:cut])
        assert grown.update()
        assert outcome(grown.table) == outcome(lambda: read_log([path]))


@pytest.mark.usefixtures("small")
def test_a_log_cut_or_written_anew_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = GrowingLog(path)
    path.write_bytes(jsonl_log())
    assert log.update()
    path.write_bytes(jsonl_log()[:900])
    assert log.update()
    assert log.restarts == 1
    assert seen(log.table()) == seen(read_log([path]))
    other = tmp_path / "other"
    other.write_bytes(jsonl_log())
    os.replace(other, path)
    assert log.update()
    assert log.restarts == 2
    path.write_bytes(jsonl_log().replace(b"loss", b"LOSS") + b'{"step": 999, "LOSS": 1.0}\n')
    assert log.update()
    assert log.restarts == 3
    assert seen(log.table()) == seen(read_log([path]))


def test_a_file_that_went_away_is_no_news(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(csv_log())
    log = GrowingLog(path)
    assert log.update()
    path.unlink()
    assert not log.update()
    assert log.table().rows > 0


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(InputError, match="not a plain file"):
            GrowingLog(path).update()


@pytest.mark.parametrize("name", ["bad_batch.parquet", "healthy.csv.gz"])
def test_what_is_not_written_by_appending_is_refused(name: str, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / name
    data = (ROOT / "sample_logs" / name.removesuffix(".gz")).read_bytes()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    log = GrowingLog(path)
    log.update()
    with pytest.raises(InputError, match="not written line by line"):
        log.table()


@pytest.mark.usefixtures("small")
def test_a_beginning_written_anew_in_place_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(csv_log())
    log = GrowingLog(path)
    log.update()
    with path.open("r+b") as file:
        file.seek(30)
        file.write(b"9")
    log.update()
    assert log.restarts == 1
    assert seen(log.table()) == seen(read_log([path]))
