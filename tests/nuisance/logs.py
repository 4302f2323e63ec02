"""The logs whose verdict must not move, as columns, and the changes that must not move it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stabdiag import analyze, read_run
from stabdiag.findings import Report
from tests.make_runs import Cell, write_log

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"
LABELLED = ROOT.parent / "shared" / "faultbench" / "dev"


@dataclass(frozen=True)
class Log:
    """One log as columns. `roles` maps canonical names to columns, `layers` metrics to columns."""

    columns: dict[str, list[Cell]]
    step: str
    roles: dict[str, str]
    layers: dict[str, tuple[str, ...]]
    suffix: str = ".csv"

    @property
    def rows(self) -> int:
        return len(self.columns[self.step])

    def steps(self) -> list[int]:
        return [-1 if c is None else int(float(c)) for c in self.columns[self.step]]


@cache
def load(path: Path) -> Log:
    """Read a log without the package's readers; its series are named by the package, once."""
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    columns = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[path.suffix[1:]](path)
    run = read_run(path)
    step = next(
        n
        for n in ("step", "_step", "global_step", "iteration", "train/global_step")
        if n in columns
    )
    roles = {k: s.column for k, s in run.series.items() if s.column in columns}
    layers = {m: tuple(c for b in run.layer_blocks(m) for c in b.columns) for m in run.layers}
    return Log(columns, step, roles, layers, path.suffix)


def _csv(path: Path) -> dict[str, list[Cell]]:
    with path.open(newline="", encoding="utf-8") as source:
        names, *rows = list(csv.reader(source))
    return {n: [_number(row[i]) for row in rows] for i, n in enumerate(names)}


def _jsonl(path: Path) -> dict[str, list[Cell]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {n: [row.get(n) for row in rows] for n in names}


def _parquet(path: Path) -> dict[str, list[Cell]]:
    table = pq.read_table(path)
    return {n: table[n].to_pylist() for n in table.column_names}


def _number(text: str) -> Cell:
    if text == "":
        return None
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def report_of(log: Log, folder: Path) -> Report:
    return analyze(write_log(folder / f"log{log.suffix}", log.columns))


def verdict_of(report: Report) -> tuple[str, int | None]:
    return report.verdict.cause, report.verdict.onset_step


Change = Callable[[Log], Log]


def mapped(log: Log, names: Sequence[str], change: Callable[[float], float]) -> Log:
    """The same log with every number of these columns changed."""
    columns = dict(log.columns)
    for name in names:
        columns[name] = [
            change(float(c)) if isinstance(c, int | float) else c for c in columns[name]
        ]
    return replace(log, columns=columns)


def scaled(factor: float) -> Change:
    """Loss times a factor: the gradients follow, and what is made of them."""

    def change(log: Log) -> Log:
        names = [
            log.roles[n]
            for n in ("loss", "val_loss", "grad_norm", "grad_param_ratio")
            if n in log.roles
        ]
        names += [*log.layers.get("grad_norm", ()), *log.layers.get("grad_param_ratio", ())]
        return mapped(log, list(dict.fromkeys(names)), lambda v: v * factor)

    return change


def shifted(constant: float) -> Change:
    def change(log: Log) -> Log:
        names = [log.roles[n] for n in ("loss", "val_loss") if n in log.roles]
        return mapped(log, names, lambda v: v + constant)

    return change


ALIASES: dict[str, tuple[str, ...]] = {
    "loss": ("loss", "train_loss", "train/loss", "total_loss", "lm loss", "lm_loss", "Train/Loss"),
    "val_loss": ("val_loss", "eval_loss", "validation/loss", "valid_loss", "val/loss"),
    "grad_norm": (
        "grad_norm",
        "gnorm",
        "grad norm",
        "train/grad_norm",
        "global_grad_norm",
        "total_grad_norm",
    ),
    "param_norm": ("param_norm", "params norm", "weight_norm", "params_norm"),
    "lr": ("lr", "learning_rate", "learning rate", "train/learning_rate", "lr-AdamW"),
    "loss_scale": ("loss_scale", "loss scale", "scaler/scale", "grad_scale"),
    "step": ("step", "global_step", "iter", "iteration", "trainer/global_step"),
}


def renamed(choice: int) -> Change:
    """Main columns under other names of theirs; which, follows from `choice`."""

    def change(log: Log) -> Log:
        new = {log.step: ALIASES["step"][choice % len(ALIASES["step"])]}
        for name, column in log.roles.items():
            if name in ALIASES:
                new[column] = ALIASES[name][choice % len(ALIASES[name])]
        kept = {c: new.get(c, c) for c in log.columns}
        columns = {kept[c]: cells for c, cells in log.columns.items()}
        roles = {n: kept[c] for n, c in log.roles.items()}
        return replace(log, columns=columns, step=kept[log.step], roles=roles)

    return change


def permuted(seed: int) -> Change:
    def change(log: Log) -> Log:
        names = list(log.columns)
        order = np.random.default_rng(seed).permutation(len(names))
        return replace(log, columns={names[i]: log.columns[names[i]] for i in order})

    return change


def taken(log: Log, rows: Sequence[int]) -> Log:
    return replace(log, columns={n: [c[i] for i in rows] for n, c in log.columns.items()})


def shuffled(seed: int) -> Change:
    def change(log: Log) -> Log:
        return taken(log, np.random.default_rng(seed).permutation(log.rows).tolist())

    return change


def with_harmless_columns(seed: int) -> Change:
    """Timing, hardware and progress columns that say nothing about stability."""

    def change(log: Log) -> Log:
        rng = np.random.default_rng(seed)
        rows = log.rows
        more: dict[str, list[Cell]] = {
            "mfu": rng.uniform(30.0, 60.0, rows).tolist(),
            "tokens_per_second": rng.lognormal(8.0, 1.0, rows).tolist(),
            "gpu_temperature": rng.normal(60.0, 8.0, rows).tolist(),
            "host": ["node-17"] * rows,
            "data_time": np.where(rng.random(rows) < 0.01, 9.0, 0.1).tolist(),
        }
        return replace(log, columns={**more, **log.columns})

    return change


def written_as(suffix: str) -> Change:
    return lambda log: replace(log, suffix=suffix)


def with_longer_past(onset: int, steps: int) -> Change:
    """The healthy `steps` steps that end 20 before the onset happen twice; all after moves on."""

    def change(log: Log) -> Log:
        stop = onset - 20
        step = log.steps()
        before = [i for i, s in enumerate(step) if s < stop]
        again = [i for i, s in enumerate(step) if stop - steps <= s < stop]
        after = [i for i, s in enumerate(step) if s >= stop]
        longer = taken(log, [*before, *again, *after])
        moved: list[Cell] = [step[i] for i in before]
        moved += [step[i] + steps for i in [*again, *after]]
        return replace(longer, columns={**longer.columns, log.step: moved})

    return change


def thinned(every: int) -> Change:
    """Only every so many logged steps."""

    def change(log: Log) -> Log:
        step = log.steps()
        logged = sorted(set(step))
        kept = set(logged[::every])
        return taken(log, [i for i, s in enumerate(step) if s in kept])

    return change


def without(*names: str) -> Change:
    """Without these series; "layers" and "batch" stand for all per-layer and batch columns."""

    def change(log: Log) -> Log:
        gone = {log.roles[n] for n in names if n in log.roles}
        if "layers" in names:
            gone |= {c for columns in log.layers.values() for c in columns}
        if "grad_norm" in names:
            gone |= {c for m in ("grad_norm", "grad_param_ratio") for c in log.layers.get(m, ())}
            gone |= {log.roles[n] for n in ("grad_param_ratio",) if n in log.roles}
        if "param_norm" in names:
            gone |= set(log.layers.get("param_norm", ()))
        if "batch" in names:
            gone |= {n for n in log.columns if any(w in n for w in BATCH_WORDS)}
        return replace(log, columns={n: c for n, c in log.columns.items() if n not in gone})

    return change


BATCH_WORDS = ("batch", "seq_len", "length", "entropy", "repet")
