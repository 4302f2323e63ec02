"""Reports made by hand: every field filled, with names that try to break a page."""

from __future__ import annotations

from dataclasses import replace

from stabdiag.drawings import ChartSeries, CloseUp, HeatBlock, HeatMap, LrPhase
from stabdiag.findings import (
    Audit,
    AuditItem,
    CauseRank,
    Check,
    Episode,
    Evidence,
    Finding,
    LayerMoment,
    LayerPlan,
    LayerRank,
    MonitorItem,
    PlanMove,
    Report,
    Root,
    RunInfo,
    SeriesInfo,
    Severity,
    StepResult,
    Verdict,
)

HOSTILE_LAYER = "layers[bias].\x1b[31mred\x07"
NAN, INF = float("nan"), float("inf")


def diverged_report() -> Report:
    """Return a run that a lost scheduler state broke: a spike, no recovery, NaN at last."""
    return Report(
        version="0.1.0",
        run=_run(),
        verdict=Verdict(
            health="diverged",
            cause="optimizer",
            probability=0.914,
            onset_step=700,
            layers=("layers.3.attn.out_proj.weight", HOSTILE_LAYER),
            summary="The learning rate rose 10x at step 699 and the loss left its course at step "
            "702; it never came back.",
            settle=("log the data indices of each step",),
            root=Root("state_corruption", 690, "the scheduler state was lost at the resume"),
            handbook="",
        ),
        causes=_causes(),
        episodes=_episodes(),
        workflow=_workflow(),
        findings=_findings(),
        layers=_layers(),
        monitoring=(
            MonitorItem("loss", "ok", 1, ""),
            MonitorItem("grad_norm", "ok", 1, ""),
            MonitorItem("lr", "ok", 10, ""),
            MonitorItem(
                "param_norm", "sparse", 500, "log it every 100 to 200 steps: slow growth is unseen"
            ),
            MonitorItem("val_loss", "missing", None, "log it: overfitting can't be told apart"),
        ),
        checks=(
            Check("loss finite", "failed", "NaN at steps 1990 to 1999"),
            Check("loss scale", "not_made", "no loss_scale column"),
            Check("initial loss", "passed", "2.01 at step 0, expected at most 2.5"),
        ),
        next_steps=(
            "Restore the scheduler state at the resume; the learning rate should be 3e-4 at step "
            "699, not 3e-3.",
            "Look at the batch before the spike: `stabdiag batch gpt-small.jsonl --step 699`.",
            "Resume from a checkpoint at or before step 690.",
        ),
        spike_score={
            "window": 1000,
            "deviations": 7.0,
            "loss": 0.0042,
            "grad_norm": None,
            "note": "too short for it: needs more than 1000 values",
        },
        thresholds={"SD102.min_ratio": 4.0, "SD101.min_z": 6.0},
        charts=_charts(),
        audit=_audit(),
        layer_plan=LayerPlan(
            block=("layers.3.attn.out_proj.weight", HOSTILE_LAYER),
            reason="layers.3.attn.out_proj.weight stands out",
            moves=(PlanMove("Freeze it.", "Trouble gone: its update."),),
            runs=3,
            outline=("SUSPECTS = [", f"    {HOSTILE_LAYER!a},", "]"),
        ),
        layer_moment=LayerMoment(
            asked=705,
            step=700,
            metric="grad_norm",
            layers=(HOSTILE_LAYER, "layers.3.attn.out_proj.weight"),
            value=(NAN, 8.0),
            share=(None, 0.8),
            ratio=(None, 31.0),
            usual=(1.0, 1.2),
        ),
        heat_maps=(_heat_map(),),
        lr_phases=(LrPhase("warmup", 0, 400), LrPhase("decay", 400, 1999)),
        close_up=CloseUp(690, 730, _near()),
    )


def healthy_report() -> Report:
    """Return a run without a fault: nothing found, one step not looked at."""
    full = diverged_report()
    workflow = tuple(
        replace(step, status="clear", reason="nothing left its range", findings=())
        if step.status == "found"
        else step
        for step in full.workflow
    )
    verdict = Verdict(
        health="healthy",
        cause="none",
        probability=0.97,
        onset_step=None,
        layers=(),
        summary="Nothing is wrong with this run as far as its log shows.",
        settle=(),
        root=None,
        handbook="",
    )
    return replace(
        full,
        verdict=verdict,
        causes=(CauseRank("none", 0.97, ()), CauseRank("data", 0.02, ())),
        episodes=(),
        workflow=workflow,
        findings=(),
        layers=(),
        checks=(Check("loss finite", "passed", "2,000 of 2,000 points are finite"),),
        next_steps=(),
        charts=(),
        lr_phases=(),
        close_up=None,
    )


def inconclusive_report() -> Report:
    """Return a run whose log is too thin: no onset, no layers, two best guesses."""
    full = diverged_report()
    verdict = Verdict(
        health="inconclusive",
        cause="inconclusive",
        probability=0.4,
        onset_step=None,
        layers=(),
        summary="The log has 12 points of the loss; too few for a baseline.",
        settle=("log the gradient norm before clipping", "log the loss at every step"),
        root=None,
        handbook="",
    )
    causes = (
        CauseRank("inconclusive", 0.4, ()),
        CauseRank("optimizer", 0.3, ()),
        CauseRank("data", 0.25, ()),
    )
    skipped = tuple(
        replace(step, status="skipped", reason="too few points", looked_at=(), findings=())
        for step in full.workflow
    )
    return replace(
        full,
        run=replace(full.run, first_step=None, last_step=None, rows=12, notes=(), layers=0),
        verdict=verdict,
        causes=causes,
        episodes=(),
        workflow=skipped,
        findings=(),
        layers=(),
        charts=(),
        next_steps=("Log more: `stabdiag audit LOG` says what.",),
    )


def _run() -> RunInfo:
    return RunInfo(
        name="gpt-small",
        files=("runs/gpt-small.jsonl",),
        format="jsonl",
        rows=2000,
        rows_left_out=0,
        axis="step",
        first_step=0,
        last_step=1999,
        series={
            "loss": SeriesInfo("train/loss", 2000, 1, 10),
            "grad_norm": SeriesInfo("grad\x1b[2Jnorm", 1990, 1, 0),
            "lr": SeriesInfo("lr", 200, 10, 0),
        },
        layers=24,
        segments=((0, 690), (690, 1999)),
        siblings=(),
        notes=(
            {"kind": "dropped", "text": "last line cut short", "count": 1, "rows": (2001,)},
            {
                "kind": "repaired",
                "text": "NUL bytes removed",
                "count": 7,
                "rows": (3, 4, 5, 6, 7, 8, 9),
            },
        ),
    )


def _causes() -> tuple[CauseRank, ...]:
    return (
        CauseRank(
            "optimizer",
            0.914,
            (
                Evidence(
                    "optimizer", "lead", "the grad norm led the loss", 1.0, (700, 702), ("loss",)
                ),
                Evidence(
                    "optimizer", "lr_step", "the learning rate rose 10x", 4.0, (699,), ("lr",)
                ),
                Evidence("optimizer", "lr_seen", "no lone grad steps before", -0.25),
            ),
        ),
        CauseRank("overflow", 0.053, (Evidence("overflow", "nan", "NaN at last", 0.5, (1990,)),)),
        CauseRank("data", 0.02, ()),
        CauseRank("none", 0.004, ()),
    )


def _episodes() -> tuple[Episode, ...]:
    spike = Episode(
        kind="loss_spike",
        onset_step=700,
        peak_step=703,
        end_step=None,
        grad_onset_step=700,
        loss_onset_step=702,
        lead_steps=2,
        lead_uncertainty=0,
        recovered=False,
        recovery="none",
        steps_lost=1297,
        handbook_rule="optimizer",
        handbook_reason="the grad norm left its range 2 steps before the loss",
        cause="optimizer",
        probability=0.914,
        score=41.23456789,
        ratio=3.4,
        batch={"shard": "c4-00017", "mean_length": 511.0, "entropy": NAN},
        layers=("layers.3.attn.out_proj.weight",),
    )
    small = replace(
        spike,
        kind="grad_spike",
        onset_step=310,
        peak_step=310,
        end_step=311,
        grad_onset_step=310,
        loss_onset_step=None,
        lead_steps=None,
        lead_uncertainty=None,
        recovered=True,
        recovery="fast",
        steps_lost=0,
        handbook_rule="undecidable",
        handbook_reason="the loss did not move",
        cause="inconclusive",
        probability=0.4,
        score=9.1,
        ratio=5.0,
        batch={},
        layers=(),
    )
    nan = replace(
        spike,
        kind="non_finite",
        onset_step=1990,
        peak_step=1990,
        grad_onset_step=None,
        loss_onset_step=1990,
        lead_steps=None,
        lead_uncertainty=None,
        steps_lost=9,
        handbook_rule="undecidable",
        handbook_reason="no grad norm at these steps",
        score=INF,
        ratio=None,
        batch={},
        layers=(),
    )
    return small, spike, nan


def _workflow() -> tuple[StepResult, ...]:
    looked = ("loss (2,000 points)", "grad_norm (1,990 points)")
    return (
        StepResult(
            1, "Isolate the timeline", "found", "2 spikes, 1 of them lasting", looked, (0, 1)
        ),
        StepResult(
            2, "Examine the triggering batch", "skipped", "no column names the data", (), ()
        ),
        StepResult(3, "Check for numerical issues", "found", "NaN from step 1990", looked, (2,)),
        StepResult(4, "Bisect the architecture", "found", "1 layer leads", ("24 layers",), (3,)),
        StepResult(5, "Check initialization", "clear", "first loss as expected", looked[:1], ()),
    )


def _findings() -> tuple[Finding, ...]:
    return (
        Finding(
            "SD103",
            "grad-norm-spike",
            Severity.INFO,
            310,
            311,
            None,
            "The grad norm rose to 5x its level; the loss did not move.",
            {"score": 9.1, "ratio": 5.0},
            "",
        ),
        Finding(
            "SD101",
            "loss-spike",
            Severity.ERROR,
            702,
            1999,
            None,
            "The loss rose to 3.4x its level and stayed there.",
            {"score": 41.23456789, "ratio": 3.4, "limit": 6.0},
            "Resume from a checkpoint before step 700.",
        ),
        Finding(
            "SD301",
            "non-finite-loss",
            Severity.ERROR,
            1990,
            1999,
            None,
            "The loss is NaN at 10 logged points.",
            {"first": NAN, "largest": INF, "smallest": -INF, "points": 10},
            "Run `stabdiag numerics gpt-small.jsonl`.",
        ),
        Finding(
            "SD401",
            "layer-leads",
            Severity.WARNING,
            699,
            None,
            HOSTILE_LAYER,
            f"The gradient of {HOSTILE_LAYER} is 31x the median.",
            {"ratio_to_median": 31.0},
            "Reproduce with this layer alone.",
        ),
        Finding(
            "SD901",
            "param-norm-sparse",
            Severity.INFO,
            None,
            None,
            None,
            "param_norm is logged every 500 steps.",
            {"cadence": 500},
            "Log it every 100 to 200 steps.",
        ),
    )


def _layers() -> tuple[LayerRank, ...]:
    first = LayerRank(
        layer="layers.3.attn.out_proj.weight",
        role="attention_out",
        depth=3,
        ratio_to_median=31.0,
        ratio_to_peers=22.5,
        param_growth=1.4,
        onset_step=699,
        peak_score=40.2,
        rank=1,
        why="31x the median and first to move",
        consistent=0.93,
        share=0.71,
        order=9,
        tenfold=0.98,
    )
    hostile = replace(
        first,
        layer=HOSTILE_LAYER,
        role="other",
        depth=None,
        ratio_to_peers=None,
        param_growth=NAN,
        onset_step=None,
        peak_score=INF,
        rank=2,
        why="",
    )
    rest = tuple(
        replace(
            first,
            layer=f"layers.{depth}.mlp.weight",
            role="mlp",
            depth=depth,
            ratio_to_median=1.0 + depth / 10,
            peak_score=2.5,
            rank=depth + 3,
            why="",
        )
        for depth in range(10)
    )
    return first, hostile, *rest


def _heat_map() -> HeatMap:
    """Ten cells of two layers: one rises to Inf, the other falls to zero and turns NaN."""
    rising = (None, 0.0, 0.1, 0.0, 0.0, 0.1, 0.5, 1.0, 2.5, None)
    falling = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.5, -1.5, -INF, -1.0)
    return HeatMap(
        metric="grad_norm",
        layers=("layers.3.attn.out_proj.weight", HOSTILE_LAYER),
        first_step=tuple(range(0, 2000, 200)),
        last_step=tuple(range(199, 2000, 200)),
        value=(rising, falling),
        bad=(("",) * 9 + ("Inf",), ("",) * 9 + ("NaN",)),
        left_out=10,
        blocks=(HeatBlock("layers.3", 11, rising, ("",) * 9 + ("Inf",)),),
    )


def _charts() -> tuple[ChartSeries, ...]:
    step = tuple(range(0, 2000, 10))
    loss = tuple(
        NAN if at >= 1990 else 8.0 / (1 + at / 400) + (6.0 if at >= 700 else 0.0) for at in step
    )
    grad = tuple(5.0 if at == 310 else 9.0 if 700 <= at < 720 else 1.0 for at in step)
    return ChartSeries("loss", step, loss), ChartSeries("grad_norm", step, grad)


def _near() -> tuple[ChartSeries, ...]:
    """Loss and grad norm at every step around the spike."""
    step = tuple(range(690, 731))
    loss = tuple(9.0 if 702 <= at <= 706 else 3.0 for at in step)
    grad = tuple(9.0 if at >= 700 else 1.0 for at in step)
    return ChartSeries("loss", step, loss), ChartSeries("grad_norm", step, grad)


def _audit() -> Audit:
    """Two gaps, with lines for two frameworks."""
    return Audit(
        score=68,
        framework="pytorch",
        items=(
            AuditItem("loss", "every step", "every step", "ok", 20.0, 20.0, ""),
            AuditItem(
                "param_norm",
                "every 100 to 200 steps",
                "every 500 steps",
                "sparse",
                7.5,
                15.0,
                "can't be told: a wrong weight decay",
            ),
            AuditItem("val_loss", "now and then", "not logged", "missing", 0.0, 5.0, "overfitting"),
        ),
        lines={
            "pytorch": ("if step % 100 == 0:", '    row["param_norm"] = 1.0'),
            "hf": ('trainer.add_callback(HuggingFaceRecorder("run.jsonl"))',),
            "lightning": (),
        },
    )
