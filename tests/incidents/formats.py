"""Log texts as the tools write them.

A cell is a number, a text, or None where nothing was logged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Cell: TypeAlias = float | int | str | None
Column: TypeAlias = Sequence[Cell] | NDArray[Any]
Columns: TypeAlias = Mapping[str, Column]


def rows(columns: Columns) -> list[dict[str, Cell]]:
    """Turn columns of one length into rows, numbers with seven significant digits."""
    names = list(columns)
    cells = zip(*(columns[name] for name in names), strict=True)
    return [{n: _plain(c) for n, c in zip(names, row, strict=True)} for row in cells]


def _plain(cell: object) -> Cell:
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, int | np.integer):
        return int(cell)
    number = float(cell)  # type: ignore[arg-type]
    return float(f"{number:.7g}") if math.isfinite(number) else number


def csv(columns: Columns, separator: str = ",") -> str:
    """Return a table with a header; None is an empty cell, NaN the word nan."""
    lines = [separator.join(columns)]
    for row in rows(columns):
        lines.append(separator.join("" if c is None else str(c) for c in row.values()))
    return "\n".join(lines) + "\n"


def jsonl(columns: Columns) -> str:
    """Return one object a row; None is an absent key, NaN the bare word that json writes."""
    return "".join(
        json.dumps({k: c for k, c in row.items() if c is not None}) + "\n" for row in rows(columns)
    )


def trainer_state(columns: Columns, *, per_epoch: int, eval_loss: Mapping[int, float]) -> str:
    """Return the trainer_state.json of the Hugging Face Trainer; the column "step" is needed.

    `eval_loss` gives evaluations by step; each stands after the training record of its step.
    """
    history: list[dict[str, Cell]] = []
    for row in rows(columns):
        step = int(str(row["step"]))
        loss = row.get("loss")
        kept = {k: c for k, c in row.items() if c is not None}
        if isinstance(loss, float):
            kept["loss"] = round(loss, 4)
        history.append({"epoch": round(step / per_epoch, 4), **kept})
        if step in eval_loss:
            history.append(
                {"epoch": round(step / per_epoch, 4), "eval_loss": eval_loss[step],
                 "eval_runtime": 12.4, "step": step}
            )  # fmt: skip
    last = int(str(history[-1]["step"]))
    state = {
        "best_metric": None,
        "epoch": last / per_epoch,
        "global_step": last,
        "is_hyper_param_search": False,
        "is_world_process_zero": True,
        "log_history": history,
    }
    return json.dumps(state, indent=2) + "\n"


def megatron(columns: Columns, *, total: int, batch: int) -> str:
    """Return Megatron-LM console lines; where "lm loss" is NaN or None the field is left out."""
    lines = ["using world size: 256, data-parallel-size: 32, tensor-model-parallel size: 8"]
    for row in rows(columns):
        step = int(str(row["step"]))
        fields = [
            f"iteration {step:8d}/{total:8d}",
            f"consumed samples: {step * batch:12d}",
            "elapsed time per iteration (ms): 24379.9",
            f"learning rate: {float(str(row['lr'])):.6E}",
            f"global batch size: {batch:5d}",
        ]
        loss = row["lm loss"]
        if isinstance(loss, float) and math.isfinite(loss):
            fields.append(f"lm loss: {loss:.6E}")
        fields += [
            f"loss scale: {float(str(row['loss scale'])):.1f}",
            f"grad norm: {float(str(row['grad norm'])):.3f}",
            f"number of skipped iterations: {int(float(str(row.get('skipped') or 0))):3d}",
            "number of nan iterations:   0",
        ]
        lines.append(" " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def fairseq(columns: Columns, *, last_line: str = "") -> str:
    """Return fairseq's train_inner lines in their JSON form, numbers in quotes."""
    lines = []
    for row in rows(columns):
        values = {
            "epoch": 1,
            "loss": f"{float(str(row['loss'])):.3f}",
            "num_updates": str(row["step"]),
            "lr": f"{float(str(row['lr'])):.6g}",
            "gnorm": f"{float(str(row['gnorm'])):.3f}",
            "loss_scale": f"{float(str(row['loss_scale'])):.4g}",
        }
        lines.append(f"2021-11-11 10:24:31 | INFO | train_inner | {json.dumps(values)}")
    return "\n".join([*lines, last_line] if last_line else lines) + "\n"


def torchtitan(columns: Columns) -> str:
    """Return torchtitan's console lines."""
    return "".join(
        f"[rank0]:[titan] 2025-05-30 14:32:58,897 - root - INFO - step: {row['step']:>3}  "
        f"loss: {float(str(row['loss'])):7.4f}  grad_norm: {float(str(row['grad_norm'])):7.4f}  "
        "memory:  2.47GiB(3.12%)  tps: 3,502  tflops: 1.90  mfu: 0.19%\n"
        for row in rows(columns)
    )


def build_nanogpt(columns: Columns) -> str:
    """Return the console lines of build-nanogpt and its kin."""
    return "".join(
        f"step {row['step']:5d} | loss: {float(str(row['loss'])):.6f} | "
        f"lr {float(str(row['lr'])):.4e} | norm: {float(str(row['norm'])):.4f} | "
        "dt: 400.83ms | tok/sec: 1308017.46\n"
        for row in rows(columns)
    )


def wandb_charts(columns: Columns, run: str) -> str:
    """Return W&B's chart export: quoted cells, each metric three times; "Step" comes first."""
    names = [name for name in columns if name != "Step"]
    header = ["Step"] + [
        f"{run} - {name}{suffix}" for name in names for suffix in ("", "__MIN", "__MAX")
    ]
    lines = [",".join(f'"{name}"' for name in header)]
    for row in rows(columns):
        cells = [str(row["Step"])]
        for name in names:
            cell = row[name]
            cells += ["" if cell is None else str(cell).replace("nan", "NaN")] * 3
        lines.append(",".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines)
