"""HTML: what it says is what the JSON says, it loads nothing, and a log in it is only text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stabdiag
from stabdiag.diagnose import diagnose
from stabdiag.findings import ChartSeries, HeatMap, Report
from stabdiag.fleet.rows import Fleet, FleetRow
from stabdiag.reporters import View, render
from stabdiag.reporters.html import fleet_page
from stabdiag.settings import Settings
from tests.make_runs import healthy, run_from
from tests.reporters.make_report import diverged_report, healthy_report, inconclusive_report
from tests.reporters.pages import read

VIEW = View()
SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt;\u2028\x1b[31m"
REPORTS = [diverged_report(), healthy_report(), inconclusive_report()]


def html(report: Report) -> str:
    return render(report, "html", VIEW)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_the_page_says_what_the_json_says(report: Report) -> None:
    page = read(html(report))
    words = " ".join(page.text.split())
    document = json.loads(render(report, "json", VIEW))
    verdict = document["verdict"]
    assert verdict["health"].upper() in words
    assert verdict["summary"] in words
    for finding in document["findings"]:
        assert finding["rule"] in words
    for result in document["workflow"]:
        assert result["title"] in words
    for step in document["next_steps"]:
        assert step.replace("`", "") in words
    limits = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert set(document["thresholds"]) <= set(limits)


def test_the_points_are_those_of_the_report() -> None:
    report = diverged_report()
    series = read(html(report)).data["charts"]["series"]
    for one in report.charts:
        assert series[one.name]["step"] == list(one.step)
        assert len(series[one.name]["value"]) == len(one.value)
        assert series[one.name]["bad"] == [
            s for s, v in zip(one.step, one.value, strict=True) if not math.isfinite(v)
        ]
    assert read(html(report)).data["charts"]["episodes"] == [
        [e.onset_step, e.end_step] for e in report.episodes
    ]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_it_loads_nothing_and_runs_nothing_of_a_log(report: Report) -> None:
    page = html(report)
    seen = read(page)
    assert [url for url in seen.loads if not url.startswith("#")] == []
    assert seen.handlers == []
    assert "url(" not in seen.styles
    assert "@import" not in seen.styles
    assert "default-src 'none'" in page
    assert len(seen.ids) == len(set(seen.ids)), "an id stands once"


def test_a_hostile_log_is_text() -> None:
    full = diverged_report()
    report = replace(
        full,
        run=replace(full.run, name=HOSTILE, files=(HOSTILE,)),
        verdict=replace(full.verdict, summary=HOSTILE, layers=(HOSTILE,)),
        layers=(replace(full.layers[0], layer=HOSTILE, why=HOSTILE),),
        charts=(*full.charts, ChartSeries("val_loss", (0, 1), (1.0, math.inf))),
        heat_maps=(HeatMap(HOSTILE, (HOSTILE,), (0,), (9,), ((0.5,),), (("NaN",),), 0),),
    )
    page = read(html(report))
    plain = read(html(full))
    assert page.tags.count("script") == plain.tags.count("script")
    assert "img" not in page.tags
    assert "alert(1)" in page.text
    assert "\x1b" not in html(report)


@pytest.mark.parametrize("name", ["nan_in_one_layer.csv", "bad_batch.parquet", "seed_1.csv"])
def test_a_real_log(name: str) -> None:
    report = stabdiag.analyze(SAMPLES / name)
    page = read(html(report))
    assert ("Layers over time" in page.text) == bool(report.heat_maps)
    assert page.tags.count("svg") == sum(bool(one.step) for one in report.charts)
    if report.heat_maps:
        layers = {row[0] for row in page.rows if len(row) > 20}
        assert layers == {layer for one in report.heat_maps for layer in one.layers}


def test_a_million_steps_stay_small_and_keep_every_extreme() -> None:
    columns = healthy(1_000_000)
    columns["loss"][654_321] = 77.0
    columns["grad_norm"][123_456] = math.nan
    report = diagnose(run_from(columns), Settings())
    page = html(report)
    assert len(page.encode()) < 2_000_000
    series = read(page).data["charts"]["series"]
    assert 77.0 in series["loss"]["value"]
    assert series["grad_norm"]["bad"] == [123_456]
    assert "of 1,000,000 points" in page


def test_many_layers_stay_small() -> None:
    names = [f"layers.{b}.{part}" for b in range(100) for part in ("attn.o_proj", "mlp.up_proj")]
    rng = np.random.default_rng(0)
    layers = {f"grad_norm/{n}": np.exp(0.1 * rng.standard_normal(200)) for n in names}
    report = diagnose(run_from(healthy(200), layers=layers), Settings())
    page = html(report)
    assert len(page.encode()) < 2_000_000
    assert "80 layers are left out" in page


def test_a_notebook_shows_the_verdict_without_a_script() -> None:
    report = diverged_report()
    fragment = report._repr_html_()
    seen = read(fragment)
    assert "script" not in seen.tags
    assert report.verdict.summary in seen.text
    assert seen.tags.count("svg") == 2
    rules = [line for line in seen.styles.splitlines() if "{" in line]
    assert all(line.startswith(".stabdiag") for line in rules)


def test_a_fleet_is_a_table() -> None:
    rows = (
        FleetRow(HOSTILE, "", "analysed", health="diverged", cause="data", probability=0.9,
                 onset_step=7, severity="error", findings=("SD101",), summary="bad"),
        FleetRow("b.csv", "", "unreadable", error="b.csv: <cut>"),
    )  # fmt: skip
    page = fleet_page.render(Fleet("1", rows, ("x.json",), 0), VIEW)
    seen = read(page)
    assert seen.rows[1][1:7] == ["diverged", "data", "90 %", "7", "error", "SD101"]
    assert seen.rows[2][-1] == "b.csv: <cut>"
    assert seen.tags.count("script") == 1
    assert re.search("1 diverged.*1 not judged; 1 file left out", seen.text)
