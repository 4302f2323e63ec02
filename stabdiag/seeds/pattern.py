"""Step 5 over several seeds: systematic, stochastic, or tied to the data (handbook, step 5)."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag import __version__
from stabdiag.comparison import Seed, Seeds, SeedsOutcome
from stabdiag.errors import InputError
from stabdiag.findings import NO_CAUSE, Report
from stabdiag.model import Run
from stabdiag.rules.comparing import SEED_PATTERN
from stabdiag.rules.limits import Limits
from stabdiag.seeds.alike import more_than_the_seed, notes_on
from stabdiag.signals.shares import wilson

_SEEN_AFTER = 5  # points after an onset without which its end is not known


@dataclass(frozen=True)
class Trial:
    """One seed: its log, the run within the steps looked at, and the diagnosis of both reaches.

    `whole` is the diagnosis of the run with all its steps, None where that is the same.
    """

    log: str
    run: Run
    report: Report
    whole: Report | None = None


def judge_seeds(trials: Sequence[Trial], limits: Limits) -> Seeds:
    """Tell from several seeds whether what goes wrong is systematic, luck, or in the data.

    Raises:
        InputError: fewer than two different runs, or no steps that all have.
    """
    different, notes = _different(trials)
    notes += notes_on([trial.run for trial in different])
    notes += [text for trial in different if (text := _cut_off(trial))]
    apart = more_than_the_seed([trial.run for trial in different])
    seeds = tuple(_seed(trial) for trial in different)
    failing = [seed for seed in seeds if _fails(seed)]
    outcome, why = _outcome(seeds, failing, limits)
    interval = wilson(len(failing), len(seeds))
    return Seeds(
        version=__version__,
        outcome=outcome,
        summary=_summary(outcome, len(failing), len(seeds), why) + apart,
        runs=seeds,
        failed=len(failing),
        interval=interval,
        shows=_shows(len(failing), len(seeds), interval),
        next_steps=_next(outcome, failing, seeds, apart=bool(apart)),
        notes=tuple(notes),
        thresholds={k: v for k, v in limits.all().items() if k.startswith(SEED_PATTERN.id)},
    )


def _different(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials without those that are the same run again: a copy is no other seed."""
    kept: dict[bytes, Trial] = {}
    notes = []
    for trial in trials:
        loss = trial.run.series.get("loss") or next(iter(trial.run.series.values()))
        key = loss.step.tobytes() + loss.value.tobytes()
        if key in kept:
            notes.append(f"{trial.log} is the same run as {kept[key].log}: counted once")
        kept.setdefault(key, trial)
    if len(kept) < 2:
        copy = f"; {trials[1].log} is that run again" if len(trials) > 1 else ""
        raise InputError(
            f"{trials[0].log}: only one run, and no other seed to hold it against{copy}",
            "name the logs of two or more seeds, as in `stabdiag seeds seed_1.csv seed_2.csv`",
        )
    return list(kept.values()), notes


def _seed(trial: Trial) -> Seed:
    report = trial.report
    episode = report.main_episode
    return Seed(
        log=trial.log,
        run=trial.run.name if trial.run.siblings else "",
        verdict=report.verdict,
        kind=episode.kind if episode is not None else "",
        first_step=report.run.first_step,
        last_step=report.run.last_step,
        batch=_batch(trial.run, report.verdict.onset_step),
        later=_later(trial),
    )


def _batch(run: Run, step: int | None) -> str:
    """The ids of the batch at a step, of columns whose ids tell batches apart; "" for none."""
    table = run.batch
    if table is None or step is None:
        return ""
    at = np.flatnonzero(table.step == step)
    if not at.size:
        return ""
    return ", ".join(
        f"{name} {ids[at[-1]]}"
        for name, ids in sorted(table.ids.items())
        if ids[at[-1]] is not None and len(set(ids)) > len(ids) / 2
    )


def _later(trial: Trial) -> str:
    """What goes wrong only beyond the steps looked at."""
    if trial.whole is None or trial.report.verdict.cause != "none":
        return ""
    verdict = trial.whole.verdict
    if verdict.cause == "none":
        return ""
    place = f" at step {verdict.onset_step}" if verdict.onset_step is not None else ""
    return f"{verdict.health} later: {verdict.cause.replace('_', ' ')}{place}"


def _cut_off(trial: Trial) -> str:
    """That a run fails where the steps looked at end: how it went on was not judged."""
    onset, last = trial.report.verdict.onset_step, trial.report.run.last_step
    loss = trial.run.series.get("loss")
    if trial.whole is None or onset is None or last is None or loss is None:
        return ""
    if onset <= last - _SEEN_AFTER * loss.cadence:
        return ""
    return (
        f"{trial.log} fails at step {onset}, where the steps looked at end (--steps A:B): how it "
        "went on is not judged"
    )


def _fails(seed: Seed) -> bool:
    return seed.verdict.cause != "none" and seed.verdict.health != "healthy"


def _outcome(
    seeds: Sequence[Seed], failing: Sequence[Seed], limits: Limits
) -> tuple[SeedsOutcome, str]:
    """The pattern, and what it rests on."""
    if not failing:
        return "healthy", ""
    tie = _tied_to_data(failing)
    if tie:
        return "data_tied", tie
    if len(failing) < len(seeds):
        return "stochastic", ""
    return _if_alike(failing, limits)


def _if_alike(failing: Sequence[Seed], limits: Limits) -> tuple[SeedsOutcome, str]:
    """All fail: systematic, and whether in the same way, place and layers."""
    causes = Counter(seed.verdict.cause for seed in failing)
    cause, most = max(causes.items(), key=lambda item: (item[1], item[0]))
    alike = most / len(failing) >= limits(SEED_PATTERN, "same_kind")
    onsets = [s.verdict.onset_step for s in failing if s.verdict.onset_step is not None]
    reach = max((s.last_step or 0) - (s.first_step or 0) for s in failing)
    same_place = len(onsets) == len(failing) and (
        max(onsets) - min(onsets) <= limits(SEED_PATTERN, "same_place") * max(1, reach)
    )
    parts = []
    if alike and cause not in NO_CAUSE:
        parts.append(f"in the same way ({cause.replace('_', ' ')})")
    if same_place:
        span = str(onsets[0]) if len(set(onsets)) == 1 else f"{min(onsets)} to {max(onsets)}"
        parts.append(f"at the same place (step {span})")
    layers = [set(seed.verdict.layers) for seed in failing]
    if shared := set.intersection(*layers):
        parts.append(f"in the same layers ({', '.join(sorted(shared)[:3])})")
    if not alike:
        named = ", ".join(f"{c.replace('_', ' ')} {n}" for c, n in sorted(causes.items()))
        return "systematic", f"but not in one way ({named})"
    return "systematic", ", ".join(parts)


def _tied_to_data(failing: Sequence[Seed]) -> str:
    """Why the batch must be it: the same one at each onset, though it came at other steps."""
    batches = {seed.batch for seed in failing}
    steps = {seed.verdict.onset_step for seed in failing}
    if None in steps or len(failing) < 2:
        return ""
    same_batch = len(batches) == 1 and "" not in batches
    if len(steps) > 1:
        return (
            f"the same batch ({failing[0].batch}) at each onset, whatever its step"
            if same_batch
            else ""
        )
    blamed = all(seed.verdict.cause == "data" for seed in failing)
    if blamed and (same_batch or batches == {""}):
        return (
            f"at the same step ({next(iter(steps))}) whatever the seed, with the marks of a batch"
        )
    return ""


def _summary(outcome: SeedsOutcome, failed: int, runs: int, why: str) -> str:
    share = f"all {runs} seeds fail" if failed == runs else f"{failed} of {runs} seeds fail"
    return {
        "healthy": f"None of {runs} seeds fails in the steps looked at.",
        "stochastic": f"Stochastic: {share}; another seed can get away.",
        "systematic": f"Systematic: {share}{', ' + why if why else ''}.",
        "data_tied": f"Tied to the data: {share}; {why}.",
    }[outcome]


def _shows(failed: int, runs: int, interval: tuple[float, float]) -> str:
    low, high = (f"{100 * share:.0f}" for share in interval)
    few = (
        " Few seeds: a share this wide can hide either." if interval[1] - interval[0] > 0.5 else ""
    )
    return f"{failed} of {runs} failing says that between {low} and {high} % of seeds fail.{few}"


def _next(
    outcome: SeedsOutcome, failing: Sequence[Seed], seeds: Sequence[Seed], *, apart: bool
) -> tuple[str, ...]:
    """What to do by the pattern; where runs differ in more than the seed it is not yet known."""
    worst = max(failing, key=lambda seed: seed.verdict.probability) if failing else seeds[0]
    log = shlex.quote(worst.log)
    look = f"stabdiag analyze {log}" + (f" --run {shlex.quote(worst.run)}" if worst.run else "")
    if apart and failing:
        return ("Repeat it with runs that differ in the seed alone; then ask again.", look)
    advice: dict[str, tuple[str, ...]] = {
        "systematic": (
            "Change the architecture or the hyperparameters: another seed will not help.",
            look,
        ),
        "stochastic": (
            "Luck, or an initialization that is not reliable: make it more reliable, or leave more "
            "margin (lower peak learning rate, longer warm-up).",
            "Run more seeds to know how often it fails.",
            look,
        ),
        "data_tied": (
            "Look at that batch and skip or filter it; the initialization is not to blame.",
            f"stabdiag batch {log}",
        ),
    }
    return advice.get(outcome, ("Nothing to do for the initialization.",))
