"""The page and the JSON of `batch`: the batch, its sequences ranked, what was not looked at."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from stabdiag.inspection import BatchInspection, Measure, RankedSequence
from stabdiag.reporters.blocks import (
    Blank,
    Block,
    Labelled,
    Paragraph,
    Span,
    Table,
    Words,
    prose,
    words,
)
from stabdiag.reporters.first_screen import log_header, numbered
from stabdiag.reporters.json_report import document, finding_records, run_info
from stabdiag.reporters.layout import laid_out
from stabdiag.reporters.numbers import count, number
from stabdiag.reporters.sections import STATUS_TONES, findings_section, section
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

_SHOWN_IDS = 8
_SHOWN_STEPS = 8
_SHOWN_REASONS = 3
_LEAST_EXCERPT, _BESIDE_EXCERPT = 20, 10  # columns of an excerpt; what stands beside it


def batch_json(seen: BatchInspection) -> str:
    """Return the inspection as one JSON document with a final newline."""
    body = {k: v for k, v in vars(seen).items() if k not in ("version", "run", "findings")}
    own = {"part": "batch", "run": run_info(seen.run), "batch": body}
    return document(seen.version, own | {"findings": finding_records(seen.findings)})


def batch_text(seen: BatchInspection, view: View, *, shown: int) -> str:
    """Return the page; `shown` sequences at most."""
    return laid_out(batch_page(seen, shown, view), view)


def batch_page(seen: BatchInspection, shown: int, view: View) -> tuple[Block, ...]:
    """Return the page as blocks."""
    return (
        Paragraph(log_header(seen.version, seen.run)),
        Blank(),
        Labelled(_answers(seen)),
        *section("Sequences, the most unusual first", _sequences(seen, shown, view)),
        *section("The batch as a whole", _measures(seen.measures)),
        *section("Batch statistics in the log", _statistics(seen)),
        *section("Findings", findings_section(seen.findings) if seen.findings else ()),
        *section("Not looked at", _lines(seen.not_measured)),
        *section("To see the batch, log", _lines(seen.to_log)),
        *section("Do this next", numbered(seen.next_steps)),
    )


def _answers(seen: BatchInspection) -> tuple[tuple[Words, Words], ...]:
    status = Span(f"{seen.status.upper():8}", STATUS_TONES[seen.status])
    rows: list[tuple[str, Words]] = []
    if seen.step is not None:
        rows.append(("step", words(Span(str(seen.step), "strong"), f", {seen.why}")))
    if seen.indices:
        rows.append(("indices", prose(seen.indices)))
    if seen.ids:
        size = f"{count(seen.size, 'sequence')}: " if seen.size else ""
        rows.append(("samples" if seen.size else "batch", words(f"{size}{_ids(seen)}")))
    if seen.data is not None:
        data = seen.data
        size = "" if data.sequences is None else f", {count(data.sequences, 'sample')}"
        rows.append(("corpus", words(f"{data.name}  ", Span(f"{data.kind}{size}", "dim"))))
        rows.append(("", words(Span(data.described, "dim"))))
        rows.append(("compared", words(_compared(seen))))
    rows += [("note", words(Span(note, "warn"))) for note in seen.notes]
    first = (
        words("2 ", status),
        words(Span("Examine the triggering batch", "strong"), ": ", *prose(seen.reason)),
    )
    return (first, *((words(Span(label, "dim")), text) for label, text in rows))


def _ids(seen: BatchInspection) -> str:
    more = f" and {len(seen.ids) - _SHOWN_IDS} more" if len(seen.ids) > _SHOWN_IDS else ""
    return ", ".join(seen.ids[:_SHOWN_IDS]) + more


def _compared(seen: BatchInspection) -> str:
    if not seen.ordinary_steps:
        return "no ordinary batch before it"
    steps = ", ".join(map(str, seen.ordinary_steps[:_SHOWN_STEPS]))
    more = len(seen.ordinary_steps) - _SHOWN_STEPS
    return (
        f"{count(seen.ordinary_sequences, 'ordinary sequence')} of "
        f"{'steps' if len(seen.ordinary_steps) > 1 else 'step'} {steps}"
        f"{f' and {more} more' if more > 0 else ''}"
    )


def _sequences(seen: BatchInspection, shown: int, view: View) -> tuple[Block, ...]:
    """Those that stand out in full; else the few that come nearest, by one line."""
    if not seen.sequences:
        return ()
    unit = seen.data.unit if seen.data is not None else "token"
    odd = [one for one in seen.sequences if one.reasons][:shown]
    rows: list[tuple[Words, Words]] = []
    for one in odd or seen.sequences[: min(shown, 3)]:
        score = f", score {number(one.score)}" if one.score is not None else ""
        rows.append(
            (
                words(Span(f"{one.rank}.", "strong")),
                words(Span(one.id, "strong"), f"  {count(one.length, unit)}{score}"),
            )
        )
        rows += [(words(), words(Span(text, "warn"))) for text in one.reasons[:_SHOWN_REASONS]]
        if len(one.reasons) > _SHOWN_REASONS:
            others = count(len(one.reasons) - _SHOWN_REASONS, "more reason")
            rows.append((words(), prose(f"and {others}; `--format json` has them", "dim")))
        if not one.reasons:
            rows.append((words(), words(_nearest(one))))
        if one.excerpt:
            rows.append((words(), words(Span(_line(one.excerpt, view), "dim", whole=True))))
    more = sum(bool(one.reasons) for one in seen.sequences) - len(odd)
    if more > 0:
        text = f"and {more:,} more that stand out; `--top N` or `--format json` shows them"
        rows.append((words(), prose(text, "dim")))
    return (Labelled(tuple(rows)),)


def _line(excerpt: str, view: View) -> str:
    """An excerpt of untrusted text made harmless and cut to one line of the page."""
    line = Text(printable(excerpt))
    line.truncate(max(_LEAST_EXCERPT, view.width - _BESIDE_EXCERPT), overflow="ellipsis")
    return f"“{line.plain}”"


def _nearest(one: RankedSequence) -> str:
    known = [m for m in one.measures if m.score is not None]
    if not known:
        return "not judged"
    most = max(known, key=lambda m: abs(m.score or 0.0))
    return f"nothing unusual; farthest in {most.name}: {number(most.value)}, usual is {number(most.usual)}"


def _measures(measures: Sequence[Measure]) -> tuple[Block, ...]:
    if not measures:
        return ()
    rows = tuple(
        (
            words(one.name),
            words(number(one.value)),
            words(number(one.usual)),
            words(Span(number(one.score), "bad" if one.unusual else "plain")),
            words(Span("unusual", "bad") if one.unusual else "as usual"),
        )
        for one in measures
    )
    return (Table(("measure", "mean", "usual", "score", "judged"), rows, right=(1, 2, 3)),)


def _statistics(seen: BatchInspection) -> tuple[Block, ...]:
    if not seen.statistics:
        return ()
    limit = seen.thresholds.get("SD201.min_score", float("inf"))
    rows = tuple(
        (
            words(one.name),
            words(str(one.step)),
            words(number(one.value)),
            words(number(one.usual)),
            words(Span(number(one.score), "bad" if one.score >= limit else "plain")),
            words(Span("unusual", "bad") if one.score >= limit else "as usual"),
        )
        for one in seen.statistics
    )
    names = ("statistic", "step", "value", "usual", "score", "judged")
    return (Table(names, rows, right=(1, 2, 3, 4)),)


def _lines(lines: Sequence[str]) -> tuple[Block, ...]:
    return (Labelled(tuple((words("-"), prose(line)) for line in lines)),) if lines else ()
