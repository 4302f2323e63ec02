"""The terminal report: answers first, never too wide, nothing from the log is obeyed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from stabdiag.findings import CauseRank, Check, Report, Severity, Verdict
from stabdiag.reporters import PARTS, View, render, render_part
from stabdiag.reporters.untrusted import printable
from tests.reporters.make_report import (
    HOSTILE_LAYER,
    diverged_report,
    healthy_report,
    inconclusive_report,
)

REPORTS = [diverged_report(), healthy_report(), inconclusive_report()]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def text(report: Report, view: View | None = None) -> str:
    return render(report, "text", view or View())


def pages(report: Report, view: View) -> list[str]:
    return [text(report, view), *(render_part(report, "text", part, view) for part in PARTS)]


def test_the_first_screen_answers_everything() -> None:
    screen = "\n".join(text(diverged_report()).splitlines()[:24])
    for answer in [
        "DIVERGED",
        "The learning rate rose 10x",
        "step 700",
        "layers.3.attn.out_proj.weight",
        "optimizer, 91 % sure",
        "overflow 5 %",
        "+4.0 the learning rate rose 10x",
        "the scheduler state was lost",
        "optimizer issue (the grad norm left its range",
        "skipped: 2 batch",
        "`stabdiag batch gpt-small.jsonl --step 699`",
        "Resume from a checkpoint at or before step 690.",
    ]:
        assert answer in screen


def test_a_healthy_run_is_said_to_be_so_with_what_was_not_checked() -> None:
    page = text(healthy_report())
    assert " HEALTHY  Nothing is wrong" in page
    assert "no fault found, 97 % sure" in page
    assert "4 of 5 steps; skipped: 2 batch" in page


def test_an_inconclusive_run_names_what_would_settle_it() -> None:
    screen = text(inconclusive_report())
    assert "the log can't tell; best guesses: optimizer 30 %, data 25 %" in screen
    assert "log the gradient norm before clipping" in screen
    assert "skipped: 1 timeline, 2 batch, 3 numerics, 4 layers, 5 initialization" in " ".join(
        screen.split()
    )


def test_where_the_verdict_differs_from_the_handbook_it_is_said() -> None:
    report = diverged_report()
    verdict = replace(report.verdict, handbook="the LR step outweighs the missing lead")
    page = text(replace(report, verdict=verdict))
    assert "handbook the LR step outweighs the missing lead" in " ".join(page.split())


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int, ascii_only: bool) -> None:
    for page in pages(report, View(width=width, ascii_only=ascii_only)):
        for line in page.splitlines():
            assert cell_len(line) <= width, line
            assert line == line.rstrip()


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_colour_carries_nothing_alone(report: Report) -> None:
    for plain, colored in zip(pages(report, View()), pages(report, View(color=True)), strict=True):
        assert "\x1b[" not in plain
        assert "\x1b[" in colored
        assert ANSI.sub("", colored) == plain


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.verdict.health)
def test_ascii_pages_are_ascii(report: Report) -> None:
    for page in pages(report, View(ascii_only=True)):
        assert page.isascii()


def test_markup_and_escapes_of_a_log_are_shown_not_obeyed() -> None:
    for page in pages(diverged_report(), View(width=132)):
        assert "\x1b" not in page
        assert "\x07" not in page
    assert r"layers[bias].\x1b[31mred\x07" in text(diverged_report(), View(width=132))
    assert HOSTILE_LAYER not in text(diverged_report(), View(width=132))


@given(st.text(min_size=1, max_size=80))
@settings(max_examples=60, deadline=None)
def test_any_name_makes_a_page_of_the_right_width(name: str) -> None:
    report = diverged_report()
    layers = (replace(report.layers[0], layer=name),)
    report = replace(report, layers=layers, verdict=replace(report.verdict, layers=(name,)))
    for width in (40, 80):
        for line in text(report, View(width=width)).splitlines():
            assert cell_len(line) <= width
            assert line.isprintable()


@given(st.text())
def test_printable_text_has_no_character_that_a_terminal_obeys(name: str) -> None:
    safe = printable(name)
    assert all(char.isprintable() or char.isspace() for char in safe)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", safe)
    safe.encode("utf-8")


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("plain name", "plain name"),
        ("größe_loss", "größe_loss"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202edef", r"abc\u202edef"),
        ("\ud800", r"\ud800"),
    ],
)
def test_printable(raw: str, safe: str) -> None:
    assert printable(raw) == safe


def test_a_command_is_not_broken_over_lines() -> None:
    command = "`stabdiag batch gpt-small.jsonl --step 699`"
    assert any(command in line for line in text(diverged_report()).splitlines())


def test_findings_come_by_severity() -> None:
    page = text(diverged_report()).partition("Findings")[2].partition("Evidence")[0]
    words = re.findall(r"ERROR|WARNING|INFO", page)
    assert words == ["ERROR", "ERROR", "WARNING", "INFO", "INFO"]
    assert len(words) == len(diverged_report().findings)
    assert {severity.name for severity in Severity} == set(words)


def test_many_findings_of_one_rule_do_not_fill_the_page() -> None:
    report = diverged_report()
    many = tuple(replace(report.findings[0], step=at, last_step=at) for at in range(40))
    page = text(replace(report, findings=(*report.findings[:4], *many)))
    assert page.count("SD103 grad-norm-spike") == 3
    assert "and 38 more of SD103; `--format json` lists them all" in page


def test_evidence_against_is_shown_with_its_sign() -> None:
    page = text(diverged_report())
    assert "-0.2  no lone grad steps before" in page


def test_causes_without_evidence_stand_in_one_line() -> None:
    assert "others  data 2 %; below 1 %: healthy" in text(diverged_report())
    assert "no evidence moved any  healthy 97 %; data 2 %" in text(healthy_report())


def test_checks_not_made_are_named() -> None:
    checks = (Check("loss scale", "not_made", "no such column"),)
    assert "NOT MADE  loss scale: no such column" in text(replace(healthy_report(), checks=checks))


def test_several_files_and_a_named_run_are_in_the_header() -> None:
    report = healthy_report()
    run = replace(report.run, files=("a.csv", "b.csv"), siblings=("x", "gpt-small"), axis="epoch")
    header = text(replace(report, run=run), View(width=100)).splitlines()[0]
    assert "a.csv and 1 more" in header
    assert "epochs 0 to 1999" in header
    assert "run gpt-small" in header


def test_a_report_of_nothing_still_makes_a_page() -> None:
    report = inconclusive_report()
    verdict: Verdict = replace(report.verdict, settle=(), summary="")
    bare = replace(
        report,
        verdict=verdict,
        causes=(CauseRank("inconclusive", 1.0, ()),),
        monitoring=(),
        checks=(),
        next_steps=(),
        workflow=(),
    )
    for page in pages(bare, View()):
        assert page.startswith("stabdiag 0.1.0  runs/gpt-small.jsonl")
