"""llm.c's main.log and console, and modded-nanogpt's run logs."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import (
    NO_STEP,
    Example,
    Memory,
    Pattern,
    Row,
    RowKind,
)
from stabdiag.readers.text_patterns.tokens import NUM, fields, integer, segment_fields, to_float

MAIN_LOG = re.compile(r"(?<![\w.])s:([0-9]{1,12}) (trl|tel|eval):")
CONSOLE = re.compile(r"(?<![\w.])step\s{1,8}([0-9]{1,12})/[0-9]{1,12} \| loss ")
VAL_LOSS = re.compile(rf"\s{{0,9}}val loss ({NUM})\s{{0,9}}")
MODDED = re.compile(r"(?<![\w.])step:\s?([0-9]{1,12})/[0-9]{1,12}(?=[ ,])")


def read_main_log(line: str, memory: Memory) -> list[Row] | None:
    """`s:<step> trl:<loss> lr:<lr> norm:<gradient norm>`, `s:<step> tel:<validation loss>`."""
    match = MAIN_LOG.search(line)
    if match is None:
        return None
    found = fields(line[match.start(2) :])
    kind: RowKind = "train" if match[2] == "trl" else "eval"
    return [Row(kind, integer(match[1]), found)] if found else None


def read_console(line: str, memory: Memory) -> list[Row] | None:
    """`step 1/19560 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr ...`: the z-scores are no metric."""
    match = CONSOLE.search(line)
    if match is not None:
        return [
            Row("train", integer(match[1]), segment_fields(line[match.start() :].split("|")[1:]))
        ]
    match = VAL_LOSS.fullmatch(without_prefix(line))
    if match is not None:
        return [Row("eval", NO_STEP, {"val loss": to_float(match[1])})]
    return None


def read_modded(line: str, memory: Memory) -> list[Row] | None:
    """`step:125/6000 val_loss:5.64 train_time:42345ms step_avg:nanms`."""
    match = MODDED.search(line)
    if match is None:
        return None
    rest = line[match.end() :]
    found = fields(rest.replace("tokens seen:", "tokens_seen:"))
    if not any("loss" in key for key in found):
        return []
    if "tokens_seen" in found:
        found["tokens seen"] = found.pop("tokens_seen")
    kind: RowKind = "eval" if any(key.startswith("val") for key in found) else "train"
    return [Row(kind, integer(match[1]), found)]


LLMC_MAIN_LOG = Pattern(
    name="llm.c main.log",
    hints=("s:",),
    read=read_main_log,
    step_name="s",
    examples=(
        Example(
            "s:0 tel:11.0092\ns:0 trl:11.0091 lr:0.000001 norm:15.37\ns:250 eval:0.2937\n"
            "s:1 trl:nan lr:0.000002 norm:-nan",
            (
                ("eval", 0, {"tel": 11.0092}),
                ("train", 0, {"trl": 11.0091, "lr": 1e-6, "norm": 15.37}),
                ("eval", 250, {"eval": 0.2937}),
                ("train", 1, {"trl": math.nan, "lr": 2e-6, "norm": math.nan}),
            ),
        ),
    ),
)

LLMC_CONSOLE = Pattern(
    name="llm.c console",
    hints=("| loss ", "val loss "),
    read=read_console,
    fill="next",
    examples=(
        Example(
            "val loss 11.009178\n"
            "step    1/19560 | loss 11.009134 (+nanz)| norm 15.3652 (+nanz)| lr 8.57e-07"
            " | 3054.97 ms | 57.6% bf16 MFU | 171622 tok/s",
            (
                ("eval", 1, {"val loss": 11.009178}),
                ("train", 1, {"loss": 11.009134, "norm": 15.3652, "lr": 8.57e-7}),
            ),
        ),
    ),
)

MODDED_NANOGPT = Pattern(
    name="modded-nanogpt log",
    hints=("step:",),
    read=read_modded,
    examples=(
        Example(
            "step:0/6000 val_loss:11.0149 train_time:305ms step_avg:nanms\n"
            "step:1/6000 train_loss:11.0149 train_time:42345ms step_avg:nanms\n"
            "step:2/6000 train_time:42345ms step_avg:368.21ms",
            (
                ("eval", 0, {"val_loss": 11.0149, "train_time": 305.0, "step_avg": None}),
                ("train", 1, {"train_loss": 11.0149, "step_avg": None}),
            ),
        ),
        Example(
            "step:10/1000, tokens seen:0.59M, avg_train_loss:10.0153 time:125/nans step_avg:nanms\n"
            "step:20/1000, tokens seen: 1.31M, val_loss:nan train_time:11.47s step_avg:1147ms",
            (
                ("train", 10, {"avg_train_loss": 10.0153, "tokens seen": 590000.0, "time": 125.0}),
                ("eval", 20, {"val_loss": math.nan, "step_avg": 1147.0, "tokens seen": 1310000.0}),
            ),
        ),
    ),
)

PATTERNS = (LLMC_MAIN_LOG, LLMC_CONSOLE, MODDED_NANOGPT)
