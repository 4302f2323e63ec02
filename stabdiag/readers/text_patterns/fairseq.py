"""fairseq and metaseq consoles: the `|` styles old and new, and the JSON form."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.record import NO_STEP, Example, Memory, Pattern, Row, RowKind
from stabdiag.readers.text_patterns.tokens import NUM, fields, segment_fields, to_float, whole

EPOCH_ROW = re.compile(r"\| epoch ([0-9]{1,9}) \|")
INNER = re.compile(r"\| epoch ([0-9]{1,9}):?\s{1,12}([0-9]{1,12}) / ([0-9]{1,12}) (?=\w{1,60}=)")
JSON = re.compile(r"\| (train|train_inner|valid|test)[\w.-]{0,60} \| \{\"")
ITEM = re.compile(rf"\"([^\"\n]{{1,120}})\":\s{{0,4}}\"?({NUM})\"?\s{{0,4}}(?=[,}}])")


def read_fairseq(line: str, memory: Memory) -> list[Row] | None:
    """Read a row of updates (`train_inner`), of an epoch (`train`) or of an evaluation."""
    match = JSON.search(line)
    if match is not None:
        found = {item[1]: to_float(item[2]) for item in ITEM.finditer(line, match.end() - 2)}
        kinds: dict[str, RowKind] = {"train_inner": "train", "train": "epoch"}
        return row_of(found, kinds.get(match[1], "eval"), memory)
    match = INNER.search(line)
    if match is not None:
        found = fields(line[match.end() :])
        if "num_updates" not in found:
            epoch, position, length = (float(match[group]) for group in (1, 2, 3))
            found["num_updates"] = max(0.0, epoch - 1) * length + position
        return row_of({"epoch": float(match[1]), **found}, "train", memory)
    match = EPOCH_ROW.search(line)
    if match is None:
        return None
    found = {"epoch": float(match[1]), **segment_fields(line[match.end() :].split("|"))}
    if " valid on " not in line:
        return row_of(found, "epoch", memory)
    if "loss=" in line:
        return []  # an evaluation under way
    named = {prefixed(key): value for key, value in found.items()}
    return row_of(named, "eval", memory)


def prefixed(key: str) -> str:
    """Mark a metric of the validation set that newer versions print under its bare name."""
    return f"valid_{key}" if key in ("loss", "nll_loss", "ppl") else key


def row_of(found: dict[str, float], kind: RowKind, memory: Memory) -> list[Row] | None:
    """Build the row; its step is the number of updates, under any of its names."""
    step = NO_STEP
    for key in [key for key in found if key.endswith("num_updates")]:
        step = whole(found.pop(key), step)
    if not any("loss" in key for key in found):
        return None
    return [Row(kind, step, found)]


FAIRSEQ = Pattern(
    name="fairseq console",
    hints=("| epoch ", "| train", "| valid", "| {"),
    read=read_fairseq,
    step_name="num_updates",
    facts={"loss_base": "2"},
    examples=(
        Example(
            "| epoch 027 | loss 6.343 | nll_loss 4.984 | ppl 31.65 | wps 164346 | "
            "num_updates 10198 | lr 0.000626286 | gnorm 0.390 | clip 0% | oom 0 | "
            "loss_scale 0.500 | wall 23080 | train_wall 21383\n"
            "| epoch 027 | valid on 'valid' subset | valid_loss 8.30118 | valid_nll_loss 7.15366 "
            "| valid_ppl 142.39 | num_updates 10198 | best 4.46376\n"
            "| epoch 027 | valid on 'valid' subset | loss 9.329 | ppl 272.04 | num_updates 10199",
            (
                ("train", 10198, {"loss": 6.343, "gnorm": 0.39, "lr": 0.000626286, "clip": 0.0}),
                ("eval", 10198, {"valid_loss": 8.30118, "best": 4.46376}),
                ("eval", 10199, {"valid_loss": 9.329, "loss": None}),
            ),
        ),
        Example(
            "| epoch 001:    200 / 1374 loss=14.351, ppl=20899.56, num_updates=190, "
            "lr=4.84525e-06, gnorm=3.901, clip=0.000, loss_scale=0.062\n"
            "2020-03-23 11:39:44 | INFO | train_inner | epoch 003:      5 / 356 loss=nan, "
            "nll_loss=8.44, num_updates=700, lr=0.000175, gnorm=156.036, loss_scale=0\n"
            "2020-03-23 11:38:13 | INFO | train | epoch 002 | loss 9.803 | num_updates 700 | "
            "gnorm 55.005",
            (
                ("train", 190, {"loss": 14.351, "gnorm": 3.901, "loss_scale": 0.062}),
                ("train", 700, {"loss": math.nan, "gnorm": 156.036}),
            ),
        ),
        Example(
            '[2021-01-01 10:00:00] | INFO | train | {"epoch": 1, "train_loss": "19.351", '
            '"train_accuracy": 31.6875, "train_gnorm": "36.26", "train_loss_scale": "1", '
            '"train_lr": "0", "train_num_updates": "10"}\n'
            '| INFO | valid | {"epoch": 1, "valid_loss": "NaN", "valid_num_updates": "10"}',
            (
                ("train", 10, {"train_loss": 19.351, "train_gnorm": 36.26, "train_lr": 0.0}),
                ("eval", 10, {"valid_loss": math.nan}),
            ),
        ),
    ),
)

PATTERNS = (FAIRSEQ,)
