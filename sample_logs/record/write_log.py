"""Write a record as a log file, in one of the ways of `styles.py`."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
from configuration import RunConfig
from loop import Record
from naming import spelled
from styles import Style, columns_of

EPOCH_BATCHES = 2500
Value = float | int | str | list[int] | None
Row = dict[str, Value]


def logged_rows(record: Record, style: Style) -> np.ndarray:
    """Return [rows] whether the style writes the loss of that row."""
    return np.array(record.step) % style.cadence == 0


def layer_columns(record: Record, style: Style, naming: str) -> dict[str, list[int]]:
    """Return layer name as logged -> its places in the record's parameter list."""
    groups: dict[str, list[int]] = {}
    if style.layers == "none":
        return groups
    for place, name in enumerate(record.layers):
        label = spelled(name, naming)
        if style.layers == "modules":
            label = label.rpartition(".")[0] or label
        groups.setdefault(label, []).append(place)
    return groups


def write_log(record: Record, config: RunConfig, style: Style, path: Path) -> None:
    """Write the record of that configuration to `path`, numbers to five significant digits."""
    columns = columns_of(style, fp16=config.precision == "fp16")
    rows = _rows(record, config, style, columns)
    header = _header(columns, layer_columns(record, style, config.naming))
    spelled_rows = [{key: _spelled(value, style) for key, value in row.items()} for row in rows]
    if style.format == "csv":
        _write_csv(spelled_rows, header, path)
    elif style.format == "jsonl":
        lines = (json.dumps(row) + "\n" for row in spelled_rows)
        path.write_text("".join(lines), encoding="utf-8")
    else:
        whole = {columns[series] for series in ("step", "tokens", "batch_id") if series in columns}
        _write_parquet(spelled_rows, header, whole, path)


def _header(columns: dict[str, str], layers: dict[str, list[int]]) -> list[str]:
    header: list[str] = []
    for name in columns.values():
        header += [name.replace("*", layer) for layer in layers] if "*" in name else [name]
    return header


def _rows(record: Record, config: RunConfig, style: Style, columns: dict[str, str]) -> list[Row]:
    """Return the rows in the order written; a key that is absent was not logged."""
    layers = layer_columns(record, style, config.naming)
    logged = logged_rows(record, style)
    rows: list[Row] = []
    for place, step in enumerate(record.step):
        shown = step + style.first_step
        head: Row = {columns["step"]: shown}
        row: Row = {}
        if logged[place]:
            row = _scalars(record, place, config, style, columns)
            if style.style == "lightning":
                rows.append({columns["lr"]: row.pop(columns["lr"]), **head})
            row |= _norms(record, place, columns, layers, step % style.param_every == 0)
        if place in record.val_loss and "val_loss" in columns:
            validation: Row = {columns["val_loss"]: record.val_loss[place]}
            if row and style.style not in ("hf", "lightning"):
                row |= validation
            else:
                if row:
                    rows.append(head | row)
                row = validation
        if row:
            rows.append(head | row)
    return rows


def _scalars(
    record: Record, place: int, config: RunConfig, style: Style, columns: dict[str, str]
) -> Row:
    loss = record.loss[place]
    if style.averaged:
        loss = float(np.mean(record.loss[max(place - style.cadence + 1, 0) : place + 1]))
    grad = record.grad_norm[place]
    length, entropy, repetition = record.statistics[place]
    values: dict[str, Value] = {
        "loss": loss,
        "grad_norm": min(grad, config.clip) if style.grad_norm == "post_clip" else grad,
        "lr": record.lr[place],
        "grad_param_ratio": grad / record.param_norm[place] if record.param_norm[place] else 0.0,
        "loss_scale": record.loss_scale[place],
        "tokens": record.tokens[place],
        "seq_len": length,
        "token_entropy": entropy,
        "repetition": repetition,
        "epoch": round((place + 1) / (config.epoch_batches or EPOCH_BATCHES), 4),
        "batch_id": record.batch_id[place],
        "attn_logit_max": record.logit_max[place],
        "samples": record.samples[place],
    }
    return {columns[series]: value for series, value in values.items() if series in columns}


def _norms(
    record: Record,
    place: int,
    columns: dict[str, str],
    layers: dict[str, list[int]],
    parameters: bool,
) -> Row:
    row: Row = {}
    if parameters and "param_norm" in columns:
        row[columns["param_norm"]] = record.param_norm[place]
    for series, values, wanted in (
        ("layer_grad_norm", record.layer_grad[place], True),
        ("layer_param_norm", record.layer_param[place], parameters),
    ):
        if wanted and series in columns:
            for layer, places in layers.items():
                joint = math.hypot(*(values[p] for p in places))
                row[columns[series].replace("*", layer)] = joint
    return row


def _spelled(value: Value, style: Style) -> Value:
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return value if style.non_finite == "NaN" else None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return " ".join(map(str, value)) if isinstance(value, list) else f"{value!r}"


def _write_csv(rows: list[Row], header: list[str], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_text(row.get(name)) for name in header] for row in rows)


def _write_parquet(rows: list[Row], header: list[str], whole: set[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [
        pa.array([row.get(name) for row in rows], pa.int64() if name in whole else pa.float32())
        for name in header
    ]
    pq.write_table(pa.Table.from_arrays(arrays, names=header), path, compression="zstd")
