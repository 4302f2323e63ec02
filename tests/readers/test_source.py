"""Opening logs: compression, encodings, pipes, and what can't be opened."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest

from stabdiag.errors import InputError
from stabdiag.readers import read_log
from stabdiag.readers.source import open_source, whole_text
from tests.readers.tables import column, read_text_as, said

TEXT = "step,loss\n" + "".join(f"{i},{i / 8}\n" for i in range(1000))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv", "a"])
def test_compression_is_known_by_its_bytes(tmp_path: Path, pack: object, name: str) -> None:
    assert callable(pack)
    table = read_text_as(tmp_path, name, pack(TEXT.encode()))
    assert column(table, "loss") == [i / 8 for i in range(1000)]
    assert table.notes == ()


def test_gzip_of_several_members(tmp_path: Path) -> None:
    data = gzip.compress(TEXT[:500].encode()) + gzip.compress(TEXT[500:].encode()) + b"\0" * 9
    assert column(read_text_as(tmp_path, "a.gz", data), "step") == list(map(float, range(1000)))


def test_cut_gzip_gives_what_is_there(tmp_path: Path) -> None:
    noise = "step,loss\n" + "".join(f"{i},0.{hash(str(i)) % 10**9:09}\n" for i in range(50_000))
    data = gzip.compress(noise.encode())
    table = read_text_as(tmp_path, "a.csv.gz", data[: len(data) // 2])
    assert 10_000 < table.rows < 50_000
    assert "dropped: gzip data cut short: what follows is lost x1" in said(table)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_compression(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    data = bytearray(pack(os.urandom(200_000)))
    data[5000:6000] = b"\0" * 1000
    with pytest.raises(InputError):
        read_text_as(tmp_path, "a.csv.gz", bytes(data))


def test_zstd_without_its_module_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match="zstandard"):
        read_text_as(tmp_path, "a.csv.zst", b"\x28\xb5\x2f\xfd" + b"\0" * 20)


def test_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stabdiag.readers.compression.ALWAYS_ALLOWED_BYTES", 1 << 20)
    data = gzip.compress(b"step,loss\n" + b"0,0\n" * 5_000_000)
    with pytest.raises(InputError, match="grows more than 200 times"):
        read_text_as(tmp_path, "a.csv.gz", data)


def test_endless_line_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stabdiag.readers.source.MAX_LINE_BYTES", 1 << 20)
    text = "step,loss\n0,1\n1,2\n2," + "3" * (20 << 20)
    with pytest.raises(InputError, match="line 4: longer than 1 MiB"):
        read_text_as(tmp_path, "a.csv", text)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    table = read_text_as(tmp_path, "a.csv", "step,größe\n0,1.5\n1,nan\n".encode(encoding))
    assert table.names == ("step", "größe")
    assert column(table, "größe") == [1.5, "<NaN>"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode()))))
    table = read_log(["-"])
    assert table.files == ("<stdin>",)
    assert table.rows == 1000


def test_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(TEXT,))
    writer.start()
    assert read_log([path]).rows == 1000
    writer.join()


@pytest.mark.parametrize("name", ["absent.csv", "a\0b.csv", "x" * 5000])
def test_what_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_log([tmp_path / name])
    assert caught.value.todo


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")])
def test_empty_files(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="empty"):
        read_text_as(tmp_path, "a.csv", data)


def test_no_path_at_all() -> None:
    with pytest.raises(InputError, match="no log was named"):
        read_log([])


def test_whole_text_is_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo \xff\n")
    source = open_source(path)
    assert whole_text(source) == "one\r\ntwo \ufffd\n"
    assert source.notes["undecodable"].count == 1
