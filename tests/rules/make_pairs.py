"""Write the three small logs of every rule: bad (it fires), good (it must not), blind (not tested).

`python -m tests.rules.make_pairs [SD101 ...]` writes tests/rules/SDnnn/ again: bad, good and blind,
and truth.json with what each must give. The bad log's fault and the good log's near miss are the
lines of one function here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.make_runs import Cell, healthy, healthy_layers, spike, write_log

F64: TypeAlias = NDArray[np.float64]
Log: TypeAlias = dict[str, F64] | str  # columns, or the text of a console log

FOLDER = Path(__file__).resolve().parent
POINTS = 160
AT = 100  # index, and step, at which the faults are put in


@dataclass(frozen=True)
class Trio:
    """The three logs of a rule and what they must give.

    `step` is the bad log's finding's step (None: it has none). `companions` are rules that can't
    but fire too. `blind_says` is a phrase of the reason with which the blind log's workflow step
    (or check, or monitoring item) says that it was not tested; "" where a rule needs nothing.
    """

    bad: Log
    good: Log
    blind: Log | None
    step: int | None
    blind_says: str
    companions: tuple[str, ...] = ()
    suffix: str = ".csv"


TRIOS: dict[str, Callable[[], Trio]] = {}


def trio(make: Callable[[], Trio]) -> Callable[[], Trio]:
    """Register a maker under the rule that its name ends with."""
    TRIOS[make.__name__.upper()] = make
    return make


def base(*names: str, points: int = POINTS, noise: float = 0.02) -> dict[str, F64]:
    """The named columns of a healthy run, step and loss first."""
    columns = healthy(points, seed=7, noise=noise)
    return {n: columns[n] for n in ("step", "loss", *names)}


def without(columns: Mapping[str, F64], *names: str) -> dict[str, F64]:
    return {k: v for k, v in columns.items() if k not in names}


def with_(columns: Mapping[str, F64], **more: F64) -> dict[str, F64]:
    return {**columns, **more}


def copy(columns: Mapping[str, F64]) -> dict[str, F64]:
    return {k: v.copy() for k, v in columns.items()}


def head(columns: Mapping[str, F64], points: int) -> dict[str, F64]:
    return {k: v[:points] for k, v in columns.items()}


def layers(points: int = POINTS, *, metric: str = "grad_norm") -> dict[str, F64]:
    columns = healthy_layers(points, blocks=4)
    return {k: v for k, v in columns.items() if k.startswith(metric + "/") and "ln_1" not in k}


def restart(columns: Mapping[str, F64], *, at: int = AT, repeat: int = 10) -> dict[str, F64]:
    """The run stops after index `at` and goes on from `repeat` steps before, which it repeats."""
    rng = np.random.default_rng(9)
    out = {}
    for name, values in columns.items():
        again = values[at - repeat :].copy()
        if name == "loss":
            again = again + 0.02 * rng.standard_normal(again.size)
        out[name] = np.concatenate([values[:at], again])
    return out


@trio
def sd101() -> Trio:
    bad, good = base(), base()
    spike(bad, "loss", AT, 3.0, points=3)
    spike(good, "loss", AT, 0.12)
    return Trio(bad, good, head(base(), 8), AT, "too few for a baseline")


@trio
def sd102() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"][AT] *= 25.0
    good["grad_norm"][AT] *= 2.5
    return Trio(bad, good, base(), AT, "the grad norm is not logged")


@trio
def sd103() -> Trio:
    bad, good = base(), base()
    bad["loss"][AT:] += 0.03 * np.arange(POINTS - AT)
    good["loss"][AT:] += 0.004 * np.arange(POINTS - AT)
    return Trio(bad, good, head(base(), 5), AT + 13, "too few for a baseline", ("SD104",))


@trio
def sd104() -> Trio:
    bad, good = base(points=320, noise=0.1), base(points=320, noise=0.1)
    bad["loss"][220:] += 0.4
    good["loss"][220:] += 0.1
    return Trio(bad, good, head(base(), 8), 220, "too few for a baseline")


@trio
def sd105() -> Trio:
    run = restart(base())
    bad = copy(run)
    bad["loss"][AT:] -= 0.5
    return Trio(bad, run, head(run, AT + 2), AT - 10, "restart")


@trio
def sd106() -> Trio:
    bad, good = base("lr"), base("lr")
    bad["lr"] = np.full(POINTS, 3e-4)
    bad["lr"][AT:] = 9e-4
    good["lr"] = 1e-3 * np.minimum(1.0, (np.arange(POINTS) + 1) / 60.0)
    return Trio(bad, good, base(), AT, "the learning rate is not logged")


@trio
def sd107() -> Trio:
    good = restart(base("lr"))
    bad = copy(good)
    bad["lr"][AT:] = 1e-3 * np.minimum(1.0, np.arange(1, POINTS - AT + 11) / 40.0)
    return Trio(bad, good, without(good, "lr"), AT - 10, "the learning rate is not logged")


@trio
def sd108() -> Trio:
    bad = base()
    bad["loss"] = np.log(256) + 0.004 * np.random.default_rng(3).standard_normal(POINTS)
    blind = head(bad, 40)
    blind["loss"] = 0.7 * blind["loss"]  # no level of its own that tells
    return Trio(bad, base(), blind, 0, "fewer than 100")


@trio
def sd109() -> Trio:
    bad, good = base(), base()
    for at in (60, 100, 130):
        spike(bad, "loss", at, 3.0)
    for at in (60, 130):
        spike(good, "loss", at, 3.0)
    blind = without(base("grad_norm"), "loss")
    return Trio(bad, good, blind, 60, "no loss is logged", ("SD101",))


@trio
def sd110() -> Trio:
    bad, good = base("grad_norm", "lr"), base("grad_norm", "lr")
    cut = np.where(np.arange(POINTS) >= AT, np.nan, 0.0)
    bad["loss"] = bad["loss"] + cut
    bad["grad_norm"] = bad["grad_norm"] + cut
    good["loss"] = good["loss"] + np.where(np.arange(POINTS) % 2, np.nan, 0.0)
    blind = without(base("grad_norm", "lr"), "loss")
    return Trio(
        bad, good, blind, AT, "no loss is logged", ("SD302", "SD306", "SD704"), suffix=".gaps.csv"
    )


@trio
def sd111() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"][60:] *= np.exp(0.1 * np.arange(POINTS - 60))
    good["grad_norm"][60:] *= np.exp(0.02 * np.arange(POINTS - 60))
    return Trio(bad, good, base(), 72, "the grad norm is not logged")


@trio
def sd112() -> Trio:
    bad, good = base("grad_norm", points=320), base("grad_norm", points=320)
    for name in ("loss", "grad_norm"):  # both: the normalisation of what is summed changed
        bad[name][220:] *= 8.0
    good["loss"][220:] *= 8.0  # the loss alone: another course
    return Trio(
        bad, good, head(base(), 8), 220, "too few for a baseline", ("SD101", "SD102", "SD103")
    )


@trio
def sd113() -> Trio:
    growing = 20.0 * np.exp(3.0 * np.arange(POINTS) / POINTS)
    bad = with_(base(), attn_logit_max=growing)
    good = with_(base(), attn_logit_max=20.0 + growing / 10.0)
    return Trio(bad, good, base(), 0, "no per-layer")


@trio
def sd201() -> Trio:
    length = 500.0 + 10.0 * np.random.default_rng(4).standard_normal(POINTS).round()
    good = with_(base(), seq_len_mean=length)
    spike(good, "loss", AT, 3.0)
    bad = copy(good)
    bad["seq_len_mean"][AT] = 2000.0
    blind = without(good, "seq_len_mean")
    return Trio(bad, good, blind, AT, "no data indices and no batch statistics", ("SD101",))


@trio
def sd202() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    for at in (60, AT, 131):
        bad["loss"][at] = bad["grad_norm"][at] = 0.0
        good["loss"][at] *= 0.95
    return Trio(bad, good, without(good, "loss"), 60, "the loss is not logged")


@trio
def sd203() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["loss"][AT] = np.nan
    return Trio(bad, good, without(good, "loss"), AT, "the loss is not logged")


@trio
def sd301() -> Trio:
    bad, good = base(), base()
    bad["loss"][AT:] = np.nan
    good["loss"][AT:] += 0.05
    return Trio(bad, good, without(base("grad_norm"), "loss"), AT, "the loss is not logged")


@trio
def sd302() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"][AT : AT + 8] = np.nan
    good["grad_norm"][AT] = np.nan
    return Trio(bad, good, base(), AT, "the grad norm is not logged")


@trio
def sd303() -> Trio:
    bad = base("grad_norm", "lr")
    for at in (30, 70, 131):
        bad["grad_norm"][at] = np.inf
    return Trio(bad, base("grad_norm", "lr"), base(), 30, "the grad norm is not logged")


@trio
def sd304() -> Trio:
    scale = np.full(POINTS, 65536.0)
    bad, good = with_(base(), loss_scale=scale.copy()), with_(base(), loss_scale=scale.copy())
    bad["loss_scale"][AT:] = 65536.0 * 0.5 ** np.arange(1, POINTS - AT + 1)
    good["loss_scale"][AT : AT + 30] = 32768.0
    blind = with_(base(), loss_scale=np.full(POINTS, np.nan))
    return Trio(bad, good, blind, AT, "no finite value was logged")


@trio
def sd305() -> Trio:
    top = 300.0 + np.random.default_rng(5).standard_normal(POINTS)
    bad, good = with_(base(), activation_max=top.copy()), with_(base(), activation_max=top.copy())
    bad["activation_max"][AT:] = 48000.0
    good["activation_max"][AT:] = 20000.0
    return Trio(bad, good, without(base("grad_norm"), "loss"), AT, "no loss is logged")


@trio
def sd306() -> Trio:
    bad = base("grad_norm")
    bad["loss"][AT:] = 0.0
    bad["grad_norm"][AT:] = np.nan
    good = base("grad_norm")
    good["loss"][AT:] *= 0.98
    blind = without(base("grad_norm"), "loss")
    return Trio(bad, good, blind, AT, "the loss is not logged", ("SD302", "SD704"))


@trio
def sd307() -> Trio:
    good = with_(base(), **layers())
    bad = copy(good)
    bad["grad_norm/h.2.mlp.c_fc.weight"][AT:] = np.nan
    bad["loss"][AT + 1 :] = np.nan
    for name in bad:
        if name.startswith("grad_norm/"):
            bad[name][AT + 1 :] = np.nan
    return Trio(bad, good, base(), AT, "no per-layer", ("SD301", "SD302"))


@trio
def sd308() -> Trio:
    bad, good = base("param_norm"), base("param_norm")
    bad["param_norm"][AT:] = np.nan
    good["param_norm"][AT:] += 0.2
    return Trio(bad, good, base(), AT, "the parameter norm is not logged")


@trio
def sd401() -> Trio:
    bad, good = with_(base(), **layers()), with_(base(), **layers())
    bad["grad_norm/h.1.mlp.c_fc.weight"] *= 60.0
    good["grad_norm/h.1.mlp.c_fc.weight"] *= 4.0
    return Trio(bad, good, base(), None, "no per-layer")


@trio
def sd402() -> Trio:
    good = with_(base(), **layers())
    spike(good, "loss", AT, 3.0, points=3)
    for name in good:
        if name.startswith("grad_norm/"):
            good[name][AT : AT + 3] *= 8.0
    bad = copy(good)
    bad["grad_norm/h.1.attn.c_proj.weight"][AT - 6 : AT] *= 6.0
    return Trio(bad, good, base(), AT - 6, "no per-layer", ("SD101", "SD102"))


@trio
def sd403() -> Trio:
    bad = with_(base(), **layers(metric="param_norm"))
    good = with_(base(), **layers(metric="param_norm"))
    t = np.arange(POINTS) / (POINTS - 1)
    bad["param_norm/h.3.mlp.c_fc.weight"] *= 20.0**t
    good["param_norm/h.3.mlp.c_fc.weight"] *= 2.0**t
    return Trio(bad, good, base(), None, "no per-layer")


@trio
def sd404() -> Trio:
    good = with_(base(), **layers(metric="param_norm"))
    spike(good, "loss", AT, 3.0, points=4)
    bad = copy(good)
    bad["param_norm/h.2.attn.c_proj.weight"][AT:] *= 2.5
    return Trio(bad, good, base(), AT, "no per-layer", ("SD101",))


@trio
def sd405() -> Trio:
    bad, good = with_(base(), **layers()), with_(base(), **layers())
    for i in range(4):
        for name in (f"h.{i}.attn.c_proj.weight", f"h.{i}.mlp.c_fc.weight"):
            bad[f"grad_norm/{name}"] *= 0.05 ** (3 - i)
            good[f"grad_norm/{name}"] *= 0.6 ** (3 - i)
    return Trio(bad, good, base(), None, "no per-layer")


@trio
def sd406() -> Trio:
    bad, good = base("param_norm"), base("param_norm")
    bad["step"] = good["step"] = 5.0 * np.arange(POINTS, dtype=np.float64)
    bad["param_norm"] = 40.0 * np.exp(2.5 * np.arange(POINTS) / POINTS)
    good["param_norm"] = 40.0 * np.exp(0.5 * np.arange(POINTS) / POINTS)
    return Trio(bad, good, base(), 0, "the parameter norm is not logged")


@trio
def sd407() -> Trio:
    bad, good = base("param_norm"), base("param_norm")
    bad["param_norm"][AT:] *= 1.25
    good["param_norm"][AT:] *= 1.01
    return Trio(bad, good, base(), AT, "the parameter norm is not logged")


@trio
def sd408() -> Trio:
    bad, good = base("grad_norm", "param_norm"), base("grad_norm", "param_norm")
    bad["grad_norm"] *= 10.0
    return Trio(bad, good, base("grad_norm"), 0, "the parameter norm is not logged")


@trio
def sd409() -> Trio:
    good = with_(base("grad_norm"), **layers())
    good["grad_norm"] *= 0.1
    bad = copy(good)
    for at in (50, 80, AT, 130):
        for run in (bad, good):
            run["grad_norm"][at] *= 40.0
        for name in good:
            if name.startswith("grad_norm/"):
                good[name][at] *= 40.0
        bad["grad_norm/h.1.attn.c_proj.weight"][at] *= 40.0
    return Trio(bad, good, base("grad_norm"), 50, "no per-layer", ("SD102",))


@trio
def sd410() -> Trio:
    scales = {k: v for k, v in healthy_layers(POINTS).items() if "param_norm" in k and "ln" in k}
    bad, good = copy(with_(base(), **scales)), copy(with_(base(), **scales))
    bad["param_norm/h.2.ln_1.weight"] *= 8.0 ** (np.arange(POINTS) / POINTS)
    good["param_norm/h.2.ln_1.weight"] *= 1.6 ** (np.arange(POINTS) / POINTS)
    return Trio(bad, good, base(), None, "no per-layer")


@trio
def sd501() -> Trio:
    bad, good = base(), base()
    bad["loss"] += 25.0 * np.exp(-np.arange(POINTS) / 8.0)
    return Trio(bad, good, head(base(), 6), 0, "at the start")


@trio
def sd502() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"] *= 1.0 + 30.0 * np.exp(-np.arange(POINTS) / 6.0)
    good["grad_norm"] *= 1.0 + 2.0 * np.exp(-np.arange(POINTS) / 6.0)
    return Trio(bad, good, head(base("grad_norm"), 6), 0, "at the start")


@trio
def sd503() -> Trio:
    bad = with_(base(), **layers(metric="param_norm"))
    good = copy(bad)
    fall = 1.0 - 0.3 * np.arange(POINTS) / POINTS
    bad["param_norm/h.1.mlp.c_fc.weight"] = 200.0 * fall
    good["param_norm/h.1.mlp.c_fc.weight"] = 20.0 * fall
    return Trio(bad, good, base(), None, "no per-layer")


@trio
def sd504() -> Trio:
    bad, good = base("param_norm"), base("param_norm")
    bad["param_norm"] = 40.0 * (1.0 - 0.1 * np.arange(POINTS) / POINTS)
    return Trio(bad, good, base(), 0, "the parameter norm is not logged")


@trio
def sd701() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"] = np.minimum(2.0 * bad["grad_norm"], 1.0)
    return Trio(bad, good, base(), None, "the grad norm is not logged")


@trio
def sd702() -> Trio:
    bad, good = base("grad_norm"), base("grad_norm")
    bad["grad_norm"] = np.zeros(POINTS)
    good["grad_norm"] *= 1e-3
    return Trio(bad, good, base(), 0, "the grad norm is not logged")


@trio
def sd703() -> Trio:
    good = with_(base("grad_norm", "param_norm", "lr"), val_loss=base()["loss"], **layers())
    good["batch_id"] = np.arange(POINTS, dtype=np.float64)
    return Trio(base(), good, None, None, "")


@trio
def sd704() -> Trio:
    good = base("lr")
    rows = [f"{s:.0f},{x:.5g},{r:.5g}" for s, x, r in zip(*good.values(), strict=True)]
    damaged = [*rows[:AT], f"{AT},?!7#,{good['lr'][AT]:.5g}", *rows[AT + 1 :]]
    bad = "\n".join(["step,loss,lr", *damaged]) + "\n"
    return Trio(bad, good, None, None, "")


@trio
def sd705() -> Trio:
    columns = base()
    lines = [
        f"iter {s:.0f}: loss {x:.4f}, time 313.18ms, mfu 31.97%"
        for s, x in zip(columns["step"], columns["loss"], strict=True)
    ]
    good = "\n".join(lines) + "\n"
    crash = 'Traceback (most recent call last):\n  File "train.py", line 301, in <module>\n'
    crash += "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    return Trio(good + crash, good, None, None, "", suffix=".log")


@trio
def sd706() -> Trio:
    bad, good = base("lr"), base("lr")
    bad["lr"] = 1e-3 * np.maximum(0.0, 1.0 - np.arange(POINTS) / 80.0)
    return Trio(bad, good, base(), 80, "the learning rate is not logged")


@trio
def sd707() -> Trio:
    bad, good = base(), base()
    every = np.where(np.arange(POINTS) % 20 == 19, 1.0, np.nan)
    good["val_loss"] = good["loss"] * every
    bad["val_loss"] = np.where(np.arange(POINTS) >= AT, np.inf * every, good["val_loss"])
    return Trio(bad, good, base(), 119, "", suffix=".gaps.csv")


def rounded(columns: Mapping[str, F64], gaps: bool) -> dict[str, list[Cell]]:
    """Five significant digits, as loops log them; NaN as an empty cell where `gaps`."""
    out: dict[str, list[Cell]] = {}
    for name, values in columns.items():
        cells: list[Cell] = [float(f"{v:.5g}") for v in values.tolist()]
        if name in ("step", "batch_id", "loss_scale") and np.isfinite(values).all():
            cells = [int(v) if v == int(v) else v for v in values.tolist()]
        out[name] = [None if gaps and c != c else c for c in cells]
    return out


def write_trio(rule: str, folder: Path = FOLDER) -> None:
    """Write the logs of one rule and their truth into `folder`/`rule`."""
    made = TRIOS[rule]()
    place = folder / rule
    place.mkdir(exist_ok=True)
    gaps = made.suffix.startswith(".gaps")
    suffix = made.suffix.removeprefix(".gaps")
    for name, log in (("bad", made.bad), ("good", made.good), ("blind", made.blind)):
        path = place / f"{name}{suffix}"
        if isinstance(log, str):
            path.write_text(log, encoding="utf-8")
        elif log is not None:
            write_log(path, rounded(log, gaps))
    truth = {"step": made.step, "companions": made.companions, "blind_says": made.blind_says}
    (place / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or TRIOS:
        write_trio(chosen)
