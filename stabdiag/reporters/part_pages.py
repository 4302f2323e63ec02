"""The pages of `timeline`, `numerics`, `layers` and `audit`: one share of the report each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stabdiag.findings import Episode, Report
from stabdiag.reporters.blocks import (
    Blank,
    Block,
    Drawing,
    Heading,
    Labelled,
    Paragraph,
    Span,
    Table,
    Tone,
    Words,
    prose,
    words,
)
from stabdiag.reporters.chart_pages import chart_section, drawing
from stabdiag.reporters.first_screen import (
    episode_kind,
    handbook_reading,
    header,
    lead,
)
from stabdiag.reporters.layer_pages import layers_page
from stabdiag.reporters.numbers import number, times
from stabdiag.reporters.sections import (
    findings_section,
    monitoring_section,
    notes_section,
    section,
    steps_section,
)
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import PARTS, View, findings_of, workflow_of
from stabdiag.rules.monitoring import AUDIT_SCORED

_DRAWN = ("loss", "grad_norm", "lr", "loss_scale")


def part_page(report: Report, part: str, view: View) -> tuple[Block, ...]:
    """Return the blocks of one part: its step, what belongs to it, its findings."""
    spec = PARTS[part]
    findings = [report.findings[index] for index in findings_of(report, spec)]
    steps = steps_section(report, workflow_of(report, spec))
    return (
        Paragraph(header(report)),
        *((Blank(), *steps) if steps else ()),
        *_BODIES[part](report, view),
        *section("Findings", findings_section(findings)),
        *section("Notes on the log", notes_section(report)),
    )


def _timeline(report: Report, view: View) -> tuple[Block, ...]:
    return (
        *chart_section(report, _DRAWN, view),
        *section("Events", _events(report)),
        *spike_score_section(report),
    )


def _events(report: Report) -> tuple[Block, ...]:
    """The episodes in order of step, then what the handbook's rule reads from each."""
    if not report.episodes:
        return (Paragraph(words(" none")),)
    rows = tuple(_event(place, episode) for place, episode in enumerate(report.episodes, start=1))
    names = ("event", "steps", "what", "series", "size", "score", "lead", "recovery", "lost")
    readings = tuple(
        (words(f"{place}"), prose(handbook_reading(episode)))
        for place, episode in enumerate(report.episodes, start=1)
    )
    return (
        Table(names, rows, right=(4, 5, 6, 8), narrowest=9),
        Heading("What the handbook's rule reads"),
        Labelled(readings),
    )


def spike_score_section(report: Report) -> tuple[Block, ...]:
    """Return the OLMo 2 spike score: a headline that runs are compared by."""
    score = report.spike_score
    shares = [
        f"{name} {number(100 * share, 2)} %"
        for name in ("loss", "grad_norm")
        if (share := score.get(name)) is not None
    ]
    off = f"of the points {number(score.get('deviations'))} standard deviations off"
    text = f"{', '.join(shares)} {off}" if shares else str(score.get("note", ""))
    label = words(Span("OLMo 2", "dim"))
    return (Heading("Spike score"), Labelled(((label, words(text)),))) if text else ()


def _event(place: int, episode: Episode) -> tuple[Words, ...]:
    last = "" if episode.end_step in (None, episode.onset_step) else f" to {episode.end_step}"
    onsets = {"grad_norm": episode.grad_onset_step, "loss": episode.loss_onset_step}
    series = ", ".join(name for name, onset in onsets.items() if onset is not None)
    return (
        words(Span(str(place), "strong")),
        words(f"{episode.onset_step}{last}"),
        words(episode_kind(episode)),
        words(series),
        words(times(episode.ratio)),
        words(number(episode.score)),
        words(lead(episode)),
        words(episode.recovery),
        words(number(episode.steps_lost)),
    )


def _numerics(report: Report, view: View) -> tuple[Block, ...]:
    """Points that are not finite, series by series."""
    rows = tuple(
        (
            words(Span(name, "strong")),
            words(info.column),
            words(number(info.points)),
            words(Span(number(info.non_finite), "bad" if info.non_finite else "plain")),
        )
        for name, info in report.run.series.items()
    )
    table = Table(("series", "column", "points", "not finite"), rows, right=(2, 3))
    drawn = drawing(report, ("grad_norm", "loss_scale"), view)
    return (*section("Chart", drawn), Heading("Series"), table)


def _audit(report: Report, view: View) -> tuple[Block, ...]:
    """The score, each metric with what is asked and found, what the gaps cost, what to add."""
    audit = report.audit
    if audit is None:
        return section("Minimum monitoring", monitoring_section(report.monitoring))
    there = sum(item.status == "ok" for item in audit.items)
    tone: Tone = "good" if there == len(audit.items) else "warn"
    answer = f"{there} of {len(audit.items)} metrics as they should be logged"
    rows = tuple(
        (
            words(Span(item.status.replace("_", " ").upper(), "good" if not item.cost else "warn")),
            words(Span(item.metric, "strong")),
            words(item.asked),
            words(item.found),
            words(f"{number(item.points)} of {number(item.of)}"),
        )
        for item in audit.items
    )
    names = ("", "metric", "asked", "found", "points")
    costs = tuple((words(Span(i.metric, "strong")), prose(i.cost)) for i in audit.items if i.cost)
    lines = audit.lines.get(audit.framework, ())
    return (
        Blank(),
        Labelled(
            (
                (words(Span(f"SCORE {audit.score}", tone)), prose(answer, "strong")),
                (words(""), prose(AUDIT_SCORED)),
            )
        ),
        *section("Minimum monitoring", (Table(names, rows, right=(4,), narrowest=10),)),
        *section("What the gaps cost", (Labelled(costs),) if costs else ()),
        *section(f"Lines to add, {FRAMEWORKS[audit.framework]}", _code(lines, _OTHER)),
    )


FRAMEWORKS = {
    "pytorch": "plain PyTorch",
    "hf": "Hugging Face Trainer",
    "lightning": "PyTorch Lightning",
}


_OTHER = "`--for pytorch|hf|lightning` shows them for another framework"


def _code(lines: tuple[str, ...], below: str) -> tuple[Block, ...]:
    """Lines to paste, as they are."""
    if not lines:
        return ()
    drawn = Drawing(tuple(f" {printable(line)}" for line in lines))
    return (drawn, Blank(), Paragraph(prose(f" {below}"))) if below else (drawn,)


_BODIES: Mapping[str, Callable[[Report, View], tuple[Block, ...]]] = {
    "timeline": _timeline,
    "numerics": _numerics,
    "layers": layers_page,
    "audit": _audit,
}
