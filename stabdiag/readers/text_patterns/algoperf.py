"""The absl console log of MLCommons AlgoPerf, which prints most points in two forms."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row, RowKind
from stabdiag.readers.text_patterns.tokens import fields, integer

POINT = re.compile(r"\] \[([0-9]{1,12})\] (?=\w)")
SHORT = re.compile(r"\] ([0-9]{1,12})\) (?=loss = |grad_norm = )")
EVALUATION = re.compile(r"\] Time since start: ")


def read_algoperf(line: str, memory: Memory) -> list[Row] | None:
    """`[63] global_step=63, grad_norm=nan, loss=nan` and `63) loss = nan, grad_norm = nan`."""
    match = POINT.search(line)
    if match is not None:
        found = fields(line[match.end() :])
        if found.pop("global_step", None) is None:
            return None
        kind: RowKind = "eval" if "score" in found else "train"
        return [Row(kind, integer(match[1]), found)]
    match = SHORT.search(line)
    if match is not None:
        return [Row("train", integer(match[1]), fields(line[match.end() :]), spelling="short")]
    return [] if EVALUATION.search(line) else None


ALGOPERF = Pattern(
    name="AlgoPerf console",
    hints=("global_step=", ") loss = ", ") grad_norm = ", "Time since start"),
    read=read_algoperf,
    step_name="global_step",
    examples=(
        Example(
            "I0316 10:53:06.548573 140544972699392 logging_writer.py:48] [62] global_step=62, "
            "grad_norm=10.3496, loss=11.6913\n"
            "I0316 10:53:06.750160 140572635833536 submission.py:265] 62) loss = 11.691, "
            "grad_norm = 10.350\n"
            "I0316 10:53:07.548573 140544972699392 logging_writer.py:48] [63] global_step=63, "
            "grad_norm=nan, loss=nan\n"
            "I0316 10:53:07.750160 140572635833536 submission.py:265] 63) loss = nan, "
            "grad_norm = nan\n"
            "I0316 10:53:08.750160 140536261588736 logging_writer.py:48] [63] "
            "accumulated_eval_time=814.122, global_step=63, preemption_count=0, score=48.1059, "
            "validation/loss=11.5",
            (
                ("train", 62, {"loss": 11.6913, "grad_norm": 10.3496}),
                ("train", 63, {"loss": math.nan, "grad_norm": math.nan}),
                ("eval", 63, {"validation/loss": 11.5, "score": 48.1059}),
            ),
        ),
    ),
)

PATTERNS = (ALGOPERF,)
