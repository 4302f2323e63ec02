"""The pages in headless Chromium: no error on the console, charts drawn, buttons do what they say."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import stabdiag
from stabdiag.fleet.rows import Fleet, FleetRow
from stabdiag.reporters import View, render
from stabdiag.reporters.html import fleet_page

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    not (DRIVER and BROWSER), reason="no Chromium with its driver is installed"
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
    "--window-size=1100,1400",
)


@dataclass(frozen=True)
class Browser:
    """One session of the W3C WebDriver protocol."""

    base: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.base}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def open(self, page: Path) -> None:
        self.call("POST", "/url", {"url": page.as_uri()})

    def run(self, script: str) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def errors(self) -> list[str]:
        found = self.call("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in found if one["level"] in ("SEVERE", "WARNING")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(
        [str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        root = Browser(f"http://127.0.0.1:{port}")
        _wait_for(root)
        profile = tmp_path_factory.mktemp("profile")
        options = {"binary": BROWSER, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = root.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        one = Browser(f"{root.base}/session/{session['sessionId']}")
        yield one
        one.call("DELETE", "")
    finally:
        driver.kill()
        driver.wait(10)


def _wait_for(driver: Browser) -> None:
    for _ in range(100):
        try:
            driver.call("GET", "/status")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the driver did not start")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    report = stabdiag.analyze(SAMPLES / "nan_in_one_layer.csv")
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report, "html", View()), encoding="utf-8")
    return path


def test_the_charts_are_drawn_without_an_error(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.errors() == []
    assert int(browser.run("return document.documentElement.dataset.drawn")) >= 3
    assert browser.run("return document.querySelectorAll('#drawn canvas').length") >= 3
    assert (
        browser.run("return getComputedStyle(document.getElementById('static')).display") == "none"
    )
    assert browser.run("return document.querySelector('.controls').hidden") is False


def _ends(browser: Browser) -> list[float]:
    """First and last step that the first chart shows, read from its axis."""
    script = "const s = uPlot.sync('steps').plots[0].scales.x; return [s.min, s.max]"
    ends: list[float] = browser.run(script)
    return ends


def test_the_buttons_zoom_all_charts(browser: Browser, page: Path) -> None:
    browser.open(page)
    whole = _ends(browser)
    assert whole == [0, 320]
    browser.run("document.querySelector('[data-in]').click()")
    time.sleep(0.3)
    near = _ends(browser)
    assert near[1] - near[0] == pytest.approx(160, abs=1)
    every = browser.run(
        "return uPlot.sync('steps').plots.map((p) => [p.scales.x.min, p.scales.x.max])"
    )
    assert all(one == near for one in every)
    browser.run("document.querySelector('[data-from=\"280\"]').click()")
    time.sleep(0.3)
    first, last = _ends(browser)
    assert first < 280 <= last <= 320
    browser.run("document.querySelector('[data-all]').click()")
    time.sleep(0.3)
    assert _ends(browser) == whole


def test_a_series_can_be_taken_away(browser: Browser, page: Path) -> None:
    browser.open(page)
    script = "return uPlot.sync('steps').plots[0].series[1].show"
    assert browser.run(script) is True
    browser.run(
        "document.querySelectorAll('#drawn .u-legend .u-series')[1].querySelector('th').click()"
    )
    assert browser.run(script) is False
    assert browser.errors() == []


def test_what_is_drawn_is_what_the_page_holds(browser: Browser, page: Path) -> None:
    browser.open(page)
    drawn = browser.run("const p = uPlot.sync('steps').plots[1]; return [p.data[0], p.data[1]]")
    report = stabdiag.analyze(SAMPLES / "nan_in_one_layer.csv")
    series = next(one for one in report.charts if one.name == "grad_norm")
    finite = {s: v for s, v in zip(series.step, series.value, strict=True) if v == v}
    shown = {s: v for s, v in zip(*drawn, strict=True) if v is not None}
    assert shown.keys() == finite.keys()
    assert all(shown[step] == pytest.approx(value, rel=1e-4) for step, value in finite.items())


def test_a_fleet_is_sorted_by_a_click(browser: Browser, tmp_path: Path) -> None:
    rows = tuple(
        FleetRow(
            f"{n}.csv",
            "",
            "analysed",
            health="healthy",
            cause="none",
            probability=0.9,
            onset_step=n,
        )
        for n in (30, 4, 200)
    )
    path = tmp_path / "fleet.html"
    path.write_text(fleet_page.render(Fleet("1", rows, (), 0), View()), encoding="utf-8")
    browser.open(path)
    assert browser.errors() == []
    order = "return [...document.querySelectorAll('tbody th')].map((c) => c.textContent)"
    browser.run("document.querySelectorAll('thead button')[4].click()")
    assert browser.run(order) == ["4.csv", "30.csv", "200.csv"]
    browser.run("document.querySelectorAll('thead button')[4].click()")
    assert browser.run(order) == ["200.csv", "30.csv", "4.csv"]
