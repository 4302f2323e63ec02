"""Formats that spread one point over several lines: Coqui, OLMo, Composer, baselines tables."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import NO_STEP, Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import NUM, UNIT, VALUE, integer, value_of, whole

COQUI_STEP = re.compile(r"--> .{0,80}GLOBAL_STEP: ([0-9]{1,12})")
COQUI_ITEM = re.compile(rf"(?<!\S)\| > ([\w./-]{{1,80}}):\s{{1,9}}({NUM})({UNIT})(?=\s|$)")
COQUI_EPOCH = re.compile(r"> EPOCH: ([0-9]{1,9})/[0-9]{1,9}")
BRACKET = re.compile(
    r"\[(step|batch)=([0-9,]{1,15})(?:/[0-9,]{0,14}[0-9])?(?:,\s?epoch=([0-9]{1,9}))?"
    r"[^\]\n]{0,40}\]:?\s{0,9}$"
)
BRACKET_ITEM = re.compile(
    rf"\s{{0,40}}(?:Train )?([A-Za-z_][\w./@ ()-]{{0,119}})(?:=|: )"
    rf"\s{{0,20}}({NUM})({UNIT})\s{{0,9}}"
)
TABLE_RULE = re.compile(r"(?:^|[\s\]:>])[-+=]{8,200}\s{0,9}$")
TABLE_ITEM = re.compile(
    r"\|\s{0,8}([\w./ @-]{1,80}?)\s{0,60}\|\s{0,40}([^|\s]{0,40})\s{0,60}\|\s{0,9}$"
)
TABLE_STEPS = (
    "time/total_timesteps",
    "total_timesteps",
    "step",
    "misc/total_timesteps",
    "time/iterations",
)


def read_coqui(line: str, memory: Memory) -> list[Row] | None:
    """`--> STEP: 24/36 -- GLOBAL_STEP: 1000025`, then `| > loss_1: 26.9  (35.5)` lines.

    The value is kept, not the running average behind it. An evaluation block has no step.
    """
    match = COQUI_STEP.search(line)
    if match is not None:
        rows = memory.close_block()
        memory.open_block("train", integer(match[1]))
        if memory.block is not None and "epoch" in memory.numbers:
            memory.block["epoch"] = memory.numbers["epoch"]
        return rows
    if "--> EVAL PERFORMANCE" in line:
        rows = memory.close_block()
        memory.open_block("eval", NO_STEP)
        return rows
    match = COQUI_EPOCH.search(line)
    if match is not None:
        memory.numbers["epoch"] = float(match[1])
        return memory.close_block()
    if memory.block is None:
        return None
    match = COQUI_ITEM.search(line)
    if match is None:
        return None
    value = value_of(match[1], match[2], match[3])
    if value is not None:
        memory.block[match[1]] = value
    return []


def read_bracket(line: str, memory: Memory) -> list[Row] | None:
    """`[step=10/739328]` or `[batch=10/100]:`, then indented `name=value` or `name: value`."""
    match = BRACKET.search(line)
    if match is not None:
        rows = memory.close_block()
        memory.open_block("train", integer(match[2]))
        if memory.block is not None and match[3]:
            memory.block["epoch"] = float(match[3])
        return rows
    if memory.block is None:
        return None
    match = BRACKET_ITEM.fullmatch(without_prefix(line))
    if match is None:
        return memory.close_block() or None
    value = value_of(match[1], match[2], match[3])
    if value is not None and match[1] not in ("time/batch", "time/global_step"):
        memory.block[match[1]] = value
    return []


def read_table(line: str, memory: Memory) -> list[Row] | None:
    """A table between two rules, `|    loss   | 8.22  |`, with sections such as `| train/ |`."""
    if TABLE_RULE.search(line):
        rows = [step_taken(row) for row in memory.close_block()]
        memory.open_block("train", NO_STEP)
        memory.section = ""
        return [row for row in rows if row is not None]
    if memory.block is None:
        return None
    line = line[max(line.find("|"), 0) :]
    match = TABLE_ITEM.match(line)
    if match is None:
        memory.block = None
        return None
    key, word = match[1].strip(), match[2]
    if not word and key.endswith("/"):
        memory.section = key
        return []
    number = VALUE.match(word)
    if number is not None:
        name = memory.section + key if line.startswith("|    ") else key
        value = value_of(name, number[1], number[2])
        if value is not None:
            memory.block[name] = value
    return []


def step_taken(row: Row) -> Row | None:
    """Move the step out of a table's fields; None for a table that has none."""
    for name in TABLE_STEPS:
        if name in row.fields:
            rest = {key: value for key, value in row.fields.items() if key != name}
            return Row(row.kind, whole(row.fields[name], NO_STEP), rest, line=row.line)
    return None


COQUI = Pattern(
    name="Coqui console",
    hints=("--> ", "EPOCH: "),
    read=read_coqui,
    step_name="GLOBAL_STEP",
    examples=(
        Example(
            "\x1b[4m\x1b[1m > EPOCH: 3/1000\x1b[0m\n"
            "\x1b[1m   --> STEP: 24/36 -- GLOBAL_STEP: 1000025\x1b[0m\n"
            "     | > loss_0: 3.01874  (3.46002)\n"
            "     | > grad_norm_0: inf  (2.77572)\n"
            "     | > amp_scaler: 1024.00000  (2176.00000)\n"
            "     | > current_lr_0: 0.00020 \n\n"
            "  \x1b[1m--> EVAL PERFORMANCE\x1b[0m\n"
            "     | > avg_loss_1:\x1b[91m 26.36956 \x1b[0m(+0.00000)",
            (
                (
                    "train",
                    1000025,
                    {"loss_0": 3.01874, "grad_norm_0": math.inf, "amp_scaler": 1024.0, "epoch": 3},
                ),
                ("eval", 1000025, {"avg_loss_1": 26.36956}),
            ),
        ),
    ),
)

OLMO = Pattern(
    name="OLMo or Composer console",
    hints=("[step=", "[batch="),
    read=read_bracket,
    examples=(
        Example(
            "2024-01-31 12:00:00.000\thost:0\tolmo.train:700\tINFO\t[step=10/739328,epoch=0]\n"
            "    train/CrossEntropyLoss=10.95\n"
            "    optim/total_grad_norm=nan\n"
            "    System/Peak GPU Memory (MB)=46,911\n"
            "    throughput/total_tokens=41,943,040\n"
            "2024-01-31 12:00:09.000\thost:0\tolmo.train:700\tINFO\tSaving",
            (
                (
                    "train",
                    10,
                    {
                        "train/CrossEntropyLoss": 10.95,
                        "optim/total_grad_norm": math.nan,
                        "throughput/total_tokens": 41943040.0,
                        "epoch": 0.0,
                    },
                ),
            ),
        ),
        Example(
            "[batch=12/100]:\n\t Train time/batch: 11\n\t Train loss/train/total: 11.9375\n",
            (("train", 12, {"loss/train/total": 11.9375}),),
        ),
    ),
)

TABLES = Pattern(
    name="baselines table",
    hints=("--------",),
    read=read_table,
    examples=(
        Example(
            "------------------------------------------\n"
            "| time/                   |              |\n"
            "|    total_timesteps      | 4096         |\n"
            "| train/                  |              |\n"
            "|    explained_variance   | nan          |\n"
            "|    loss                 | -0.0123      |\n"
            "------------------------------------------",
            (("train", 4096, {"train/loss": -0.0123, "train/explained_variance": math.nan}),),
        ),
        Example(
            "---------------------------\n"
            "| grad_norm    | 0.312    |\n"
            "| lg_loss_scale| 20.5     |\n"
            "| loss         | 0.125    |\n"
            "| step         | 1e+03    |\n"
            "---------------------------",
            (("train", 1000, {"loss": 0.125, "grad_norm": 0.312, "lg_loss_scale": 20.5}),),
        ),
    ),
)

PATTERNS = (COQUI, OLMO, TABLES)
