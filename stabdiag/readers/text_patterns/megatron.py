"""Megatron-LM and its descendants (Megatron-DeepSpeed, GPT-NeoX), and NeMo 2.0's line."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import integer, segment_fields, whole

ITERATION = re.compile(r"(?<![\w.])(?<!, )iteration\s{1,12}([0-9]{1,12})/\s{0,12}[0-9]{1,12} \|")
VALIDATION = re.compile(r"(?:validation|test) loss at iteration ([0-9]{1,12}) \|")
NEMO = re.compile(r"Training epoch ([0-9]{1,9}), iteration ([0-9]{1,12})/[0-9]{1,12} \|")
LOSSES = ("lm loss", "lm_loss", "loss")


def read_iteration(line: str, memory: Memory) -> list[Row] | None:
    """` iteration N/ M | consumed samples: ... | lm loss: ... | grad norm: ... |`.

    Megatron leaves the loss out of the line when it is NaN, and when every iteration of the
    interval was skipped. The first is put back as NaN, the second stays missing.
    """
    match = ITERATION.search(line)
    if match is None:
        return read_validation(line)
    found = segment_fields(
        (without_prefix(line[: match.start()]) + "|" + line[match.end() :]).split("|")
    )
    step = integer(match[1])
    if not found:
        return None
    if any(key in found for key in LOSSES):
        for key in LOSSES:
            if key in found:
                memory.numbers["loss name"] = LOSSES.index(key)
    elif loss_was_nan(found, step - int(memory.numbers.get("step", 0)), memory):
        name = LOSSES[int(memory.numbers.get("loss name", 0))]
        found[name] = math.nan
        memory.repairs.setdefault(f"lines leave out {name}: it was NaN", []).append(memory.log.line)
    memory.numbers["step"] = step
    return [Row("train", step, found)]


def loss_was_nan(found: dict[str, float], interval: int, memory: Memory) -> bool:
    """Tell whether a line without a loss hides a NaN, and not only skipped iterations."""
    if math.isnan(found.get("grad norm", 0.0)) or found.get("number of nan iterations", 0) > 0:
        return True
    skipped = found.get("number of skipped iterations")
    if skipped is None:
        return "loss name" in memory.numbers
    return skipped < max(interval, 1)


def read_validation(line: str) -> list[Row] | None:
    """` validation loss at iteration N | lm loss value: ... | lm loss PPL: ... |`."""
    match = VALIDATION.search(line)
    if match is None:
        return None
    found = segment_fields(line[match.end() :].split("|"))
    word = match[0].split(" at ")[0]
    fields = {(word if key.endswith("loss value") else key): found[key] for key in found}
    return [Row("eval", integer(match[1]), fields)]


def read_nemo(line: str, memory: Memory) -> list[Row] | None:
    """`Training epoch 0, iteration 0/99 | lr: ... | global_step: 0 | reduced_train_loss: ... |`."""
    match = NEMO.search(line)
    if match is None:
        return None
    found = segment_fields(line[match.end() :].split("|"))
    step = whole(found.pop("global_step", math.nan), integer(match[2]))
    return [Row("train", step, {"epoch": float(match[1]), **found})]


MEGATRON = Pattern(
    name="Megatron console",
    hints=("iteration",),
    read=read_iteration,
    step_name="iteration",
    scale_name="loss scale",
    examples=(
        Example(
            "511:  iteration        3/ 7629408 | consumed samples:           96 | "
            "elapsed time per iteration (ms): 24379.9 | learning rate: 1.406250E-04 | "
            "global batch size:    32 | lm loss: 1.107468E+01 | loss scale: 1.0 | "
            "grad norm: 30.066 | num zeros: 1299.0 | params norm: 496.206 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
            " validation loss at iteration 3 | lm loss value: 1.05E+01 | lm loss PPL: 3.6E+04 | \n"
            "511:  iteration        4/ 7629408 | consumed samples:          128 | "
            "learning rate: 1.5E-04 | loss scale: 1.0 | grad norm: nan | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |",
            (
                ("train", 3, {"lm loss": 11.07468, "grad norm": 30.066, "params norm": 496.206}),
                ("eval", 3, {"validation loss": 10.5, "lm loss PPL": 36000.0}),
                ("train", 4, {"lm loss": math.nan, "grad norm": math.nan, "loss scale": 1.0}),
            ),
        ),
        Example(
            "[default0]:[2024-11-04 10:00:00] iteration       10/     100 | lm loss: 9.5E+00 | "
            "loss scale: 65536.0 | grad norm: 1.5 | number of skipped iterations:   0 |\n"
            "[default0]: iteration       20/     100 | loss scale: 32768.0 | "
            "number of skipped iterations:  10 | number of nan iterations:   0 |",
            (
                ("train", 10, {"lm loss": 9.5, "loss scale": 65536.0}),
                ("train", 20, {"lm loss": None, "number of skipped iterations": 10.0}),
            ),
        ),
        Example(
            " iteration        9/      10 | consumed samples:          108 | loss scale: 1.0 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |",
            (("train", 9, {"lm loss": math.nan}),),
        ),
        Example(
            " samples/sec: 14.5 | iteration       10/  320000 | "
            "elapsed time per iteration (ms): 2200.1 | learning rate: 1.0E-06 | "
            "approx flops per GPU: 4.5TFLOPS | lm_loss: 1.09E+01 | loss scale: 65536.0 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |",
            (("train", 10, {"lm_loss": 10.9, "samples/sec": 14.5, "learning rate": 1e-6}),),
        ),
    ),
)

NEMO_CONSOLE = Pattern(
    name="NeMo console",
    hints=("Training epoch",),
    read=read_nemo,
    step_name="global_step",
    examples=(
        Example(
            "Training epoch 0, iteration 4/99 | lr: 2.999e-07 | global_batch_size: 4 | "
            "global_step: 4 | reduced_train_loss: 11.03 | train_step_timing in s: 38.5 | "
            "consumed_samples: 20",
            (
                (
                    "train",
                    4,
                    {"reduced_train_loss": 11.03, "train_step_timing in s": 38.5, "lr": 2.999e-7},
                ),
            ),
        ),
    ),
)

PATTERNS = (MEGATRON, NEMO_CONSOLE)
