"""nanoGPT, build-nanogpt and nanochat consoles, and build-nanogpt's log.txt."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import NO_STEP, Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import (
    NUM,
    integer,
    segment_field,
    segment_fields,
    to_float,
)

LLAMA2_C = re.compile(rf"(?<![\w.,/-])([0-9]{{1,12}}) \| loss ({NUM}) \| (?=lr )")
ITER = re.compile(rf"(?<![\w.])iter ([0-9]{{1,12}}): loss ({NUM})(?=,|\s|$)")
EVAL = re.compile(rf"(?<![\w.])step ([0-9]{{1,12}}): train loss ({NUM}), val loss ({NUM})(?!\w)")
PIPED = re.compile(
    r"(?<![\w.])[Ss]tep:?\s{1,12}([0-9]{1,12})(?:/[0-9]{1,12})?(?:\s\([0-9.]{1,9}%\))?\s{0,4}\|"
    r"(?! loss [^|\n]{1,30}\([+-])"
)
LITGPT = re.compile(
    rf"(?<![\w.])iter ([0-9]{{1,12}}) (?:\| )?step ([0-9]{{1,12}})(?::| \|) "
    rf"loss(?: train(?: \(curr\))?:?)? ({NUM})(?=,|\s|$)"
)
LITGPT_EVAL = re.compile(rf"(?<![\w.])iter ([0-9]{{1,12}}): val loss:? ({NUM})(?=,|\s|$)")
VALIDATION = re.compile(rf"\s{{0,9}}(validation loss|val loss(?=:)):?\s{{1,4}}({NUM})\s{{0,9}}")
HELLASWAG = re.compile(
    r"\s{0,9}HellaSwag(?: accuracy)?:\s{1,4}[0-9]{1,9}/[0-9]{1,9}=([0-9]\.[0-9]{1,9})\s{0,9}"
)
LOG_TXT = re.compile(rf"\s{{0,9}}([0-9]{{1,12}}) (train|val|hella) ({NUM})\s{{0,9}}")


def read_nanogpt(line: str, memory: Memory) -> list[Row] | None:
    """`iter N: loss x, time yms, mfu z%` and `step N: train loss x, val loss y`.

    llama2.c prints the second, and `N | loss x | lr y | 120.5ms | mfu z%` for the first.
    """
    match = ITER.search(line)
    if match is not None:
        fields = {"loss": to_float(match[2])}
        fields.update(segment_fields(line[match.end() + 1 :].split(",")))
        return [Row("train", integer(match[1]), fields)]
    match = LLAMA2_C.search(line)
    if match is not None:
        fields = {"loss": to_float(match[2])}
        fields.update(segment_fields(line[match.end() :].split("|")))
        return [Row("train", integer(match[1]), fields)]
    match = EVAL.search(line)
    if match is not None:
        fields = {"train loss": to_float(match[2]), "val loss": to_float(match[3])}
        return [Row("eval", integer(match[1]), fields)]
    return None


def read_litgpt(line: str, memory: Memory) -> list[Row] | None:
    """`Epoch 1 | iter 2 step 1 | loss train: 1.2, val: n/a | iter time: 298.27 ms (step)`.

    The iteration counts micro-batches, several of them a step.
    """
    match = LITGPT.search(line)
    if match is not None:
        fields = {"step": to_float(match[2]), "loss": to_float(match[3])}
        return [Row("train", integer(match[1]), fields)]
    match = LITGPT_EVAL.search(line)
    if match is not None:
        return [Row("eval", integer(match[1]), {"val loss": to_float(match[2])})]
    return None


def read_piped(line: str, memory: Memory) -> list[Row] | None:
    """`step N | loss: x | lr y | norm: z | dt: ...ms`, and evaluations printed without a step."""
    match = PIPED.search(line)
    if match is not None and "iter " not in line[: match.start()]:
        fields = piped_fields(line[match.end() :])
        losses = [key for key in fields if "loss" in key.lower() or "bpb" in key.lower()]
        if not losses:
            return None
        words = losses[0].lower()
        kind = words.startswith(("val", "eval", "test"))
        return [Row("eval" if kind else "train", integer(match[1]), fields)]
    body = without_prefix(line)
    match = VALIDATION.fullmatch(body)
    if match is not None:
        return [Row("eval", NO_STEP, {match[1]: to_float(match[2])})]
    match = HELLASWAG.fullmatch(body)
    if match is not None:
        return [Row("eval", NO_STEP, {"HellaSwag accuracy": float(match[1])})]
    return None


def piped_fields(text: str) -> dict[str, float]:
    """Read `key: value | key value | key:value key:value`."""
    fields: dict[str, float] = {}
    for part in text.split("|"):
        several = part.count(":") > 1
        for piece in part.split("  " if "  " in part.strip() else " ") if several else [part]:
            pair = segment_field(piece)
            if pair is not None and pair[1] is not None:
                fields.setdefault(pair[0], pair[1])
    return fields


def read_log_txt(line: str, memory: Memory) -> list[Row] | None:
    """`<step> train <loss>`, `<step> val <loss>`, `<step> hella <accuracy>`, and nothing else."""
    match = LOG_TXT.fullmatch(line) or LOG_TXT.fullmatch(without_prefix(line))
    if match is None:
        return None
    step, word, value = integer(match[1]), match[2], to_float(match[3])
    if word == "hella":
        return [Row("eval", step, {"hella_accuracy": value})]
    return [Row("train" if word == "train" else "eval", step, {f"{word}_loss": value})]


NANOGPT = Pattern(
    name="nanoGPT console",
    hints=("iter ", "val loss", "| loss "),
    read=read_nanogpt,
    step_name="iter",
    examples=(
        Example(
            "step 2400: train loss 3.6432, val loss 3.6716\n"
            "saving checkpoint to out\n"
            "iter 2400: loss 3.6277, time 313.18ms, mfu -100.00%\n"
            "iter 2410: loss 3.6001, time 313.18ms, mfu 107.97%",
            (
                ("eval", 2400, {"train loss": 3.6432, "val loss": 3.6716}),
                ("train", 2400, {"loss": 3.6277, "time": 313.18, "mfu": None}),
                ("train", 2410, {"loss": 3.6001, "mfu": 107.97}),
            ),
        ),
        Example(
            "2023-03-22 09:32:52 iter 3010: loss nan, time 1019.95ms, mfu 14.12%",
            (("train", 3010, {"loss": math.nan, "time": 1019.95}),),
        ),
        Example(
            "10 | loss 2.5000 | lr 1.000000e-04 | 120.50ms | mfu 10.25%",
            (("train", 10, {"loss": 2.5, "lr": 1e-4, "mfu": 10.25}),),
        ),
        Example(
            "iter 20: loss 2.5, time 12.00ms, lr 3.0e-04, grad_norm 1.25",
            (("train", 20, {"loss": 2.5, "lr": 3e-4, "grad_norm": 1.25}),),
        ),
    ),
)

BUILD_NANOGPT = Pattern(
    name="build-nanogpt console",
    hints=("tep ", "tep:", "alidation loss", "val loss", "HellaSwag"),
    read=read_piped,
    fill="next",
    examples=(
        Example(
            "validation loss: 10.9522\n"
            "HellaSwag accuracy: 2508/10042=0.2498\n"
            "step     0 | loss: 10.955010 | lr 6.0000e-04 | norm: 15.4069 | dt: 400.83ms"
            " | tok/sec: 1308017.46",
            (
                ("eval", 0, {"validation loss": 10.9522}),
                ("eval", 0, {"HellaSwag accuracy": 0.2498}),
                ("train", 0, {"loss": 10.95501, "lr": 6e-4, "norm": 15.4069, "dt": 400.83}),
            ),
        ),
        Example(
            "step 00010/21400 (0.05%) | loss: 9.123456 | grad norm: 1.2000 | lrm: 1.00"
            " | dt: 500.12ms | tok/sec: 1,048,576 | mfu: 48.10",
            (("train", 10, {"loss": 9.123456, "grad norm": 1.2, "tok/sec": 1048576.0}),),
        ),
        Example(
            "Step 00250 | Validation bpb: 1.2345",
            (("eval", 250, {"Validation bpb": 1.2345}),),
        ),
        Example(
            "Step 12 | loss:1.5625 lr:2e-05 tokens_per_second_per_gpu:512.5",
            (("train", 12, {"loss": 1.5625, "lr": 2e-5}),),
        ),
    ),
)

BUILD_NANOGPT_LOG = Pattern(
    name="build-nanogpt log.txt",
    hints=(" train ", " val ", " hella "),
    read=read_log_txt,
    examples=(
        Example(
            "0 val 10.9522\n0 hella 0.2487\n0 train 10.955010\n1 train nan",
            (
                ("eval", 0, {"val_loss": 10.9522}),
                ("eval", 0, {"hella_accuracy": 0.2487}),
                ("train", 0, {"train_loss": 10.95501}),
                ("train", 1, {"train_loss": math.nan}),
            ),
        ),
    ),
)

LITGPT_CONSOLE = Pattern(
    name="LitGPT console",
    hints=("iter ",),
    read=read_litgpt,
    step_name="iter",
    examples=(
        Example(
            "Epoch 1 | iter 4 step 1 | loss train: 1.585, val: n/a | iter time: 181.34 ms (step)\n"
            "iter 76 step 38: loss nan, iter time: 197.87ms\n"
            "iter 80: val loss 1.7258, val time: 3778.02 ms\n"
            "iter 4810 | step 601: loss 0.2745, iter time: 131.68 ms",
            (
                ("train", 4, {"loss": 1.585, "step": 1.0}),
                ("train", 76, {"loss": math.nan, "step": 38.0}),
                ("eval", 80, {"val loss": 1.7258}),
                ("train", 4810, {"loss": 0.2745}),
            ),
        ),
    ),
)

PATTERNS = (NANOGPT, LITGPT_CONSOLE, BUILD_NANOGPT, BUILD_NANOGPT_LOG)
