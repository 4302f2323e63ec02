"""HTML: what it says is what the JSON says, it loads nothing, and a log in it is only text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

import stabdiag
from stabdiag.diagnose import diagnose
from stabdiag.drawings import ChartSeries, HeatBlock, HeatMap, LrPhase, NotFinite
from stabdiag.findings import Report
from stabdiag.fleet.rows import Fleet, FleetRow
from stabdiag.reporters import PARTS, View, render, render_part
from stabdiag.reporters.first_screen import cause_name
from stabdiag.reporters.html import fleet_page
from stabdiag.reporters.html.document import asset
from stabdiag.reporters.html.svg import figures
from stabdiag.reporters.numbers import nats, number, percent, times
from stabdiag.reporters.untrusted import printable
from stabdiag.settings import Settings
from stabdiag.steps.heat_map import MOST_LAYERS
from stabdiag.steps.layer_cells import CELLS
from stabdiag.verdict.charts import BUCKETS, MOST_STRETCHES
from tests.make_runs import healthy, run_from, spike
from tests.reporters.make_report import diverged_report, healthy_report, inconclusive_report
from tests.reporters.pages import Page, read

VIEW = View()
SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&lt;\u2028\x1b[31m"
REPORTS = [diverged_report(), healthy_report(), inconclusive_report()]
BYTES = 2_000_000


def html(report: Report) -> str:
    return render(report, "html", VIEW)


def words(page: Page) -> str:
    return " ".join(page.text.split())


def said(text: str) -> str:
    """A sentence of the report as a page shows it: commands without their backticks."""
    return " ".join(printable(text).replace("`", "").split())


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_the_page_says_what_the_json_says(report: Report) -> None:
    shown = words(read(html(report)))
    document = json.loads(render(report, "json", VIEW))
    assert document["verdict"]["health"].upper() in shown
    texts = [document["verdict"]["summary"], *document["next_steps"]]
    texts += [layer for layer in document["verdict"]["layers"]]
    texts += [note["text"] for note in document["run"]["notes"]]
    for result in document["workflow"]:
        texts += [result["title"], result["reason"], *result["looked_at"]]
    for finding in document["findings"]:
        texts += [f"{finding['rule']} {finding['name']}", finding["message"], finding["advice"]]
        texts += [finding["layer"] or "", *(name.replace("_", " ") for name in finding["data"])]
    for cause in document["causes"]:
        texts += [one["text"] for one in cause["evidence"]]
    for item in document["monitoring"]:
        texts += [item["metric"], item["advice"]]
    for check in document["checks"]:
        texts += [check["name"], check["text"]]
    for gap in document["audit"]["items"]:
        texts += [gap["asked"], gap["found"], gap["cost"]]
    for lines in document["audit"]["lines"].values():
        texts += lines
    texts.append(f"{document['audit']['score']} of 100 points")
    texts.append(f"loss {number(100 * document['spike_score']['loss'], 2)} % of the points")
    assert [text for text in texts if said(text) not in shown] == []


def test_every_number_of_the_tables_is_that_of_the_report() -> None:
    report = diverged_report()
    rows = read(html(report)).rows
    for cause in report.causes:
        assert [cause_name(cause.cause), percent(cause.probability), ""] in rows
        for piece in cause.evidence:
            mine = [row for row in rows if len(row) == 6 and row[3] == piece.text]
            assert [row[0] for row in mine] == [nats(piece.weight)]
            assert mine[0][2] == ("for" if piece.weight > 0 else "against")
    for layer in report.layers:
        row = next(row for row in rows if len(row) == 12 and row[1] == printable(layer.layer))
        assert row[0] == str(layer.rank)
        assert row[3:5] == [times(layer.ratio_to_median), times(layer.ratio_to_peers)]
        assert row[8:10] == [times(layer.param_growth), number(layer.peak_score)]
    for place, episode in enumerate(report.episodes, start=1):
        row = next(row for row in rows if len(row) == 10 and row[0] == str(place))
        assert row[1].startswith(str(episode.onset_step))
        assert row[3:5] == [times(episode.ratio), number(episode.score)]
    for name, limit in report.thresholds.items():
        assert [name, number(limit, 6)] in rows
    for name, info in report.run.series.items():
        row = next(row for row in rows if len(row) == 9 and row[0] == name)
        figures = [number(info.points), number(info.cadence), number(info.non_finite)]
        assert row[1:5] == [printable(info.column), *figures]


def test_the_points_are_those_of_the_report() -> None:
    report = diverged_report()
    points = read(html(report)).data["points"]
    drawn = {one["name"]: one for one in points["series"]}
    for one in report.charts:
        assert list(accumulate(drawn[one.name]["gaps"])) == list(one.step)
        assert [v if v is not None else math.nan for v in drawn[one.name]["value"]] == [
            pytest.approx(v, rel=1e-5, nan_ok=True) for v in one.value
        ]
    assert [e[:2] for e in points["episodes"]] == [
        [e.onset_step, e.end_step] for e in report.episodes
    ]
    assert points["restarts"] == [690]
    assert points["phases"] == [["warmup", 0], ["decay", 400]]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_it_loads_nothing_and_runs_nothing_of_a_log(report: Report) -> None:
    page = html(report)
    seen = read(page)
    assert [url for url in seen.loads if not url.startswith("#")] == []
    assert {url[1:] for url in seen.loads} <= set(seen.ids), "every link has its target"
    assert seen.handlers == []
    assert "url(" not in seen.styles
    assert "@import" not in seen.styles
    assert "default-src 'none'" in page
    assert "unsafe" not in page.partition("</head>")[0]
    assert len(seen.ids) == len(set(seen.ids)), "an id stands once"
    assert seen.tags.count("h1") == 1
    assert {"main", "header", "nav", "footer"} <= set(seen.tags)


def test_a_page_carries_the_licence_of_what_it_carries() -> None:
    licence = asset("uplot-LICENSE.txt")
    assert "Permission is hereby granted" in licence
    assert licence in html(healthy_report())


def hostile_report() -> Report:
    full = diverged_report()
    return replace(
        full,
        run=replace(full.run, name=HOSTILE, files=(HOSTILE,)),
        verdict=replace(full.verdict, summary=HOSTILE, layers=(HOSTILE,)),
        findings=tuple(replace(one, layer=HOSTILE, message=HOSTILE) for one in full.findings),
        next_steps=(f"`stabdiag timeline {HOSTILE}`", f"stabdiag layers {HOSTILE}"),
        layers=(replace(full.layers[0], layer=HOSTILE, why=HOSTILE),),
        charts=(*full.charts, ChartSeries("val_loss", (0, 1), (1.0, math.inf))),
        heat_maps=(
            HeatMap(
                *(HOSTILE, (HOSTILE,), (0,), (9,), ((0.5,),), (("NaN",),), 3),
                blocks=(HeatBlock(HOSTILE, 4, (-math.inf,), ("",)),),
            ),
        ),
    )


def test_a_hostile_log_is_text() -> None:
    report = hostile_report()
    page = read(html(report))
    plain = read(html(replace(diverged_report(), heat_maps=())))
    assert page.tags.count("script") == plain.tags.count("script") + 2  # the data of the two maps
    assert "img" not in page.tags
    assert "alert(1)" in page.text
    assert "\x1b" not in html(report)
    assert page.data["heat-0"]["names"] == page.data["blocks-0"]["names"] == [HOSTILE]
    assert page.data["blocks-0"]["value"] == [["-Infinity"]]


@pytest.mark.parametrize("name", ["nan_in_one_layer.csv", "bad_batch.parquet", "seed_1.csv"])
def test_a_real_log(name: str) -> None:
    report = stabdiag.analyze(SAMPLES / name)
    page = read(html(report))
    assert ("Layers over time" in page.text) == bool(report.heat_maps)
    for order, one in enumerate(report.heat_maps):
        assert page.data[f"heat-{order}"]["names"] == list(one.layers)
        named = {row[0] for row in page.rows if len(row) == 6}
        assert set(one.layers) <= named
    assert html(report) == html(stabdiag.analyze(SAMPLES / name)), "the same bytes"


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_it(part: str) -> None:
    report = stabdiag.analyze(SAMPLES / "nan_in_one_layer.csv")
    page = read(render_part(report, "html", part, VIEW))
    document = json.loads(render_part(report, "json", part, VIEW))
    shown = words(page)
    assert [one for one in document["findings"] if said(one["message"]) not in shown] == []
    assert [one for one in document["workflow"] if one["title"] not in shown] == []
    assert [step for step in document.get("next_steps", ()) if said(step) not in shown] == []
    steps = {row[0] for row in page.rows if len(row) == 10}
    assert {str(n) for n, _ in enumerate(document.get("episodes", ()), start=1)} <= steps
    assert ("points" in page.data) == (part != "audit")
    assert ("heat-0" in page.data) == (part == "layers")
    assert {url[1:] for url in page.loads} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_a_million_steps_stay_small_and_keep_every_extreme() -> None:
    columns = healthy(1_000_000)
    spike(columns, "loss", 654_321, 9.0, 3)
    for at in (123_456, 123_460, 123_462, 800_000):
        columns["grad_norm"][at] = math.nan
    columns["grad_norm"][500_000:600_000] = math.inf
    report = diagnose(run_from(columns), Settings())
    page = html(report)
    assert len(page.encode()) < BYTES
    seen = read(page)
    series = {one["name"]: one for one in seen.data["points"]["series"]}
    for name in ("loss", "grad_norm"):
        finite = columns[name][np.isfinite(columns[name])]
        drawn = [v for v in series[name]["value"] if v is not None]
        assert (min(drawn), max(drawn)) == pytest.approx((finite.min(), finite.max()), rel=1e-5)
    near = [s for s in accumulate(series["loss"]["gaps"]) if 654_300 <= s <= 654_340]
    assert near == list(range(654_300, 654_341)), "near an event every point is there"
    assert series["grad_norm"]["bad"] == [
        [123_456, 123_456, "NaN"],
        [123_460, 123_460, "NaN"],
        [123_462, 123_462, "NaN"],
        [500_000, 599_999, "Inf"],
        [800_000, 800_000, "NaN"],
    ]
    assert "Drawn from fewer points than were logged." in words(seen)
    assert re.search(r"loss 8,\d\d\d of 1,000,000", words(seen))


def test_many_layers_stay_small() -> None:
    names = [f"layers.{b}.{part}" for b in range(150) for part in ("attn.o_proj", "mlp.up_proj")]
    rng = np.random.default_rng(0)
    layers = {
        f"{metric}/{n}": np.exp(rng.standard_normal(200))
        for n in names
        for metric in ("grad_norm", "param_norm", "activation_max")
    }
    report = diagnose(run_from(healthy(200), layers=layers), Settings())
    page = html(report)
    assert len(page.encode()) < BYTES
    assert "180 layers left out" in page
    assert "of all 300 layers by blocks" in page
    assert {one.layer for one in report.layers} <= {row[1] for row in read(page).rows if row[1:]}


def test_a_long_run_of_a_large_model_stays_small() -> None:
    """As many points as a chart may hold, and as many rows as a map may have, of noise."""
    rng = np.random.default_rng(0)
    last = 999_999

    def series(name: str, points: int, bad: tuple[NotFinite, ...] = ()) -> ChartSeries:
        step = np.sort(rng.choice(last, points, replace=False))
        value = np.exp(rng.standard_normal(points))
        return ChartSeries(name, tuple(step.tolist()), tuple(value.tolist()), bad)

    def noise() -> tuple[float, ...]:
        return tuple(np.round(0.2 * rng.standard_normal(CELLS), 3).tolist())

    every = last // MOST_STRETCHES
    bad = tuple(
        NotFinite(i * every, i * every + 9, 10, "NaN or Inf") for i in range(MOST_STRETCHES)
    )
    most = 4 * BUCKETS
    charts = (
        series("loss", most),
        series("val_loss", 1000),
        series("grad_norm", most + 2 * MOST_STRETCHES, bad),
        series("param_norm", most),
        series("lr", most),
    )
    names = [f"layers.{b}.experts.{e}.down_proj.weight" for b in range(60) for e in range(16)]
    cells = tuple(range(0, last, last // CELLS + 1))
    whole = ("",) * CELLS
    rows = range(MOST_LAYERS)
    maps = tuple(
        HeatMap(
            metric=metric,
            layers=tuple(names[:MOST_LAYERS]),
            first_step=cells,
            last_step=(*(step - 1 for step in cells[1:]), last),
            value=tuple(noise() for _ in rows),
            bad=(whole,) * MOST_LAYERS,
            left_out=len(names) - MOST_LAYERS,
            blocks=tuple(HeatBlock(f"layers.{row}", 8, noise(), whole) for row in rows),
        )
        for metric in ("grad_norm", "param_norm")
    )
    full = diverged_report()
    layers = tuple(replace(full.layers[0], layer=name) for name in names)
    page = html(replace(full, charts=charts, heat_maps=maps, layers=layers))
    assert len(page.encode()) < BYTES
    said = words(read(page))
    assert "and 560 layers more, in the JSON report" in said
    assert "and 1,960 stretches more, marked in the charts" in said


def test_a_still_picture_says_and_draws_what_belongs_together() -> None:
    step = tuple(range(100))
    loss = (*(3.0 - s / 100 for s in range(40)), math.nan, 2.5, *[math.nan] * 58)
    charts = (
        ChartSeries("loss", step, loss),
        ChartSeries("val_loss", (0, 50, 99), (4.0, 3.0, 2.0)),
    )
    report = replace(healthy_report(), charts=charts, lr_phases=())
    first, *others = figures(report, ("loss", "val_loss", "grad_norm"))
    assert others == []
    assert "loss, steps 0 to 99: from 3 to 2.5" in first
    assert "; validation loss, steps 0 to 99: from 4 to 2" in first
    drawn = {
        d.count("M"): name for name, d in re.findall(r'class="(line [^"]*)" d="([^"]*)"', first)
    }
    assert drawn[3] == "line second dots", "three points of few, each to be seen"
    lone = re.findall(r'class="line first dots" d="M([^"]*)h0"', first)
    assert len(lone) == 1, "one point between NaN"


def test_words_of_short_phases_do_not_run_into_one_another() -> None:
    phases = (LrPhase("warmup", 0, 0), LrPhase("decay", 1, 999))
    charts = (ChartSeries("loss", (0, 999), (2.0, 1.0)),)
    report = replace(healthy_report(), charts=charts, lr_phases=phases)
    (figure,) = figures(report, ("loss",))
    assert "warmup" not in figure
    assert "decay" in figure


def test_a_notebook_shows_the_verdict_without_a_script() -> None:
    report = diverged_report()
    fragment = report._repr_html_()
    seen = read(fragment)
    assert "script" not in seen.tags
    assert seen.ids == []
    assert report.verdict.summary in seen.text
    assert all(said(step) in words(seen) for step in report.next_steps)
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


def test_a_fleet_names_the_folder_of_all_once() -> None:
    def names(*logs: str) -> tuple[list[str], str]:
        rows = tuple(FleetRow(log, "", "unreadable", error="cut") for log in logs)
        seen = read(fleet_page.render(Fleet("1", rows, (), 0), VIEW))
        return [row[0] for row in seen.rows[1:]], words(seen)

    short, shown = names("s3://b/runs/one/a.csv", "s3://b/runs/two/a.csv", "s3://b/runs/a.csv")
    assert short == ["one/a.csv", "two/a.csv", "a.csv"]
    assert "Names are paths within s3://b/runs/." in shown
    for logs in (("runs/a.csv",), ("a.csv", "b.csv"), ("/x/a.csv", "x/a.csv")):
        assert names(*logs)[0] == list(logs)


ON_PAGE = ("text", "dim", "link", "good", "warn", "bad", "info")
PAIRS = [
    *((name, "page", 4.5) for name in ON_PAGE),
    *((name, "panel", 4.5) for name in ("text", "dim", "link")),
    *((name, f"{name}-fill", 4.5) for name in ("good", "warn", "bad", "info")),
    ("text", "warn-fill", 4.5),
    ("cell", "bad", 3.0),
    *((name, "page", 3.0) for name in ("line", "second")),
]


def schemes() -> list[dict[str, str]]:
    """The colours of the page: in light, in dark over light, in print over light."""
    blocks = re.findall(r":root \{([^}]*)\}", asset("page.css"))
    found = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    return [found[0], found[0] | found[1], found[0] | found[2]]


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark", "print"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS)
def test_colours_are_legible(scheme: dict[str, str], front: str, back: str, least: float) -> None:
    """WCAG 2.1, 1.4.3 and 1.4.11: contrast of text at least 4.5, of graphics at least 3."""

    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(scheme[front]), luminance(scheme[back])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= least
