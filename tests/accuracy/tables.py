"""The scores as text tables for a terminal of 80 to 100 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.accuracy.answers import Answer
from tests.accuracy.incidents import IncidentResult
from tests.accuracy.scoring import Group, Judged, Measure, Scores
from tests.accuracy.shares import Share, share

MARKS = {True: "yes", False: "NO"}


def show_scores(
    console: Console, scores: Scores, baselines: Mapping[str, Scores], *, runs: int
) -> None:
    """Print every measure, then the same for the baselines, then where the answers are weak."""
    console.print(_measure_table(f"{runs} labelled runs, with 95 % intervals (Wilson)", scores))
    if baselines:
        for title, names in (("first", "A B C"), ("largest", "A' B' C'")):
            chosen = {name: baselines[name] for name in names.split()}
            console.print(_baseline_table(f"The plain rule from the {title} loss spike", chosen))
        console.print(_BASELINE_KEY, markup=False)
    for title, groups in scores.groups.items():
        console.print(_group_table(title, groups))


_BASELINE_KEY = (
    "A: mean/std of 50 points, z 3. B: z 6. C: median/MAD of 100 points, z 6.\n"
    "NaN at the spike or soon after: overflow; grad norm first: optimizer; else data.\n"
    "The probability of each is the constant that fits best: its own hit rate.\n"
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


def _baseline_table(title: str, baselines: Mapping[str, Scores]) -> Table:
    table = _table(title)
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
    return _number(measure.number) if measure.share is None else _share_cell(measure.share)


def _share_cell(hits: Share) -> str:
    return f"{_number(hits.value)} {_interval(hits)}" if hits.n else "-"


def _group_table(title: str, groups: Sequence[Group]) -> Table:
    table = _table(f"Cause right by {title}")
    table.add_column(title, no_wrap=True)
    for heading in ("all", "share 95 %", "faulty", "share 95 %", "inconcl."):
        table.add_column(heading, justify="right")
    for group in groups:
        faulty = group.right_faulty
        table.add_row(
            group.name,
            f"{group.right.hits}/{group.right.n}",
            _share_cell(group.right),
            f"{faulty.hits}/{faulty.n}" if faulty.n else "",
            _share_cell(faulty) if faulty.n else "",
            str(group.inconclusive.hits),
        )
    return table


def show_wrong(console: Console, judged: Sequence[Judged]) -> None:
    """Print one line for each run whose cause is wrong: what was expected, what was said."""
    console.print(Text("Wrong cause", "bold"))
    for run in judged:
        if run.right:
            continue
        answer, label = run.answer, run.label
        line = (
            f"{label.path.name} {label.fault}: {'/'.join((label.cause, *label.acceptable))}, "
            f"said {_said(answer)}, onset {_step(answer.onset_step)} for {_step(label.onset_step)}"
        )
        console.print(Text(line), soft_wrap=True)
    console.print()


def show_failed(console: Console, judged: Sequence[Judged]) -> None:
    """Print one line for each run that gave no report, with the reason."""
    for run in judged:
        if run.answer.error:
            line = f"no report: {run.label.path.name}: {run.answer.error}"
            console.print(Text(line), soft_wrap=True)


def show_incidents(console: Console, results: Sequence[IncidentResult]) -> None:
    """Print each incident, and each statement that was made but must not be."""
    console.print(Text("Reported incidents", "bold"))
    for result in results:
        console.print(Text(f"  {result.name}"))
        said = f"    said {result.said}, expected {result.expected}: {_points_of(result)}"
        console.print(Text(said), soft_wrap=True)
        for sentence in result.must_not:
            if not sentence.kept:
                what = "not checked" if sentence.kept is None else "SAID"
                console.print(Text(f"    {what}: {sentence.text}"), soft_wrap=True)
        if result.error:
            console.print(Text(f"    no report: {result.error}"), soft_wrap=True)
    console.print(Text(f"  together: {_incident_totals(results)}"), soft_wrap=True)


def _incident_totals(results: Sequence[IncidentResult]) -> str:
    marks: dict[str, list[bool | None]] = {
        "cause": [result.cause_right for result in results],
        "refuted": [result.cause_refuted for result in results],
        "health": [result.health_right for result in results],
        "onset": [result.onset_right for result in results],
        "loss onset": [result.loss_onset_right for result in results],
        "layer": [result.layer_right for result in results],
        "forbidden statements left unsaid": [
            sentence.kept for result in results for sentence in result.must_not
        ],
    }
    totals = {
        name: share(mark for mark in column if mark is not None) for name, column in marks.items()
    }
    return ", ".join(f"{name} {hits.hits}/{hits.n}" for name, hits in totals.items())


def _points_of(result: IncidentResult) -> str:
    """What is right and what is not, leaving out what the expectation doesn't speak of."""
    onset = f"onset ({_step(result.onset_step)})"
    points = {
        "cause": result.cause_right,
        "health": result.health_right,
        onset: result.onset_right,
        "loss onset": result.loss_onset_right,
        "layer": result.layer_right,
    }
    told = [f"{name} {MARKS[mark]}" for name, mark in points.items() if mark is not None]
    return ", ".join([*told, *(["REFUTED"] if result.cause_refuted else [])])


def _said(answer: Answer) -> str:
    return answer.cause + ("" if answer.probability is None else f" {_number(answer.probability)}")


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE, pad_edge=False
    )


def _number(value: float) -> str:
    """Two decimals, a share without its leading zero; a full share is 1.0, to keep cells short."""
    if math.isnan(value):
        return "-"
    text = f"{value:.2f}"
    if text == "1.00":
        return "1.0"
    return text.removeprefix("0") if text.startswith("0.") else text


def _interval(hits: Share) -> str:
    if not hits.n:
        return ""
    low, high = hits.interval
    return f"{_number(low)}-{_number(high)}"


def _step(step: int | None) -> str:
    return "-" if step is None else str(step)
