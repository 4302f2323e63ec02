"""The diagnosis: the five steps in order, then the attribution, then the Report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stabdiag import __version__
from stabdiag.causes.ledger import attribute
from stabdiag.causes.signs import Sign
from stabdiag.errors import InputError
from stabdiag.findings import (
    Episode,
    Finding,
    Report,
    RunInfo,
    SeriesInfo,
    StepResult,
)
from stabdiag.model import Run
from stabdiag.settings import Settings
from stabdiag.steps import alignment, batch, initialization, layers, logging, numerics, parameters
from stabdiag.steps.heat_map import heat_maps, layer_cells
from stabdiag.steps.layer_moment import layers_at
from stabdiag.steps.layers import LayersResult
from stabdiag.steps.outcome import Outcome
from stabdiag.steps.timeline import Timeline, isolate
from stabdiag.steps.view import build_view
from stabdiag.verdict.advice import next_steps
from stabdiag.verdict.audit import audit_of
from stabdiag.verdict.bisection import plan
from stabdiag.verdict.charts import charts, close_up, lr_phases
from stabdiag.verdict.checks import made
from stabdiag.verdict.monitoring import audit
from stabdiag.verdict.spike_score import spike_score
from stabdiag.verdict.verdict import conclude

MOST_EPISODES = 50
JUDGED = ("loss", "val_loss", "grad_norm", "grad_norm_clipped", "param_norm", "loss_scale")


@dataclass(frozen=True)
class Examination:
    """What the five steps found in a run, before any weighing.

    `outcomes` are those of steps 1 to 5; `extra` the findings beside them, by workflow step.
    `signs` are all signs, `deciding` those of the whole run and of the episode that the verdict
    is about.
    """

    timeline: Timeline
    layers: LayersResult
    outcomes: tuple[Outcome, ...]
    extra: Mapping[int, tuple[Finding, ...]]
    signs: tuple[Sign, ...]

    @property
    def deciding(self) -> tuple[Sign, ...]:
        """The signs that the verdict rests on."""
        return _signs_of(self.signs, self.timeline.primary)


def examine(run: Run, settings: Settings) -> Examination:
    """Go through the five steps of the workflow.

    Raises:
        UsageError: the settings name an unknown threshold.
        InputError: none of the series that a diagnosis rests on was recognised.
    """
    _recognised(run)
    timeline = isolate(build_view(run, settings))
    step1 = alignment.report(timeline)
    step2 = batch.examine(timeline)
    step3 = numerics.check(timeline)
    step4 = layers.bisect(timeline)
    step5 = initialization.check(timeline, step4.scores)
    growth_findings, growth_signs = parameters.check(timeline)
    outcomes = (step1, step2, step3, step4.outcome, step5)
    return Examination(
        timeline=timeline,
        layers=step4,
        outcomes=outcomes,
        extra={4: tuple(growth_findings), 0: tuple(logging.check(timeline.view))},
        signs=tuple(s for o in outcomes for s in o.signs) + tuple(growth_signs),
    )


def diagnose(run: Run, settings: Settings) -> Report:
    """Diagnose one run: steps 1 to 5, the ledger, the verdict.

    Raises:
        UsageError, InputError: as `examine`.
    """
    with np.errstate(all="ignore"):  # what overflows becomes Inf or NaN, and is handled by name
        return _report(run, examine(run, settings))


def _report(run: Run, seen: Examination) -> Report:
    timeline, view = seen.timeline, seen.timeline.view
    findings, workflow = _ordered(seen.outcomes, seen.extra)
    attribution = attribute(seen.deciding)
    cells = layer_cells(run, seen.layers.cells)
    monitoring = audit(
        view,
        {metric: one.cadence for metric, one in cells.items()},
        attribution.probability("overflow"),
    )
    asked = view.settings.layers_at
    verdict = conclude(timeline, seen.layers, attribution, seen.deciding, findings, monitoring)
    return Report(
        version=__version__,
        run=_run_info(run),
        verdict=verdict,
        causes=attribution.ranks,
        episodes=_episodes(timeline, seen.signs, verdict.layers),
        workflow=workflow,
        findings=findings,
        layers=seen.layers.ranks,
        monitoring=monitoring,
        audit=audit_of(run, monitoring),
        layer_plan=plan(seen.layers, verdict),
        heat_maps=heat_maps(cells, [rank.layer for rank in seen.layers.ranks]),
        layer_moment=None if asked is None else layers_at(run, asked, verdict.onset_step),
        checks=made(timeline, findings),
        next_steps=next_steps(timeline, verdict, seen.layers),
        spike_score=spike_score(view),
        thresholds=view.limits.all(),
        charts=charts(timeline),
        lr_phases=lr_phases(view),
        close_up=close_up(timeline),
    )


def _recognised(run: Run) -> None:
    """Refuse a log in which there is nothing to judge: silence must not read as health."""
    if any(name in run.series or name in run.layers for name in JUDGED):
        return
    others = sorted(s.column for s in run.series.values())
    shown = ", ".join(others[:12]) + (", ..." if len(others) > 12 else "")
    raise InputError(
        f"{', '.join(run.files)}: neither a loss nor a gradient series was recognised"
        + (f" among the columns {shown}" if shown else ""),
        "name it with --map loss=COLUMN; `stabdiag columns` shows how each column was understood",
    )


def _signs_of(signs: tuple[Sign, ...], episode: int | None) -> tuple[Sign, ...]:
    """The whole run's signs and those of one episode."""
    return tuple(s for s in signs if s.episode is None or s.episode == episode)


def _ordered(
    outcomes: tuple[Outcome, ...], extra: Mapping[int, tuple[Finding, ...]]
) -> tuple[tuple[Finding, ...], tuple[StepResult, ...]]:
    """All findings by (workflow step, optimizer step, rule), and the five results over them."""
    everything: list[Finding] = []
    workflow = []
    for o in outcomes:
        mine = sorted(
            (*o.findings, *extra.get(o.step, ())),
            key=lambda f: (f.step if f.step is not None else -1, f.rule, f.layer or "", f.message),
        )
        numbers = tuple(range(len(everything), len(everything) + len(mine)))
        everything += mine
        serious = [f for f in mine if f.severity > 1]
        if o.skipped and not serious:
            status, reason = "skipped", o.skipped
        elif serious or o.headline:
            status, reason = "found", o.headline or serious[0].message
        else:
            status, reason = "clear", "; ".join(o.looked_at)
        workflow.append(
            StepResult(o.step, o.title, status, reason, o.looked_at, numbers)  # type: ignore[arg-type]
        )
    everything += extra.get(0, ())
    return tuple(everything), tuple(workflow)


def _run_info(run: Run) -> RunInfo:
    named = {k: v for k, v in run.series.items() if v.points}
    steps = [s for segment in run.segments for s in (segment.first_step, segment.last_step)]
    return RunInfo(
        name=run.name,
        files=run.files,
        format=run.format,
        rows=run.rows,
        rows_left_out=run.rows_left_out,
        axis=run.axis,
        first_step=min(steps) if steps else None,
        last_step=max(steps) if steps else None,
        series={
            k: SeriesInfo(v.column, v.points, v.cadence, v.non_finite)
            for k, v in sorted(named.items())
        },
        layers=max((len(v) for v in run.layers.values()), default=0),
        segments=tuple((s.first_step, s.last_step) for s in run.segments),
        siblings=run.siblings,
        notes=tuple(
            {"kind": n.kind, "text": n.text, "count": n.count, "rows": list(n.rows)}
            for n in run.notes
        ),
    )


def _episodes(
    timeline: Timeline, signs: tuple[Sign, ...], guilty: tuple[str, ...]
) -> tuple[Episode, ...]:
    """The episodes as reported: the most severe where there are very many, in order."""
    worst = sorted(range(len(timeline.episodes)), key=lambda i: -timeline.episodes[i].severity)
    out = []
    for i in sorted(worst[:MOST_EPISODES]):
        d = timeline.episodes[i]
        best = attribute(_signs_of(signs, i)).best
        event = d.loss_event or d.events[0]
        out.append(
            Episode(
                kind=d.kind,
                onset_step=d.onset,
                peak_step=d.peak,
                end_step=d.end,
                grad_onset_step=d.grad_onset,
                loss_onset_step=d.loss_onset,
                lead_steps=d.lead.steps,
                lead_uncertainty=d.lead.uncertainty,
                recovered=d.recovered,
                recovery=d.recovery,
                steps_lost=d.steps_lost,
                handbook_rule=d.rule,
                handbook_reason=d.rule_reason,
                cause=best.cause,
                probability=best.probability,
                score=event.score if event.score < 1e300 else None,
                ratio=event.ratio if event.ratio == event.ratio else None,
                batch=batch.batch_before(timeline.view.run.batch, d, timeline.view.cadence),
                layers=guilty if i == timeline.primary else (),
            )
        )
    return tuple(out)
