"""Messages about skipped steps and the loss scale: fairseq, DeepSpeed, Apex."""

from __future__ import annotations

import re

from stabdiag.readers.text_patterns.record import NO_STEP, Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import NUM, integer, to_float

FAIRSEQ = re.compile(rf"overflow detected,(?: ignoring gradient,)? setting loss scale to: ({NUM})")
DEEPSPEED = re.compile(
    rf"OVERFLOW! Rank ([0-9]{{1,6}}) Skipping step\. Attempted loss scale: ({NUM}), "
    rf"(?:reducing to ({NUM})|but hysteresis)"
)
APEX = re.compile(
    rf"Gradient overflow\.\s{{1,2}}Skipping step, loss scaler [0-9]{{1,3}} "
    rf"reducing loss scale to ({NUM})"
)
DEEPSPEED_STEP = re.compile(
    rf"(?<![\w.])step=([0-9]{{1,12}}), skipped=([0-9]{{1,12}}), lr=\[({NUM})[,\]]"
)


def read_overflow(line: str, memory: Memory) -> list[Row] | None:
    """Read one skipped step: the loss scale after it, and skipped = 1.

    The message names no step. Where a progress bar is shown it is the step after the bar's count.
    """
    match = DEEPSPEED.search(line)
    if match is not None:
        scale, rank = to_float(match[3] or match[2]), match[1]
    else:
        match = FAIRSEQ.search(line) or APEX.search(line)
        if match is None:
            return None
        scale, rank = to_float(match[1]), ""
    done = memory.log.bars.get(memory.log.bar, 0)
    step = done + 1 if 0 < done < memory.log.bar else NO_STEP
    return [Row("train", step, {"loss_scale": scale, "skipped": 1.0}, spelling=rank)]


def read_deepspeed_step(line: str, memory: Memory) -> list[Row] | None:
    """`step=200, skipped=4, lr=[0.00024], mom=[...]`: skipped counts from the start of the run."""
    match = DEEPSPEED_STEP.search(line)
    if match is None:
        return None
    total, lr = to_float(match[2]), to_float(match[3])
    return [Row("train", integer(match[1]), {"skipped_total": total, "lr": lr})]


OVERFLOW = Pattern(
    name="overflow messages",
    hints=("verflow", "OVERFLOW"),
    read=read_overflow,
    companion=True,
    stepless=True,
    examples=(
        Example(
            "| WARNING: overflow detected, setting loss scale to: 0.25\n"
            "2020-03-23 11:41:18 | INFO | fairseq.trainer | NOTE: gradient overflow detected, "
            "ignoring gradient, setting loss scale to: 0.125",
            (
                ("train", 1, {"loss_scale": 0.25, "skipped": 1.0}),
                ("train", 2, {"loss_scale": 0.125, "skipped": 1.0}),
            ),
        ),
        Example(
            "[2023-04-28 06:51:29,903] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] "
            "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. "
            "Reducing hysteresis to 1\n"
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, "
            "reducing to 32768\n"
            "[deepspeed] OVERFLOW! Rank 1 Skipping step. Attempted loss scale: 65536, "
            "reducing to 32768",
            (
                ("train", 1, {"loss_scale": 65536.0}),
                ("train", 2, {"loss_scale": 32768.0, "skipped": 1.0}),
            ),
        ),
        Example(
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
            (("train", 1, {"loss_scale": 32768.0, "skipped": 1.0}),),
        ),
    ),
)

DEEPSPEED_STEPS = Pattern(
    name="DeepSpeed step lines",
    hints=("skipped=",),
    read=read_deepspeed_step,
    companion=True,
    examples=(
        Example(
            "[2023-04-28 06:59:46,878] [INFO] [logging.py:96:log_dist] [Rank 0] step=510, "
            "skipped=8, lr=[0.00024, 0.00024], mom=[(0.9, 0.999), (0.9, 0.999)]",
            (("train", 510, {"skipped_total": 8.0, "lr": 0.00024}),),
        ),
    ),
)

PATTERNS = (OVERFLOW, DEEPSPEED_STEPS)
