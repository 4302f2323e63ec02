"""Score the diagnosis: `python -m tests.accuracy [--bench DIR ...] [--incidents DIR]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.accuracy import pipeline, tables
from tests.accuracy.answers import answer_of
from tests.accuracy.baselines import PLAIN_RULES
from tests.accuracy.incidents import judge_incident, read_expected
from tests.accuracy.labels import BenchError, Label, read_labels, select
from tests.accuracy.scoring import judge, score, with_own_hit_rate

SHARED = Path(__file__).resolve().parents[3] / "shared"
WIDEST = 100  # columns; the tables are made to be read at 80 to 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return 0; 2 where there is nothing to measure."""
    options = _parser().parse_args(arguments)
    benches = options.bench or ([] if options.only_incidents else [SHARED / "faultbench/dev"])
    console = Console(highlight=False)
    console.width = min(max(console.width, 80), WIDEST)
    try:
        labels = [label for bench in benches for label in read_labels(bench)]
        expected = {} if options.no_incidents else read_expected(options.incidents)
    except BenchError as err:
        print(f"accuracy: {err}", file=sys.stderr)
        print(
            "Say where the labelled runs and the incidents are: --bench DIR --incidents DIR "
            "(or --no-incidents, --only-incidents).",
            file=sys.stderr,
        )
        return 2
    labels = select(labels, options.only, options.limit)
    reports: dict[str, Mapping[str, Any]] = {}
    if labels:
        reports |= measure_runs(console, labels, options)
    if expected:
        reports |= measure_incidents(console, options.incidents, expected, options.jobs)
    if options.save:
        text = json.dumps(reports, indent=1, sort_keys=True)
        options.save.write_text(text + "\n", encoding="utf-8")
    return 0


def measure_runs(
    console: Console, labels: Sequence[Label], options: argparse.Namespace
) -> dict[str, Mapping[str, Any]]:
    """Score the tool and the plain rules on labelled runs; return the JSON reports by file."""
    work = pipeline.outcome_alone if options.no_baselines else pipeline.outcome_with_baselines
    outcomes = pipeline.run_all(work, labels, options.jobs)
    judged = [
        judge(label, answer_of(outcome.report), outcome.logged)
        for label, outcome in zip(labels, outcomes, strict=True)
    ]
    baselines = {}
    if not options.no_baselines:
        for rule in PLAIN_RULES:
            plain = [
                judge(label, outcome.baselines[rule.name], outcome.logged)
                for label, outcome in zip(labels, outcomes, strict=True)
                if rule.name in outcome.baselines
            ]
            baselines[rule.name] = score(with_own_hit_rate(plain))
    tables.show_scores(console, score(judged), baselines, runs=len(labels))
    if options.show_wrong:
        tables.show_wrong(console, judged)
    tables.show_failed(console, judged)
    return {
        f"{label.path.parent.name}/{label.path.name}": outcome.report
        for label, outcome in zip(labels, outcomes, strict=True)
    }


def measure_incidents(
    console: Console, folder: Path, expected: Mapping[str, Mapping[str, Any]], processes: int
) -> dict[str, Mapping[str, Any]]:
    """Score the tool on the reported incidents; return the JSON reports by file."""
    reports = pipeline.run_all(pipeline.report_of, [folder / name for name in expected], processes)
    by_name = dict(zip(expected, reports, strict=True))
    results = [judge_incident(name, expected[name], by_name[name]) for name in expected]
    tables.show_incidents(console, results)
    return {f"{folder.name}/{name}": report for name, report in by_name.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy",
        description="Score the diagnosis on labelled runs and on reported incidents.",
    )
    add = parser.add_argument
    add("--bench", type=Path, action="append", metavar="DIR", help="labelled runs; repeatable")
    add("--incidents", type=Path, metavar="DIR", default=SHARED / "incidents")
    add("--no-incidents", action="store_true", help="labelled runs alone")
    add("--only-incidents", action="store_true", help="incidents alone, unless --bench is given")
    add("--no-baselines", action="store_true", help="leave the plain rule out")
    add("--only", metavar="GLOB", help="runs whose file, id, fault or cause matches")
    add("--limit", type=int, metavar="N", help="at most the first N of them")
    add("--show-wrong", action="store_true", help="one line for each wrong cause")
    add("--save", type=Path, metavar="FILE", help="write the JSON reports there")
    add("--jobs", type=int, default=2, metavar="N", help="processes (2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
