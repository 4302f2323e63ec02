"""The pages in headless Chromium: no error, charts drawn, pointer and keys do what they say."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import stabdiag
from stabdiag.drawings import ChartSeries
from stabdiag.findings import Report
from stabdiag.fleet.rows import Fleet, FleetRow
from stabdiag.reporters import View, render
from stabdiag.reporters.html import fleet_page
from tests.reporters.test_html import hostile_report

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

KEYS = {
    "Enter": "\ue007",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}


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

    def click(self, selector: str) -> None:
        """Click as a user would, and wait until the charts have taken it over."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{ block: 'center' }})")
        self.call("POST", f"/element/{self._element(selector)}/click", {})
        time.sleep(0.05)

    def keys(self, selector: str, *names: str) -> None:
        self.run(f"document.querySelector({selector!r}).focus()")
        typed = [KEYS.get(name, name) for name in names]
        self.call("POST", f"/element/{self._element(selector)}/value", {"text": "".join(typed)})
        time.sleep(0.05)

    def point(self, x: int, y: int) -> None:
        moves = [{"type": "pointerMove", "duration": 50, "x": x, "y": y}]
        self.call(
            "POST", "/actions", {"actions": [{"type": "pointer", "id": "m", "actions": moves}]}
        )
        time.sleep(0.05)

    def drag(self, start: tuple[int, int], end: tuple[int, int], by: str = "mouse") -> None:
        moves = [
            {"type": "pointerMove", "duration": 0, "x": start[0], "y": start[1]},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 50, "x": end[0], "y": end[1]},
            {"type": "pointerUp", "button": 0},
        ]
        hand = {"type": "pointer", "id": by, "parameters": {"pointerType": by}, "actions": moves}
        self.call("POST", "/actions", {"actions": [hand]})

    def text(self, selector: str) -> str:
        shown: str = self.run(f"return document.querySelector({selector!r}).textContent")
        return shown

    def display(self, selector: str) -> str:
        script = f"return getComputedStyle(document.querySelector({selector!r})).display"
        shown: str = self.run(script)
        return shown

    def devtools(self, command: str, **given: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": given})

    def _element(self, selector: str) -> str:
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        return str(next(iter(found.values())))

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
def report() -> Report:
    return stabdiag.analyze(SAMPLES / "nan_in_one_layer.csv")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, report: Report) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report, "html", View()), encoding="utf-8")
    return path


def test_the_charts_are_drawn_without_an_error(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.errors() == []
    assert browser.run("return document.documentElement.dataset.drawn") == "2"
    assert browser.run("return document.querySelectorAll('#drawn canvas').length") == 2
    assert browser.display("#still") == "none"
    assert browser.display(".controls") != "none"


def _ends(browser: Browser) -> list[float]:
    """First and last step that the first chart shows, read from its axis."""
    script = "const s = uPlot.sync('steps').plots[0].scales.x; return [s.min, s.max]"
    ends: list[float] = browser.run(script)
    return ends


def _all_ends(browser: Browser) -> list[list[float]]:
    script = "return uPlot.sync('steps').plots.map((p) => [p.scales.x.min, p.scales.x.max])"
    ends: list[list[float]] = browser.run(script)
    return ends


def test_the_buttons_zoom_all_charts(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert _ends(browser) == [0, 320]
    browser.click("[data-move=in]")
    assert _all_ends(browser) == [[80, 240]] * 2
    browser.click("[data-move=right]")
    assert _all_ends(browser) == [[160, 320]] * 2
    assert "steps 160 to 320 of 0 to 320" in browser.text("#range")
    browser.click("[data-move=whole]")
    assert _all_ends(browser) == [[0, 320]] * 2


@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_a_drag_zooms_all_charts(browser: Browser, page: Path, by: str) -> None:
    browser.open(page)
    browser.run("document.getElementById('drawn').scrollIntoView({ block: 'center' })")
    box = browser.run(
        "const b = uPlot.sync('steps').plots[0].over.getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height].map(Math.round)"
    )
    left, top, width, height = box
    middle = top + height // 2
    browser.drag((left + width // 4, middle), (left + width // 2, middle), by)
    time.sleep(0.2)
    first, second = _all_ends(browser)
    assert first == pytest.approx([80, 160], abs=1)
    assert second == pytest.approx(first, abs=0.01)


def test_a_finger_that_scrolls_or_taps_does_not_zoom(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.getElementById('drawn').scrollIntoView({ block: 'center' })")
    left, top, width, height = browser.run(
        "const b = uPlot.sync('steps').plots[0].over.getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height].map(Math.round)"
    )
    whole = _all_ends(browser)
    at = (left + width // 4, top + height // 2)
    browser.drag(at, at, "touch")
    browser.drag(at, (at[0] + 4, at[1] + 300), "touch")
    time.sleep(0.2)
    assert _all_ends(browser) == whole


def test_the_pointer_reads_every_series(browser: Browser, page: Path, report: Report) -> None:
    browser.open(page)
    browser.click("[data-series=lr]")
    browser.run("document.getElementById('drawn').scrollIntoView({ block: 'center' })")
    left, top = browser.run(
        "const p = uPlot.sync('steps').plots[0], b = p.over.getBoundingClientRect();"
        "return [Math.round(b.left + p.valToPos(100, 'x')), Math.round(b.top + 50)]"
    )
    browser.point(left, top)
    values = {one.name: dict(zip(one.step, one.value, strict=True)) for one in report.charts}
    told = [
        f"{label} {float(f'{values[name][100]:.4g}'):g}"
        for name, label in (("loss", "loss"), ("grad_norm", "grad norm"), ("lr", "learning rate"))
    ]
    shown = browser.text("#readout")
    assert shown.startswith("step 100  ·")
    assert [one for one in told if one not in shown] == []
    cursors = "return uPlot.sync('steps').plots.map((p) => p.cursor.idx)"
    assert browser.run(cursors) == [100, 100, 100]


def test_a_series_is_shown_and_taken_away(browser: Browser, page: Path, report: Report) -> None:
    browser.open(page)
    browser.click("[data-series=param_norm]")
    titles = "return [...document.querySelectorAll('.panel .title')].map((t) => t.textContent)"
    assert browser.run(titles) == ["lossvalidation loss", "grad norm log scale", "param norm"]
    browser.click("[data-series=loss]")
    browser.click("[data-series=val_loss]")
    browser.click("[data-move=in]")
    assert browser.run(titles) == ["grad norm log scale", "param norm"]
    assert _all_ends(browser) == [[80, 240]] * 2
    browser.click("[data-log]")
    assert browser.run(titles)[1] == "param norm log scale"
    assert browser.errors() == []


def test_a_chart_drawn_anew_keeps_what_is_shown(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run(
        "document.querySelector('[data-series=lr]').click();"
        "document.querySelector('[data-log]').click();"
        "document.querySelector('[data-move=in]').click()"
    )
    time.sleep(0.1)
    assert _all_ends(browser) == [[80, 240]] * 3


def test_what_is_drawn_is_what_the_report_holds(
    browser: Browser, page: Path, report: Report
) -> None:
    browser.open(page)
    drawn = browser.run("const p = uPlot.sync('steps').plots[1]; return [p.data[0], p.data[1]]")
    series = next(one for one in report.charts if one.name == "grad_norm")
    finite = {s: v for s, v in zip(series.step, series.value, strict=True) if math.isfinite(v)}
    shown = {s: v for s, v in zip(*drawn, strict=True) if v is not None}
    assert shown == {step: pytest.approx(value, rel=1e-5) for step, value in finite.items()}


def test_the_keyboard_reads_the_points(browser: Browser, page: Path, report: Report) -> None:
    browser.open(page)
    browser.keys("#drawn", "End")
    assert browser.text("#readout").startswith("step 320")
    assert browser.text("#readout").count("NaN") == 2
    browser.keys("#drawn", "Home", "ArrowRight", "ArrowRight")
    loss = next(one for one in report.charts if one.name == "loss")
    assert f"step 2  ·  loss {float(f'{loss.value[2]:.4g}'):g}  ·" in browser.text("#readout")
    browser.keys("#drawn", "+")
    first, last = _ends(browser)
    assert first <= 2 <= last < 320


def test_an_event_leads_to_the_charts(browser: Browser, page: Path, report: Report) -> None:
    browser.open(page)
    browser.click(f"#events [data-from='{report.episodes[0].onset_step}']")
    time.sleep(0.2)
    first, last = _ends(browser)
    assert first < report.episodes[0].onset_step < last < 320
    assert browser.text("#readout").startswith(f"step {report.episodes[0].onset_step}  ·")
    assert browser.run("return document.activeElement.id") == "drawn"


def test_the_heat_map_is_read_by_keyboard(browser: Browser, page: Path, report: Report) -> None:
    browser.open(page)
    browser.keys("[data-heat=heat-0]", "ArrowDown", "ArrowDown", "ArrowRight")
    shown = report.heat_maps[0]
    value = shown.value[2][1]
    assert value is not None
    said = browser.text("#over-time output")
    assert said.startswith(f"{shown.layers[2]}  ·  steps {shown.first_step[1]} to ")
    assert f"{float(f'{10.0**value:.3g}'):g}x its median" in said
    browser.keys("[data-heat=heat-0]", "End", "Enter")
    assert "NaN" in browser.text("#over-time output")
    time.sleep(0.2)
    assert _ends(browser)[1] == 320


def test_a_hostile_log_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(render(hostile_report(), "html", View()), encoding="utf-8")
    browser.open(path)
    assert browser.errors() == []
    assert browser.run("return document.images.length") == 0
    browser.keys("[data-heat=blocks-0]", "ArrowRight")
    assert "alert(1)" in browser.text("#over-time output")


def test_it_reads_without_a_script_and_in_print(browser: Browser, page: Path) -> None:
    try:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
        browser.open(page)
        tree = browser.devtools("DOMSnapshot.captureSnapshot", computedStyles=["display"])
        drawn = _displays(tree, ("still", "drawn"))
        assert drawn == {"still": "block"}
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    browser.open(page)
    try:
        browser.devtools("Emulation.setEmulatedMedia", media="print")
        assert browser.display("#still") == "block"
        assert browser.display("#drawn") == "none"
        assert browser.display("nav") == "none"
    finally:
        browser.devtools("Emulation.setEmulatedMedia", media="")


def _displays(tree: Any, ids: tuple[str, ...]) -> dict[str, str]:
    """How elements with these ids are laid out; one that is not is missing."""
    strings, document = tree["strings"], tree["documents"][0]
    nodes, layout = document["nodes"], document["layout"]
    styles = dict(zip(layout["nodeIndex"], layout["styles"], strict=True))
    found = {}
    for index, pairs in enumerate(nodes["attributes"]):
        given = dict(zip(pairs[::2], pairs[1::2], strict=True))
        for key, value in given.items():
            if strings[key] == "id" and strings[value] in ids and index in styles:
                found[strings[value]] = strings[styles[index][0]]
    return found


@contextmanager
def _window(browser: Browser, width: int) -> Iterator[None]:
    """A window of this many pixels in width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.devtools("Emulation.setDeviceMetricsOverride", **size)
    try:
        yield
    finally:
        browser.devtools("Emulation.clearDeviceMetricsOverride")


def test_a_narrow_table_uses_the_width_that_there_is(browser: Browser, page: Path) -> None:
    with _window(browser, 400):
        browser.open(page)
        widths = browser.run(
            "return [...document.querySelectorAll('.stacked tbody tr > *')]"
            ".filter((c) => c.offsetParent).map((c) => c.offsetWidth / c.parentNode.offsetWidth)"
        )
    assert min(widths) > 0.95


def test_the_layers_are_read_without_scrolling_sideways(browser: Browser, page: Path) -> None:
    with _window(browser, 1200):
        browser.open(page)
        box = "document.querySelector('#layers .wide')"
        assert browser.run(f"return {box}.scrollWidth <= {box}.clientWidth")


@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    with _window(browser, width):
        browser.open(page)
        assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("low", "high"),
    [
        *((0.01305, 1.50095), (0.0099999, 0.51), (3.0, 4.9), (2.0, 2.0), (0.0, 0.0), (-3.0, 1e38)),
        *(
            (5e-324, 5e-324),
            (5e-324, 1e-300),
            (1e-5, 1.7e308),
            (1e300, 1.7e308),
            (-8e307, 8e307),
        ),
    ],
)
def test_an_axis_of_any_range_is_drawn(
    browser: Browser, tmp_path: Path, report: Report, low: float, high: float
) -> None:
    step = tuple(range(100))
    value = tuple(high if at % 2 else low for at in step)
    odd = replace(report, charts=(ChartSeries("loss", step, value),), heat_maps=())
    path = tmp_path / "odd.html"
    path.write_text(render(odd, "html", View()), encoding="utf-8")
    browser.open(path)
    for _ in range(2):
        assert browser.errors() == []
        assert browser.run("return document.documentElement.dataset.drawn") == "1"
        shown = browser.run("const p = uPlot.sync('steps').plots[0]; return p.axes[1]._splits")
        assert 1 <= len(shown) <= 20
        browser.click("[data-log]")


def test_a_fleet_is_sorted_by_a_click(browser: Browser, tmp_path: Path) -> None:
    def row(log: str, onset: int | None, severity: str, health: str) -> FleetRow:
        return FleetRow(
            *(log, "", "analysed"),
            health=health,
            cause="none",
            probability=0.9,
            onset_step=onset,
            severity=severity,
        )

    rows = (
        row("run_30.csv", 30, "info", "healthy"),
        row("run_4.csv", 4, "error", "diverged"),
        row("a1.csv", None, "", "unstable"),
        row("run_200.csv", 200, "warning", "diverged"),
    )
    path = tmp_path / "fleet.html"
    path.write_text(fleet_page.render(Fleet("1", rows, (), 0), View()), encoding="utf-8")
    browser.open(path)
    assert browser.errors() == []

    def sorted_by(column: int) -> list[str]:
        browser.run(f"document.querySelectorAll('thead button')[{column}].click()")
        script = "return [...document.querySelectorAll('tbody th')].map((c) => c.textContent)"
        names: list[str] = browser.run(script)
        return [name.removeprefix("run_").removesuffix(".csv") for name in names]

    assert sorted_by(4) == ["4", "30", "200", "a1"]
    assert sorted_by(4) == ["200", "30", "4", "a1"], "what has no onset stays last"
    assert sorted_by(0) == ["a1", "4", "30", "200"]
    assert sorted_by(5) == ["4", "200", "30", "a1"], "errors before warnings"
    assert sorted_by(1)[-2:] == ["a1", "30"], "healthy last"
