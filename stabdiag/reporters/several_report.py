"""The pages and the JSON of `compare` and `seeds`."""

from __future__ import annotations

from collections.abc import Mapping

from stabdiag.comparison import Change, Comparison, Judgement, Outcome, Seed, Seeds, SeedsOutcome
from stabdiag.findings import RunInfo
from stabdiag.reporters.blocks import (
    Block,
    Labelled,
    Paragraph,
    Span,
    Table,
    Tone,
    Words,
    prose,
    words,
)
from stabdiag.reporters.first_screen import HEALTH_TONES, cause_name, numbered
from stabdiag.reporters.json_report import document, run_info
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.numbers import number, percent
from stabdiag.reporters.sections import section
from stabdiag.reporters.view import View

_OUTCOMES: Mapping[Outcome, Tone] = {
    "identical": "good",
    "same": "good",
    "better": "good",
    "worse": "bad",
    "mixed": "warn",
    "unknown": "warn",
}
_JUDGEMENTS: Mapping[Judgement, Tone] = {
    "better": "good",
    "worse": "bad",
    "changed": "warn",
    "same": "plain",
    "unknown": "dim",
}
_PATTERNS: Mapping[SeedsOutcome, Tone] = {
    "systematic": "bad",
    "stochastic": "warn",
    "data_tied": "bad",
    "healthy": "good",
}


def comparison_json(seen: Comparison, view: View) -> str:
    """Return the comparison as one strict JSON document (compare.schema.json)."""
    body = {k: v for k, v in vars(seen).items() if k not in ("version", "base", "candidate")}
    runs = {"base": run_info(seen.base), "candidate": run_info(seen.candidate)}
    return document(seen.version, {"part": "compare"} | runs | body)


def seeds_json(seen: Seeds, view: View) -> str:
    """Return what the seeds show as one strict JSON document (seeds.schema.json)."""
    body = {k: v for k, v in vars(seen).items() if k != "version"}
    return document(seen.version, {"part": "seeds"} | body)


def comparison_text(seen: Comparison, view: View) -> str:
    """Return the page: the answer, where they part, then each thing compared."""
    outcome = Span(seen.outcome.upper(), _OUTCOMES[seen.outcome])
    answers = (
        ("base", words(_described(seen.base, seen.verdicts[0].health))),
        ("candidate", words(_described(seen.candidate, seen.verdicts[1].health))),
        ("compared", words(_span(seen))),
        ("parted", words(_parted(seen))),
        ("noise", words(seen.noise)),
        ("new", words(", ".join(seen.new_findings))),
        ("gone", words(", ".join(seen.gone_findings))),
    )
    blocks: tuple[Block, ...] = (
        Paragraph(words(Span(f"stabdiag {seen.version}", "dim"), "  compare")),
        Labelled(((words(outcome), prose(seen.summary, "strong")),)),
        Labelled(_rows(answers)),
        *section("Compared", (_changes(seen.changes),)),
        *section("Notes", _notes(seen.notes)),
    )
    return laid_out(blocks, view)


def _described(run: RunInfo, health: str) -> str:
    name = f", run {run.name}" if run.siblings else ""
    return f"{', '.join(run.files)}{name}: steps {run.first_step} to {run.last_step}, {health}"


def _span(seen: Comparison) -> str:
    if seen.steps is None:
        return "no common steps of the loss"
    return f"common steps {seen.steps[0]} to {seen.steps[1]}"


def _parted(seen: Comparison) -> str:
    if seen.parting is None:
        return ""
    first, last = seen.parting.first_step, seen.parting.last_step
    if seen.parting.exact:
        return f"at step {first}: equal to the last digit before it"
    return f"for good between steps {first} and {last}"


def _changes(changes: tuple[Change, ...]) -> Table:
    rows = tuple(
        (
            words(Span(change.judgement, _JUDGEMENTS[change.judgement])),
            words(Span(change.name, "strong")),
            words(number(change.base)),
            words(number(change.candidate)),
            words(change.text),
        )
        for change in changes
    )
    return Table(("judged", "what", "base", "candidate", "how"), rows, right=(2, 3), narrowest=12)


def seeds_text(seen: Seeds, view: View) -> str:
    """Return the page: the pattern, how sure so many seeds can make it, then seed by seed."""
    word = seen.outcome.replace("_", " ").upper()
    answers = (("shows", prose(seen.shows)),)
    rows = tuple(map(_seed, seen.runs))
    names = ("seed", "health", "cause", "sure", "onset", "layers")
    blocks: tuple[Block, ...] = (
        Paragraph(words(Span(f"stabdiag {seen.version}", "dim"), f"  {len(seen.runs)} seeds")),
        Labelled(((words(Span(word, _PATTERNS[seen.outcome])), prose(seen.summary, "strong")),)),
        Labelled(_rows(answers)),
        *section("Do this next", numbered(seen.next_steps)),
        *section("Seed by seed", (Table(names, rows, right=(3, 4), narrowest=10),)),
        *section("Notes", _notes((*_later(seen.runs), *seen.notes))),
    )
    return laid_out(blocks, view)


def _seed(seed: Seed) -> tuple[Words, ...]:
    verdict = seed.verdict
    return (
        words(Span(f"{seed.log} {seed.run}".strip(), "strong")),
        words(Span(verdict.health, HEALTH_TONES[verdict.health])),
        words(cause_name(verdict.cause)),
        words(percent(verdict.probability)),
        words("-" if verdict.onset_step is None else str(verdict.onset_step)),
        words(", ".join(verdict.layers[:2]) or "-"),
    )


def _later(runs: tuple[Seed, ...]) -> tuple[str, ...]:
    return tuple(f"{seed.log}: {seed.later}" for seed in runs if seed.later)


def _rows(answers: tuple[tuple[str, Words], ...]) -> tuple[tuple[Words, Words], ...]:
    return tuple(
        (words(Span(name, "dim")), text)
        for name, text in answers
        if any(span.text for span in text)
    )


def _notes(notes: tuple[str, ...]) -> tuple[Block, ...]:
    return (Labelled(tuple((words("-"), prose(note)) for note in notes)),) if notes else ()
