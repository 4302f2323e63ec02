"""An inspection made by hand: every field filled, with text that tries to break a page."""

from __future__ import annotations

from stabdiag.findings import Finding, Severity
from stabdiag.inspection import (
    BatchInspection,
    DataInfo,
    Measure,
    RankedSequence,
    Statistic,
)
from tests.reporters.make_report import diverged_report

HOSTILE_TEXT = "\x1b]0;title\x07 [bold]<b>once</b>[/bold] \u202e upon a time " * 4


def inspection() -> BatchInspection:
    """Return a batch of three sequences, two of them unusual."""
    return BatchInspection(
        version="0.1.0",
        run=diverged_report().run,
        step=700,
        why="the grad norm leaves its course at step 700; it was computed on this batch",
        indices="column 'sample_ids' lists the samples of each batch",
        ids=("5600", "5601", "9007199254740993"),
        size=3,
        data=DataInfo("corpus.jsonl", "JSON Lines", "a sample is a line", 80_000, "token"),
        ordinary_steps=(500, 600),
        ordinary_sequences=24,
        status="found",
        reason="2 of 3 sequences stand out; 24 ordinary sequences compared",
        statistics=(Statistic("token_entropy", 700, 1.1, 3.05, 15.0),),
        measures=(Measure("divergence", 0.21, 0.01, 40.0, True),),
        sequences=_sequences(),
        not_measured=("masked targets: the corpus has no labels",),
        findings=(
            Finding(
                "SD204",
                "unusual-sequence",
                Severity.WARNING,
                700,
                700,
                None,
                "1 of 3 sequences stands out from 24 ordinary ones",
                {"count": 1, "score": 28.6},
                "Look at the sequence.",
            ),
        ),
        to_log=("`sample_ids`: the list of the samples' places in the corpus, each step",),
        next_steps=("Replay the batch.", "stabdiag batch run.jsonl --step 699"),
        notes=("2 ids stand for several records; the first is taken",),
        thresholds={"SD201.min_score": 6.0, "SD204.min_score": 6.0},
    )


def _sequences() -> tuple[RankedSequence, ...]:
    usual = (
        Measure("repetition", 0.05, 0.06, -0.1, False),
        Measure("script", None, 0.0, None, False),
    )
    reasons = tuple(f"reason {place}" for place in range(1, 5))
    odd = (Measure("repetition", 0.97, 0.06, 28.6, True),)
    return (
        RankedSequence(1, "5601", 12_000, 28.6, reasons, odd, HOSTILE_TEXT),
        RankedSequence(2, "9007199254740993", 0, None, ("empty: no token",), (), ""),
        RankedSequence(3, "5600", 310, 0.1, (), usual, "once upon a time"),
    )
