"""torchtitan's and Lingua's console lines, and verl's long ones."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row, RowKind
from stabdiag.readers.text_patterns.tokens import VALUE, fields, integer, value_of

STEP = re.compile(r"(?<![\w.])(validate )?step:\s{1,12}([0-9]{1,12})\s{1,4}(?=[a-z])")
VERL = re.compile(r"(?<![\w.])step:([0-9]{1,12}) - (?=[\w./@-]{1,120}:)")


def read_titan(line: str, memory: Memory) -> list[Row] | None:
    """`step:  1  loss:  8.1661  grad_norm:  3.6855  memory:  2.47GiB(3.12%)  tps: 3,502`."""
    match = STEP.search(line)
    if match is None:
        return None
    found = fields(line[match.end() :])
    if "loss" not in found:
        return None
    if match[1]:
        return [Row("eval", integer(match[2]), {"validation loss": found.pop("loss"), **found})]
    return [Row("train", integer(match[2]), found)]


def read_verl(line: str, memory: Memory) -> list[Row] | None:
    """`step:1 - actor/grad_norm:0.2057 - actor/pg_loss:np.float64(-0.0036) - ...`."""
    match = VERL.search(line)
    if match is None:
        return None
    found: dict[str, float] = {}
    for part in line[match.end() :].split(" - "):
        key, colon, word = part.strip().rpartition(":")
        number = VALUE.match(word) if colon and len(key) <= 120 else None
        if number is not None:
            value = value_of(key, number[1], number[2])
            if value is not None:
                found.setdefault(key, value)
    only_eval = all(key.startswith("val") for key in found)
    kind: RowKind = "eval" if only_eval else "train"
    return [Row(kind, integer(match[1]), found)] if found else None


TORCHTITAN = Pattern(
    name="torchtitan console",
    hints=("step: ",),
    read=read_titan,
    examples=(
        Example(
            "[rank0]:[titan] 2025-10-30 14:32:58,897 - root - INFO - \x1b[31mstep:  1  "
            "\x1b[32mloss:  8.1661  \x1b[38;2;180;60;0mgrad_norm:  3.6855  "
            "\x1b[36mmemory:  2.47GiB(3.12%)  \x1b[34mtps: 10,050  tflops: 1.90  "
            "mfu: 0.19%\x1b[39m\n"
            "[rank1]:[titan] 2025-10-30 14:32:58,897 - root - INFO - step:  1  loss:  8.1661  "
            "grad_norm:  3.6855  memory:  2.47GiB(3.12%)  tps: 10,049  tflops: 1.90  mfu: 0.19%\n"
            "[rank0]:[titan] 2025-10-30 14:32:59,897 - root - INFO - step:  2  loss:  nan  "
            "grad_norm:     nan  memory:  2.47GiB(3.12%)  tps: 10,050  tflops: 1.90  mfu: 0.19%\n"
            "[rank0]:[titan] 2025-10-30 14:33:58,897 - root - INFO - validate step:  2  "
            "loss:  7.5000  memory:  2.47GiB(3.12%)  tps: 10,050",
            (
                ("train", 1, {"loss": 8.1661, "grad_norm": 3.6855, "tps": 10050.0, "mfu": 0.19}),
                ("train", 2, {"loss": math.nan, "grad_norm": math.nan}),
                ("eval", 2, {"validation loss": 7.5, "loss": None}),
            ),
        ),
        Example(
            "0: INFO    24-10-08 14:13:51.123456 - 0:01:02 - step: 10  acc: 0  loss:  9.1000  "
            "grad: 1.2e+00  flops: 1.2e+14  wps: 3.1e+04  lr: 3.00e-05",
            (("train", 10, {"loss": 9.1, "grad": 1.2, "lr": 3e-5, "wps": 31000.0}),),
        ),
    ),
)

VERL_CONSOLE = Pattern(
    name="verl console",
    hints=("step:",),
    read=read_verl,
    examples=(
        Example(
            "(TaskRunner pid=247607) step:0 - val-core/openai/gsm8k/acc/mean@1:0.508\n"
            "(TaskRunner pid=247607) step:1 - global_seqlen/min:484245.000 - "
            "actor/grad_norm:0.2057 - actor/pg_loss:np.float64(-0.0036) - actor/lr:1e-06 - "
            "training/global_step:1.000 - critic/score/mean:0.558\n"
            "(TaskRunner pid=247607) step:2 - actor/grad_norm:nan - actor/pg_loss:0.006",
            (
                ("eval", 0, {"val-core/openai/gsm8k/acc/mean@1": 0.508}),
                ("train", 1, {"actor/grad_norm": 0.2057, "actor/pg_loss": -0.0036}),
                ("train", 2, {"actor/grad_norm": math.nan, "actor/lr": None}),
            ),
        ),
    ),
)

PATTERNS = (TORCHTITAN, VERL_CONSOLE)
