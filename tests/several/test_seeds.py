"""`stabdiag seeds`: systematic, stochastic, tied to the data; what so few seeds can show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stabdiag.comparison import Seeds
from stabdiag.diagnose import diagnose
from stabdiag.errors import InputError
from stabdiag.seeds import Trial, judge_seeds
from stabdiag.settings import Settings
from tests.command_line import Command
from tests.make_runs import Columns, healthy, healthy_layers, run_from, spike
from tests.several.logs import LIMITS, write
from tests.several.schemas import validator

ROOT = Path(__file__).resolve().parents[2]
POINTS = 400


def trial(name: str, columns: Columns, batch: Columns | None = None) -> Trial:
    run = run_from(columns, name=name, batch=batch)
    return Trial(f"{name}.csv", run, diagnose(run, Settings()))


def spiked(seed: int, at: int | None, *, order: int = 0) -> Trial:
    """A seed that spikes at a step (None: not), with the batches in an order shifted by `order`."""
    columns = healthy(POINTS, seed=seed)
    if at is not None:
        spike(columns, "loss", at, 4.0)
        columns["grad_norm"][at] *= 9.0
    ids = [f"b{(t - order) % POINTS}" for t in range(POINTS)]
    return trial(f"seed_{seed}", columns, {"batch_id": ids})


def poor_start(seed: int) -> Trial:
    columns = healthy(POINTS, seed=seed)
    columns["loss"][:20] += 20.0 * 0.7 ** (1.0 * (columns["step"][:20]))
    columns["grad_norm"][:20] += 60.0 * 0.7 ** (1.0 * (columns["step"][:20]))
    return trial(f"seed_{seed}", columns)


def judged(*trials: Trial) -> Seeds:
    return judge_seeds(trials, LIMITS)


def test_all_fail_alike_is_systematic() -> None:
    seen = judged(*map(poor_start, range(3)))
    assert (seen.outcome, seen.failed) == ("systematic", 3)
    assert "in the same way (initialization), at the same place (step 0)" in seen.summary
    assert "another seed will not help" in seen.next_steps[0]


def test_some_fail_is_stochastic_with_its_interval() -> None:
    seen = judged(spiked(0, 120), spiked(1, None), spiked(2, 260), spiked(3, None))
    assert (seen.outcome, seen.failed) == ("stochastic", 2)
    assert seen.interval == pytest.approx((0.15, 0.85), abs=0.001)
    assert "between 15 and 85 %" in seen.shows
    assert "Few seeds" in seen.shows


def test_the_same_batch_at_other_steps_is_tied_to_the_data() -> None:
    seen = judged(spiked(0, 120), spiked(1, 150, order=30), spiked(2, 210, order=90))
    assert seen.outcome == "data_tied"
    assert "the same batch (batch_id b120)" in seen.summary


def test_the_same_step_with_the_marks_of_a_batch_is_tied_to_the_data() -> None:
    seen = judged(*(spiked(seed, 200) for seed in range(3)))
    assert seen.outcome == "data_tied"
    assert "at the same step (200)" in seen.summary


def test_the_same_step_but_other_batches_is_not() -> None:
    seen = judged(*(spiked(seed, 200, order=50 * seed) for seed in range(3)))
    assert seen.outcome == "systematic"
    assert "at the same place (step 200)" in seen.summary


def test_none_fails() -> None:
    seen = judged(*(spiked(seed, None) for seed in range(5)))
    assert (seen.outcome, seen.failed) == ("healthy", 0)
    assert "between 0 and 43 %" in seen.shows


def test_a_copy_is_no_other_seed() -> None:
    one = spiked(0, None)
    seen = judged(one, one, spiked(1, None))
    assert len(seen.runs) == 2
    assert "counted once" in seen.notes[0]
    with pytest.raises(InputError, match=r"only one run.*seed_0.csv is that run again"):
        judged(one, one)


def test_another_learning_rate_is_said_and_no_common_steps_refused() -> None:
    other = healthy(POINTS, seed=1)
    other["lr"] *= 2.0
    seen = judged(spiked(0, None), trial("other", other))
    assert any("another learning rate" in note for note in seen.notes)
    assert seen.summary.endswith("They differ in more than the seed: learning rate.")
    assert "more than the seed" not in judged(spiked(0, None), spiked(1, None)).summary
    other = healthy(POINTS, seed=1)
    other["lr"] *= 2.0
    seen = judged(poor_start(0), trial("other", other))
    assert seen.next_steps[0].startswith("Repeat it with runs that differ in the seed alone")
    far = healthy(POINTS, seed=2)
    far["step"] = far["step"] + 10_000
    with pytest.raises(InputError, match="no steps in common"):
        judged(spiked(0, None), trial("far", far))


def test_other_layers_are_no_other_seed() -> None:
    runs = [
        run_from(healthy(POINTS, seed=blocks), name=f"m{blocks}", layers=layers)
        for blocks in (2, 3)
        if (layers := healthy_layers(POINTS, blocks=blocks))
    ]
    seen = judged(*(Trial(f"{r.name}.csv", r, diagnose(r, Settings())) for r in runs))
    assert seen.summary.endswith("They differ in more than the seed: model.")


def test_a_failure_at_the_end_of_what_is_looked_at_is_not_judged(
    command: Command, folder: Path
) -> None:
    (folder / "my runs").mkdir()
    for seed in (1, 2):
        columns = healthy(1600, seed=seed)
        if seed == 1:
            spike(columns, "loss", 997, 4.0, 3)
            columns["grad_norm"][997:1000] *= 9.0
        write(folder / "my runs" / f"seed_{seed}.csv", columns)
    logs = ("my runs/seed_1.csv", "my runs/seed_2.csv")
    document = json.loads(command("seeds", *logs, "--format", "json").out)
    assert document["outcome"] == "stochastic"
    (note,) = document["notes"]
    assert "fails at step 997, where the steps looked at end" in note
    assert "stabdiag analyze 'my runs/seed_1.csv'" in document["next_steps"]
    document = json.loads(command("seeds", *logs, "--steps", "0:1600", "--format", "json").out)
    assert document["notes"] == []


def test_the_samples_are_stochastic(command: Command) -> None:
    logs = [ROOT / "sample_logs" / f"seed_{n}.csv" for n in (1, 2, 3, 4)]
    done = command("seeds", *logs)
    assert (done.code, done.out.splitlines()[1][:13]) == (0, " STOCHASTIC  ")
    document = json.loads(command("seeds", *logs, "--format", "json").out)
    validator("seeds").validate(document)
    assert (document["outcome"], document["failed"]) == ("stochastic", 2)
    assert command("seeds", *logs, "--fail-on", "error").code in (0, 1)
    assert command("seeds", *logs, "--fail-on", "warning").code == 1


def test_a_fault_beyond_the_first_steps_is_said_apart(command: Command, folder: Path) -> None:
    for seed in (1, 2):
        columns = healthy(1600, seed=seed)
        spike(columns, "loss", 1400, 4.0, 3)
        write(folder / f"seed_{seed}.csv", columns)
    done = command("seeds", "seed_1.csv", "seed_2.csv")
    assert " HEALTHY " in done.out
    assert "unstable later" in done.out
    assert " HEALTHY " not in command("seeds", "seed_1.csv", "seed_2.csv", "--first", "1600").out


def test_the_runs_of_one_file_are_seeds(command: Command, folder: Path) -> None:
    lines = ["run,step,loss,grad_norm"]
    for seed in (1, 2, 3):
        columns = healthy(200, seed=seed)
        rows = zip(columns["loss"].tolist(), columns["grad_norm"].tolist(), strict=True)
        lines += [f"s{seed},{t},{x!r},{g!r}" for t, (x, g) in enumerate(rows)]
    (folder / "all.csv").write_text("\n".join(lines) + "\n")
    done = command("seeds", "all.csv", "--format", "json")
    assert done.code == 0, done.err
    assert [run["run"] for run in json.loads(done.out)["runs"]] == ["s1", "s2", "s3"]


def test_what_can_not_be_read_is_named(command: Command, folder: Path) -> None:
    write(folder / "one.csv", healthy(100))
    done = command("seeds", "one.csv", "none.csv")
    assert done.code == 2
    assert "none.csv: no such file" in done.err
