"""Logs at an address, from servers on this machine that end with the test."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from stabdiag.cli.main import main
from stabdiag.errors import InputError
from stabdiag.fleet.find import find
from stabdiag.readers import read_log
from stabdiag.readers.store import remote_uri, stamp

ROWS = 300
LOG = "step,loss,grad_norm\n" + "".join(f"{i},{4 - i / 100},1.5\n" for i in range(ROWS))
METRIC = "Wall time,Step,Value\n" + "".join(f"{i},{i},{4 - i / 100}\n" for i in range(ROWS))
FOLDER = {
    "/bucket/runs/a/loss.csv": METRIC.encode(),
    "/bucket/runs/a/train/grad_norm.csv": METRIC.encode(),
    "/bucket/runs/a/model.safetensors": bytes(1000),
    "/bucket/runs/a/.cache/lr.csv": METRIC.encode(),
    "/bucket/runs/b/metrics/loss": "".join(
        f"{i} {4 - i / 100} {i}\n" for i in range(ROWS)
    ).encode(),
    "/bucket/runs/b/metrics/grad_norm": "".join(f"{i} 1.5 {i}\n" for i in range(ROWS)).encode(),
    "/bucket/runs/c.csv": LOG.encode(),
}
OBJECTS = {"/bucket/run.csv": LOG.encode(), "/bucket/empty.csv": b""} | FOLDER
ASKED: list[str] = []  # paths of the objects that were read
FORBIDDEN = "/bucket/secret.csv"


class Store(BaseHTTPRequestHandler):
    """What an object store answers to the reading of an object by its path."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path, _, query = self.path.partition("?")
        if "list-type=2" in query:
            self.list_objects({key: value[0] for key, value in parse_qs(query).items()})
            return
        if body:
            ASKED.append(path)
        data = OBJECTS.get(path, b"")
        status = 403 if path == FORBIDDEN else 200 if path in OBJECTS else 404
        span = self.headers.get("Range", "")
        total, first = len(data), 0
        if status == 200 and span.startswith("bytes=") and data:
            left, _, right = span.removeprefix("bytes=").partition("-")
            first, last = int(left), min(int(right or total), total - 1)
            data, status = data[first : last + 1], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{first + len(data) - 1}/{total}")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        if body:
            self.wfile.write(data)

    def list_objects(self, query: Mapping[str, str]) -> None:
        """Answer ListObjectsV2."""
        keys = [path.removeprefix("/bucket/") for path in sorted(OBJECTS)]
        keys = [key for key in keys if key.startswith(query.get("prefix", ""))]
        contents = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>1</ETag><Size>{len(OBJECTS['/bucket/' + key])}</Size></Contents>"
            for key in keys
        )
        answer = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>'
            f"<KeyCount>{len(keys)}</KeyCount><IsTruncated>false</IsTruncated>{contents}"
            "</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on standard error."""


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """Host and port of a server that holds OBJECTS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def s3(store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The options of an S3 address that lead to the server, and to no other host."""
    fs = pytest.importorskip("pyarrow.fs", reason="pyarrow is built without filesystems")
    if not hasattr(fs, "S3FileSystem"):
        pytest.skip("pyarrow is built without S3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return f"?endpoint_override={store}&scheme=http&region=us-east-1"


@pytest.fixture
def web(store: str) -> str:
    """The start of a web address that leads to the server."""
    for package in ("fsspec", "aiohttp"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    return f"http://{store}/bucket"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("s3://b/k.csv", "s3://b/k.csv"),
        (Path("s3://b/k.csv"), "s3://b/k.csv"),
        ("HTTPS://host/run?x=1", "https://host/run?x=1"),
        ("run.csv", ""),
        ("C:/run.csv", ""),
        ("-", ""),
        ("a/b:/c", ""),
    ],
)
def test_what_is_an_address(path: Path | str, uri: str) -> None:
    assert remote_uri(path) == uri


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "run.csv").write_text(LOG, encoding="utf-8")
    assert read_log(["s3:/run.csv"]).rows == ROWS


def test_from_an_object_store(s3: str) -> None:
    uri = f"s3://bucket/run.csv{s3}"
    table = read_log([uri])
    assert (table.rows, table.files) == (ROWS, (uri,))
    assert table.load(["loss"])["loss"].value[0] == 4.0


def test_a_folder_of_an_object_store_is_one_run(s3: str) -> None:
    ASKED.clear()
    table = read_log([f"s3://bucket/runs/a{s3}"])
    assert table.names == ("step", "Wall time", "loss", "grad_norm")
    assert table.rows == ROWS
    assert table.load(["loss"])["loss"].value[0] == 4.0
    assert not any("safetensors" in path or ".cache" in path for path in ASKED)
    assert all(file.startswith("s3://bucket/runs/a") for file in table.files)


def test_a_folder_that_holds_several_runs_names_the_address(s3: str) -> None:
    with pytest.raises(InputError, match=r"c\.csv") as caught:
        read_log([f"s3://bucket/runs{s3}"])
    assert caught.value.what.startswith("s3://bucket/runs")
    assert "/tmp" not in caught.value.what


def test_a_survey_finds_the_runs_of_an_object_store(s3: str) -> None:
    found = [one.log for one in find([f"s3://bucket/runs{s3}"])]
    assert found == [
        f"s3://bucket/runs/{name}{s3}"
        for name in ("a/loss.csv", "a/train/grad_norm.csv", "b/metrics", "c.csv")
    ]


def test_a_folder_is_known_again_until_a_file_in_it_changes(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"s3://bucket/runs/b/metrics{s3}"
    before = stamp(uri)
    assert before
    assert stamp(uri) == before
    monkeypatch.setitem(OBJECTS, "/bucket/runs/b/metrics/loss", b"0 4.0 0\n")
    assert stamp(uri) != before


def test_from_the_web(web: str) -> None:
    table = read_log([f"{web}/run.csv"])
    assert (table.rows, table.files) == (ROWS, (f"{web}/run.csv",))


def test_from_the_command_line(
    web: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["columns", f"{web}/run.csv"]) == 0
    assert f"{web}/run.csv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [("none.csv", "no such file"), ("secret.csv", "no access to it"), ("empty.csv", "is empty")],
)
def test_what_can_not_be_had_is_said(web: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_log([f"{web}/{name}"])
    assert caught.value.what.startswith(f"{web}/{name}: ")
    assert "\n" not in caught.value.what


def test_an_absent_object_is_said(s3: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_log([f"s3://bucket/none.csv{s3}"])


def test_an_unknown_scheme_is_said() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with pytest.raises(InputError, match="no filesystem is known for weird://"):
        read_log(["weird://host/run.csv"])


def test_without_fsspec_its_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="needs fsspec") as caught:
        read_log(["https://127.0.0.1:9/run.csv"])
    assert "stabdiag[remote]" in caught.value.todo
