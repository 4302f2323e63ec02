"""The first screen: what happened, when, where, why, how sure, and what to do now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stabdiag.findings import NO_CAUSE, Episode, Health, Report, RunInfo
from stabdiag.reporters.blocks import (
    Block,
    Heading,
    Items,
    Labelled,
    Paragraph,
    Span,
    Tone,
    Words,
    prose,
    words,
)
from stabdiag.reporters.numbers import count, nats, number, percent, steps, times

HEALTH_TONES: Mapping[Health, Tone] = {
    "healthy": "good",
    "unstable": "warn",
    "diverged": "bad",
    "inconclusive": "warn",
}
HEALTH_SIGNS: Mapping[Health, str] = {
    "healthy": "✓",
    "unstable": "!",
    "diverged": "✕",
    "inconclusive": "?",
}
STEP_WORDS = {1: "timeline", 2: "batch", 3: "numerics", 4: "layers", 5: "initialization"}
_SHOWN_EVIDENCE = 1
_SHOWN_LAYERS = 2
LEAST_SHOWN = 0.005  # a runner-up below half a percent is not worth its words
_RULE_READINGS = {
    "optimizer": "optimizer issue",
    "data_or_overflow": "data issue or overflow",
    "undecidable": "undecidable",
}


def first_screen(report: Report) -> tuple[Block, ...]:
    """Return the blocks that answer an engineer who reads no further."""
    verdict = report.verdict
    health = Span(verdict.health.upper(), HEALTH_TONES[verdict.health])
    blocks: tuple[Block, ...] = (
        Paragraph(header(report)),
        Labelled(((words(health), prose(verdict.summary, "strong")),)),
        Labelled(answers(report)),
    )
    if report.next_steps:
        blocks += (Heading("Do this next"), *actions(report))
    return blocks


def answers(report: Report, layers: int = _SHOWN_LAYERS) -> tuple[tuple[Words, Words], ...]:
    """Return when, where, why, and what that rests on; of the verdict's layers so many by name."""
    rows = (
        ("when", _when(report)),
        ("where", _where(report, layers)),
        ("why", _why(report)),
        *(("", row) for row in _evidence(report)),
        ("root", _root(report)),
        ("handbook", _handbook(report)),
        ("checked", _checked(report)),
        ("to settle", _to_settle(report)),
    )
    return tuple((words(Span(name, "dim")), text) for name, text in rows if text)


def actions(report: Report) -> tuple[Block, ...]:
    """Return what to do now, numbered, the most useful first."""
    return numbered(report.next_steps)


def numbered(next_steps: Sequence[str]) -> tuple[Block, ...]:
    """Return what to do as a numbered list; nothing where there is nothing to do."""
    return (Items(tuple(map(_action, next_steps))),) if next_steps else ()


def episode_kind(episode: Episode) -> str:
    """Return the kind of an episode in words."""
    return episode.kind.replace("non_", "non-").replace("_", " ")


def recovery(episode: Episode) -> str:
    """Return how an episode ended, in words."""
    lost = f", {count(episode.steps_lost, 'step')} lost" if episode.steps_lost else ""
    if episode.recovery == "none":
        return f"no recovery{lost}"
    return f"{episode.recovery} recovery{lost}"


def lead(episode: Episode) -> str:
    """Return the lead of the grad norm over the loss, with its uncertainty."""
    if episode.lead_steps is None:
        return "-"
    return f"{episode.lead_steps} ± {episode.lead_uncertainty or 0}"


def handbook_reading(episode: Episode) -> str:
    """Return what the handbook's rule reads from the alignment, with the reason."""
    reason = f" ({episode.handbook_reason})" if episode.handbook_reason else ""
    return f"{_RULE_READINGS[episode.handbook_rule]}{reason}"


def header(report: Report) -> Words:
    """Return the line that names the tool, the log and its extent."""
    return log_header(report.version, report.run)


def log_header(version: str, run: RunInfo) -> Words:
    """Return that line for a page that is no part of a report."""
    files = run.files[0] if len(run.files) == 1 else f"{run.files[0]} and {len(run.files) - 1} more"
    name = f", run {run.name}" if run.name and run.siblings else ""
    unit = run.axis if run.axis.endswith("s") else f"{run.axis}s"
    span = f", {unit} {run.first_step} to {run.last_step}" if run.first_step is not None else ""
    rows = count(run.rows, "row")
    if run.rows_left_out:
        rows += f" ({number(run.rows_left_out)} left out: see the notes)"
    facts = Span(f"{run.format}, {rows}{span}{name}", "dim", whole=True)
    return words(Span(f"stabdiag {version}", "dim", whole=True), f"  {files}  ", facts)


def _when(report: Report) -> Words:
    onset = report.verdict.onset_step
    if onset is None:
        return ()
    episode = report.main_episode
    if episode is None:
        return words(Span(steps(onset), "strong"))
    rose = episode.ratio is not None and episode.ratio > 1  # a NaN did not
    size = f" at {times(episode.ratio)} its level" if rose else ""
    peak = f", peak{size} at step {episode.peak_step}"
    return words(
        Span(steps(onset), "strong"), f": {episode_kind(episode)}{peak}, {recovery(episode)}"
    )


def _where(report: Report, shown: int) -> Words:
    layers = report.verdict.layers
    if layers:
        more = len(layers) - shown
        text = ", ".join(layers[:shown]) + (f" and {more} more" if more > 0 else "")
        return words(text)
    if report.verdict.cause == "none":
        return ()
    bisect = next((result for result in report.workflow if result.step == 4), None)
    if bisect is not None and bisect.status == "skipped":
        return words(f"not known: {bisect.reason}")
    return words("no single layer stands out")


def _why(report: Report) -> Words:
    verdict = report.verdict
    others = [rank for rank in report.causes if rank.cause != verdict.cause]
    if verdict.cause == "inconclusive":
        best = ", ".join(f"{cause_name(o.cause)} {percent(o.probability)}" for o in others[:2])
        return words(
            Span("the log can't tell", "strong"), f"; best guesses: {best}" if best else ""
        )
    runner = ""
    if others and others[0].probability >= LEAST_SHOWN:
        runner = f"; next: {cause_name(others[0].cause)} {percent(others[0].probability)}"
    name = "no fault found" if verdict.cause == "none" else cause_name(verdict.cause)
    return words(Span(f"{name}, {percent(verdict.probability)} sure", "strong"), runner)


def cause_name(cause: str) -> str:
    """Return a cause as words."""
    return "healthy" if cause == "none" else cause.replace("_", " ")


def _evidence(report: Report) -> Iterator[Words]:
    """The weightiest evidence for the verdict's cause."""
    if report.verdict.cause in NO_CAUSE:
        return
    for rank in report.causes:
        if rank.cause != report.verdict.cause:
            continue
        ordered = sorted(rank.evidence, key=lambda piece: -piece.weight)
        for piece in ordered[:_SHOWN_EVIDENCE]:
            if piece.weight > 0:
                yield words(Span(nats(piece.weight), "dim"), f" {piece.text}")


def _root(report: Report) -> Words:
    root = report.verdict.root
    return prose(f"{cause_name(root.cause)} at step {root.step}: {root.text}") if root else ()


def _handbook(report: Report) -> Words:
    if report.verdict.handbook:
        return prose(report.verdict.handbook)
    episode = report.main_episode
    return prose(handbook_reading(episode)) if episode else ()


def _to_settle(report: Report) -> Words:
    """What logging would settle, as far as the next steps don't say it."""
    actions = " ".join(report.next_steps)
    return prose("; ".join(text for text in report.verdict.settle if text not in actions))


def _action(step: str) -> Words:
    return words(Span(step, "command")) if step.startswith("stabdiag ") else prose(step)


def _checked(report: Report) -> Words:
    skipped = [result for result in report.workflow if result.status == "skipped"]
    seen = len(report.workflow) - len(skipped)
    text = f"{seen} of {len(report.workflow)} steps" if skipped else "all five steps"
    if skipped:
        text += "; skipped: " + ", ".join(
            f"{result.step} {STEP_WORDS[result.step]}" for result in skipped
        )
    missing = sum(check.status == "not_made" for check in report.checks)
    if missing:
        text += f"; {count(missing, 'check')} not made"
    return words(text)
