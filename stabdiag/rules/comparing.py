"""Rules of the commands that look at several runs: compare and seeds."""

from __future__ import annotations

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

PARTED = Rule(
    id="SD801",
    name="runs-part",
    workflow_step=0,
    severity=Severity.WARNING,
    needs=("loss",),
    what="The candidate's loss parts from the base's beyond the noise of both, and ends higher.",
    why_bad="At equal steps it learns less: a change of code, data or configuration made it worse.",
    advice="Look at what changed at the step where they part: learning rate, batch, code, data.",
    thresholds=(
        Threshold(
            "min_errors",
            4.0,
            "standard errors of a window's mean difference",
            "of 1,080 simulated healthy pairs 5 were called worse, 4 of them among 60 of 100 points "
            "that wander by 1 % of the level; 9 of 9 recorded healthy pairs of two seeds were the same",
        ),
        Threshold(
            "min_share",
            0.02,
            "share of the loss level",
            "project choice: half of the differences of this size are found, nearly all of 5 %",
        ),
        Threshold(
            "min_share_same_data",
            0.002,
            "share of the loss level",
            "project choice: where both saw the same batches most of the noise is common",
        ),
        Threshold("windows", 20, "windows", "of the common steps; a few points each at the least"),
        Threshold("min_points", 20, "common logged points", "fewer say nothing of the noise"),
        Threshold("norm_ratio", 1.3, "times", "a level of a norm so far apart is worth a line"),
        Threshold("layer_ratio", 2.0, "times", "of a layer's norm, beside what all layers did"),
    ),
    command="compare",
    example="stabdiag compare main.csv branch.csv --fail-on warning",
    sources=("project measurement",),
)
SEED_PATTERN = Rule(
    id="SD802",
    name="same-across-seeds",
    workflow_step=5,
    severity=Severity.WARNING,
    needs=("loss",),
    what="Of several seeds, how many fail, and whether in the same way, place and layers.",
    why_bad="What every seed repeats is a matter of architecture or hyperparameters; what only some "
    "do is luck, or an initialization that is not reliable.",
    advice="Systematic: change architecture or hyperparameters. Stochastic: a more reliable "
    "initialization, or a wider margin. Tied to the data: look at that batch.",
    thresholds=(
        Threshold("first_steps", 1000, "steps", "handbook step 5: re-run the first 1000 steps"),
        Threshold(
            "same_place",
            0.1,
            "share of the steps looked at",
            "onsets no further apart are one place",
        ),
        Threshold(
            "same_kind", 0.75, "share of the failing seeds", "so many agree: one kind", below=1.01
        ),
    ),
    command="seeds",
    example="stabdiag seeds seed_1.csv seed_2.csv seed_3.csv",
    sources=("handbook step 5", "labelled fault-injection runs, section 7"),
)
RULES = (PARTED, SEED_PATTERN)
