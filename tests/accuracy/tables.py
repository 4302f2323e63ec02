"""The scores as text tables for a terminal of 80 to 100 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.accuracy.incidents import IncidentResult
from tests.accuracy.scoring import Group, Judged, Measure, Scores
from tests.accuracy.shares import Share

MARKS = {True: "yes", False: "NO", None: "-"}


def show_scores(
    console: Console, scores: Scores, baselines: Mapping[str, Scores], *, runs: int
) -> None:
    """Print every measure, then the same for the baselines, then where the answers are weak."""
    console.print(_measure_table(f"{runs} labelled runs, with 95 % intervals (Wilson)", scores))
    if baselines:
        console.print(_baseline_table(baselines))
        console.print(_BASELINE_KEY, markup=False)
    for title, groups in scores.groups.items():
        console.print(_group_table(title, groups))


_BASELINE_KEY = (
    "Plain rule: NaN at the first loss spike: overflow; grad norm spiked before: optimizer; else: "
    "data.\nA: mean/std z 3, B: z 6, over 50 points; C: median/MAD z 6 over 100; ': the largest "
    "spike.\nProbability: for each the constant that fits best, its own hit rate.\n"
)


def _measure_table(title: str, scores: Scores) -> Table:
    table = _table(title)
    table.add_column("measure")
    for heading in ("of", "share", "95 %"):
        table.add_column(heading, justify="right")
    for measure in scores.measures:
        if measure.share is None:
            table.add_row(measure.name, str(measure.n), _number(measure.number), "")
        else:
            table.add_row(measure.name, *_share_cells(measure.share))
    table.add_section()
    for cause, hits in scores.recall.items():
        table.add_row(f"recall {cause}", *_share_cells(hits))
    return table


def _share_cells(hits: Share) -> tuple[str, str, str]:
    return f"{hits.hits}/{hits.n}", _number(hits.value), _interval(hits)


def _baseline_table(baselines: Mapping[str, Scores]) -> Table:
    table = _table("The plain rule on the same runs: share, and its 95 % interval")
    table.add_column("measure")
    for name in baselines:
        table.add_column(name, justify="right")
    columns = [_all_measures(scores) for scores in baselines.values()]
    for row in zip(*columns, strict=True):
        table.add_row(row[0].name, *(_baseline_cell(measure) for measure in row))
    return table


def _all_measures(scores: Scores) -> list[Measure]:
    recalls = [Measure(f"recall {cause}", hits) for cause, hits in scores.recall.items()]
    return [*scores.measures, *recalls]


def _baseline_cell(measure: Measure) -> str:
    if measure.share is None:
        return _number(measure.number)
    if measure.share.n == 0:
        return "-"
    return f"{_number(measure.share.value)} {_interval(measure.share)}"


def _group_table(title: str, groups: Sequence[Group]) -> Table:
    table = _table(f"Cause right by {title}")
    table.add_column(title, no_wrap=True, overflow="ellipsis")
    for heading in ("all", "share", "95 %", "faulty", "share", "95 %", "inconcl."):
        table.add_column(heading, justify="right")
    for group in groups:
        table.add_row(
            group.name,
            *_share_cells(group.right),
            *(_share_cells(group.right_faulty) if group.right_faulty.n else ("", "", "")),
            str(group.inconclusive.hits),
        )
    return table


def show_wrong(console: Console, judged: Sequence[Judged]) -> None:
    """Print one line for each run whose cause is wrong: what was expected, what was said."""
    table = _table("Wrong cause")
    for heading in ("file", "fault", "expected", "said"):
        table.add_column(heading, overflow="fold")
    for heading in ("p", "onset", "true"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in judged:
        if run.right:
            continue
        answer, label = run.answer, run.label
        table.add_row(
            label.path.name,
            label.fault,
            "/".join((label.cause, *label.acceptable)),
            answer.cause,
            "" if answer.probability is None else _number(answer.probability),
            _step(answer.onset_step),
            _step(label.onset_step),
        )
    console.print(table)
    for run in judged:
        if run.answer.error:
            console.print(Text(f"{run.label.path.name}: {run.answer.error}"))


def show_incidents(console: Console, results: Sequence[IncidentResult]) -> None:
    """Print one line an incident, then each statement that must not be made."""
    table = _table("Reported incidents")
    table.add_column("log", overflow="fold")
    for heading in ("said", "expected"):
        table.add_column(heading, overflow="fold")
    for heading in ("cause", "refuted", "health", "onset", "at", "loss on.", "layer", "must not"):
        table.add_column(heading, justify="right", no_wrap=heading == "at")
    for result in results:
        checked = [sentence for sentence in result.must_not if sentence.kept is not None]
        table.add_row(
            result.name.rpartition(".")[0],
            result.said,
            result.expected,
            MARKS[result.cause_right],
            "REFUTED" if result.cause_refuted else "no",
            MARKS[result.health_right],
            MARKS[result.onset_right],
            _step(result.onset_step),
            MARKS[result.loss_onset_right],
            MARKS[result.layer_right],
            f"{sum(bool(sentence.kept) for sentence in checked)}/{len(checked)}",
        )
    console.print(table)
    for result in results:
        for sentence in result.must_not:
            if not sentence.kept:
                what = "not checked" if sentence.kept is None else "SAID"
                console.print(Text(f"{what}: {result.name}: {sentence.text}"))


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE, pad_edge=False
    )


def _number(value: float) -> str:
    """Two decimals; a share without its leading zero."""
    if math.isnan(value):
        return "-"
    text = f"{value:.2f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def _interval(hits: Share) -> str:
    if not hits.n:
        return ""
    low, high = hits.interval
    return f"{_number(low)}-{_number(high)}"


def _step(step: int | None) -> str:
    return "-" if step is None else str(step)
