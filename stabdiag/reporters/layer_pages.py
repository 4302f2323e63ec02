"""The pieces of step 4's page: the ranking, the layers over time and at a step, how to bisect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stabdiag.findings import LayerMoment, LayerPlan, LayerRank, Report
from stabdiag.reporters.blocks import (
    Block,
    Drawing,
    Heading,
    Labelled,
    Paragraph,
    Span,
    Table,
    Words,
    prose,
    words,
)
from stabdiag.reporters.first_screen import actions
from stabdiag.reporters.heat_chart import heat_chart
from stabdiag.reporters.layer_names import labels
from stabdiag.reporters.numbers import count, number, times
from stabdiag.reporters.sections import section
from stabdiag.reporters.untrusted import printable
from stabdiag.reporters.view import View

_SHOWN = 12
_NARROW = 60  # columns of the terminal below which the table says less
_MOSTLY = 0.5  # of the time
_HERE = ("stabdiag layers ", "Smallest part to reproduce it with")  # what the page itself says


def layers_page(report: Report, view: View) -> tuple[Block, ...]:
    """The ranking, the layers over time and at the step asked for, how to bisect, what to do."""
    named = _named(report)
    steps = tuple(text for text in report.next_steps if not text.startswith(_HERE))
    return (
        *section("Layers", ranking(report, _SHOWN, view.width)),
        *_over_time(report, named, view),
        *moment_section(report.layer_moment),
        *plan_section(report.layer_plan),
        *(section("Do this next", actions(replace(report, next_steps=steps)))),
    )


def ranking(report: Report, shown: int, width: int = 80) -> tuple[Block, ...]:
    """Return the table of the first layers, and in words what makes those that are named stand out.

    In a terminal narrower than 60 columns the table keeps to what ranks a layer.
    """
    layers = report.layers
    if not layers:
        return ()
    label, without = labels([layer.layer for layer in layers])
    narrow = width < _NARROW
    rows = tuple(_row(layer, label[layer.layer], narrow) for layer in layers[:shown])
    names = ("layer", "role", "median", "peers", ">= 10x", "norm", "growth", "onset")
    keep = (0, 2, 4, 7) if narrow else tuple(range(len(names)))
    table = Table(
        tuple(names[i] for i in keep),
        rows,
        right=tuple(place for place, i in enumerate(keep) if i >= 2),
        narrowest=9,
        short=(0,),
    )
    below = []
    if len(layers) > shown:
        below.append(f" and {count(len(layers) - shown, 'layer')} more; `--format json` has all")
    below.append(f" {_legend(without, narrow)}")
    below += _remarks(layers, label)
    plan = report.layer_plan
    named = set(plan.block if plan is not None else report.verdict.layers)
    said = [one for one in layers[:shown] if one.why and one.layer in named]
    reasons = tuple(
        (words(f"{one.rank}."), prose(f"{label[one.layer]}: {one.why}")) for one in said
    )
    blocks: tuple[Block, ...] = (table, *((Labelled(reasons),) if reasons else ()))
    return (*blocks, *(Paragraph(prose(line, "dim")) for line in below))


def _row(layer: LayerRank, label: str, narrow: bool) -> tuple[Words, ...]:
    role = layer.role.replace("attention", "attn").replace("_", " ")
    cells = (
        words(Span(label, "strong")),
        words(role),
        words(times(layer.ratio_to_median)),
        words(times(layer.ratio_to_peers)),
        words(_share(layer.tenfold)),
        words(_share(layer.share)),
        words(times(layer.param_growth)),
        words("-" if layer.onset_step is None else str(layer.onset_step)),
    )
    return tuple(cells[i] for i in (0, 2, 4, 7)) if narrow else cells


def _legend(without: str, narrow: bool) -> str:
    names = f"{without}; " if without else ""
    if narrow:
        return (
            f"{names}median: gradient over the median layer's; >= 10x: share of the points at which it "
            "is 10 times its peers' or more"
        )
    return (
        f"{names}gradient over the median layer's and over its peers', share of the points at "
        "which that is 10 or more, usual share of the global norm's square, growth of the weights"
    )


def _remarks(layers: Sequence[LayerRank], label: Mapping[str, str]) -> list[str]:
    """Who left first; and who is large, but not out of proportion."""
    out = []
    left = [one.onset_step for one in layers if one.onset_step is not None]
    if left:
        step = min(left)
        first = [one for one in layers if one.onset_step == step]
        who = ", ".join(label[one.layer] for one in first[:3])
        who = who if len(first) <= 3 else f"{len(first)} layers together"
        out.append(f" first to leave: {who} at step {step}")
    large = [one for one in layers if (one.tenfold or 0.0) >= _MOSTLY]
    usual = [one for one in large if one.small or (one.consistent or 0.0) < _MOSTLY]
    if usual:
        who = ", ".join(label[one.layer] for one in usual[:3])
        more = f" and {len(usual) - 3} more" if len(usual) > 3 else ""
        out.append(
            f" 10 times its peers' most of the time, yet no more than layers of its kind reach in "
            f"healthy runs (embedding, head, first block, small tensors): {who}{more}"
        )
    return out


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _named(report: Report) -> tuple[str, ...]:
    """The layers that the verdict or the plan names."""
    block = report.layer_plan.block if report.layer_plan is not None else ()
    return tuple(dict.fromkeys((*report.verdict.layers, *block)))


def _over_time(report: Report, named: Sequence[str], view: View) -> tuple[Block, ...]:
    if not report.heat_maps:
        return ()
    drawn = heat_chart(report.heat_maps[0], named, report.verdict.onset_step, view)
    return section("Layers over time", drawn)


def moment_section(moment: LayerMoment | None) -> tuple[Block, ...]:
    """Return the layers at one step, the largest first; nothing where no step was asked for."""
    if moment is None:
        return ()
    label, without = labels(moment.layers)
    rows = tuple(
        (
            words(Span(label[layer], "strong")),
            words(number(value)),
            words(_share(share)),
            words(times(ratio)),
            words(times(usual)),
        )
        for layer, value, share, ratio, usual in list(
            zip(moment.layers, moment.value, moment.share, moment.ratio, moment.usual, strict=True)
        )[:_SHOWN]
    )
    names = ("layer", moment.metric, "norm", "of median", "usually")
    below = ["norm: share of the global norm's square at that step"]
    below += [without] if without else []
    if len(moment.layers) > _SHOWN:
        below.append(f"{count(len(moment.layers) - _SHOWN, 'layer')} more")
    bad = sum(not math.isfinite(value) for value in moment.value)
    if bad:
        below.append(f"{bad} of {count(len(moment.layers), 'layer')} not finite")
    said = []
    if moment.step != moment.asked:
        said.append(f" step {moment.step} is the last logged one up to {moment.asked}")
    said.append(f" {'; '.join(below)}")
    return (
        Heading(f"Layers at step {moment.step}"),
        Table(names, rows, right=(1, 2, 3, 4), narrowest=9, short=(0,)),
        *(Paragraph(prose(line, "dim")) for line in said),
    )


def plan_section(plan: LayerPlan | None) -> tuple[Block, ...]:
    """Return how to bisect: the block, the moves with what each tells, the code."""
    if plan is None:
        return ()
    rows: list[tuple[Words, Words]] = []
    if plan.block:
        span = plan.block[0]
        if len(plan.block) > 1:
            span = f"{span} to {plan.block[-1]} ({count(len(plan.block), 'layer')})"
        rows.append((words(Span("part", "dim")), words(Span(span, "strong"))))
    rows.append((words(Span("why", "dim")), words(plan.reason)))
    for place, move in enumerate(plan.moves, start=1):
        rows.append((words(f"{place}."), prose(move.do)))
        rows.append((words(), prose(move.tells, "dim")))
    if plan.runs:
        lead = "without the log's hint halving takes" if plan.block else "it takes"
        rows.append((words(Span("runs", "dim")), words(f"{lead} {count(plan.runs, 'run')}")))
    code = Drawing(tuple(f" {printable(line)}".rstrip() for line in plan.outline))
    return (
        Heading("Bisect it"),
        Labelled(tuple(rows)),
        *section("Minimal reproduction", (code,) if plan.outline else ()),
    )
