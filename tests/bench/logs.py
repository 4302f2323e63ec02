"""Large logs with one loss spike, written in the formats whose reading is timed.

Run as a program it writes one log, so that the process that measures stays small:
`python -m tests.bench.logs FORMAT ROWS COLUMNS FILE`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

GLOBAL_COLUMNS = ("step", "loss", "grad_norm", "lr", "param_norm")
DIGITS = 6  # significant digits, as trainers log them
ROWS_AT_ONCE = 1_000_000  # so that a file beyond memory can be written
Columns = dict[str, NDArray[np.int64] | NDArray[np.float64]]


def training_columns(rows: int, columns: int, part: int = 0) -> Columns:
    """Return `columns` columns of `rows` steps: five global series, then per-layer grad norms.

    The loss falls and has one spike at two thirds; the same call gives the same numbers. Only the
    steps of one `part` of ROWS_AT_ONCE steps are returned.
    """
    draw = np.random.default_rng((7, part))
    step = np.arange(part * ROWS_AT_ONCE, min((part + 1) * ROWS_AT_ONCE, rows), dtype=np.int64)
    progress = step / max(rows - 1, 1)
    spike = np.exp(-np.maximum(step - 2 * rows // 3, 0) / 5.0) * (step >= 2 * rows // 3)
    noise = draw.standard_normal((step.size, columns))
    table: Columns = {
        "step": step,
        "loss": 2.0 + 3.0 * np.exp(-6.0 * progress) + 0.02 * noise[:, 0] + 2.0 * spike,
        "grad_norm": np.exp(0.1 * noise[:, 1]) * (1.0 + 8.0 * spike),
        "lr": 3e-4 * np.minimum(step / 1000, 1.0) * (0.55 + 0.45 * np.cos(np.pi * progress)),
        "param_norm": 30.0 + 10.0 * progress,
    }
    for layer in range(columns - len(GLOBAL_COLUMNS)):
        values = 0.1 * np.exp(0.1 * noise[:, len(GLOBAL_COLUMNS) + layer]) * (1.0 + 8.0 * spike)
        table[f"grad_norm/layers.{layer}.mlp.weight"] = values
    return {name: rounded(values) if name != "step" else values for name, values in table.items()}


def rounded(values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to a fixed number of significant digits; 0 stays 0."""
    size = np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    unit = 10.0 ** (size - DIGITS + 1)
    result: NDArray[np.float64] = np.round(values / unit) * unit
    return result


def write_log(kind: str, rows: int, columns: int, path: Path) -> None:
    """Write one log as "csv", "parquet", "jsonl" or "trainer_state"."""
    parts = (training_columns(rows, columns, part) for part in range(-(-rows // ROWS_AT_ONCE)))
    if kind == "csv":
        with path.open("wb") as file:
            for part, table in enumerate(parts):
                options = pa.csv.WriteOptions(include_header=part == 0)
                pa.csv.write_csv(pa.table(table), file, options)
    elif kind == "parquet":
        first = pa.table(next(parts))
        with pa.parquet.ParquetWriter(path, first.schema) as file:
            file.write_table(first)
            for table in parts:
                file.write_table(pa.table(table))
    elif kind == "jsonl":
        with path.open("w", encoding="utf-8") as lines:
            for table in parts:
                names = list(table)
                for values in zip(*(table[name].tolist() for name in names), strict=True):
                    lines.write(json.dumps(dict(zip(names, values, strict=True))) + "\n")
    elif kind == "trainer_state":
        table = next(parts)
        names = ["step", "loss", "grad_norm", "learning_rate"]
        series = [table[name].tolist() for name in ("step", "loss", "grad_norm", "lr")]
        records = [dict(zip(names, values, strict=True)) for values in zip(*series, strict=True)]
        state = {"global_step": rows, "max_steps": rows, "log_history": records}
        path.write_text(json.dumps(state, indent=2), encoding="utf-8")
    else:
        raise ValueError(f"no such kind of log: {kind}")


if __name__ == "__main__":
    write_log(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
