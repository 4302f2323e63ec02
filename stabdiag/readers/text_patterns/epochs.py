"""ESPnet's console, and the table of epochs that fastai prints."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import NUM, fields, integer, to_float

ESPNET = re.compile(
    r"(?<!\w)([0-9]{1,6})epoch:(train|valid):(?:([0-9]{1,9})-)?([0-9]{1,9})batch: (?=\w{1,60}=)"
)
HEADER = re.compile(r"\s{0,9}epoch(?:\s{1,20}[A-Za-z_]\w{0,40}){1,20}\s{0,40}")
NUMBER = re.compile(NUM)
CELL = re.compile(rf"{NUM}|[0-9]{{1,4}}(?::[0-9]{{2}}){{1,2}}|#na#|None")


def read_espnet(line: str, memory: Memory) -> list[Row] | None:
    """`1epoch:train:101-200batch: iter_time=1.1e-04, loss=60.1, grad_norm=3.5, ...`.

    Batches are numbered within the epoch; the step goes on through the epochs.
    """
    match = ESPNET.search(line)
    if match is None:
        return None
    found = fields(line[match.end() :])
    epoch, last_batch, numbers = integer(match[1]), integer(match[4]), memory.numbers
    if match[2] == "valid":
        step = int(numbers.get("step", last_batch))
        return [Row("eval", step, {f"valid_{key}": value for key, value in found.items()})]
    if epoch != numbers.get("epoch", epoch):
        numbers["before"] = numbers.get("step", 0)
    numbers["epoch"] = epoch
    numbers["step"] = numbers.get("before", 0) + last_batch
    return [Row("train", int(numbers["step"]), {"epoch": float(epoch), **found})]


def read_fastai(line: str, memory: Memory) -> list[Row] | None:
    """A head `epoch  train_loss  valid_loss  time`, then a line of numbers for each epoch."""
    body = without_prefix(line)
    if HEADER.fullmatch(body):
        names = body.split()
        if any(name.endswith("loss") for name in names):
            memory.names = tuple(names)
            return []
    cells = body.split()
    if len(cells) != len(memory.names) or not all(CELL.fullmatch(cell) for cell in cells):
        memory.names = ()
        return None
    found = {
        name: to_float(cell)
        for name, cell in zip(memory.names[1:], cells[1:], strict=True)
        if NUMBER.fullmatch(cell)
    }
    return [Row("train", integer(cells[0]), found)] if cells[0].isdecimal() else None


ESPNET_CONSOLE = Pattern(
    name="ESPnet console",
    hints=("epoch:train:", "epoch:valid:"),
    read=read_espnet,
    examples=(
        Example(
            "[host] 2021-05-01 12:00:00,123 (trainer:732) INFO: 1epoch:train:101-200batch: "
            "iter_time=1.1e-04, loss_ctc=80.5, loss=60.25, grad_norm=3.5, clip=100.000, "
            "loss_scale=65536.000, optim0_lr0=1.5e-05, train_time=0.5\n"
            "[host] 2021-05-01 12:10:00,123 (trainer:732) INFO: 2epoch:train:1-100batch: "
            "iter_time=1.1e-04, loss_ctc=80.5, loss=nan, grad_norm=nan, loss_scale=32768.000",
            (
                ("train", 200, {"loss": 60.25, "grad_norm": 3.5, "loss_scale": 65536.0}),
                ("train", 300, {"loss": math.nan, "grad_norm": math.nan, "epoch": 2.0}),
            ),
        ),
    ),
)

FASTAI_TABLE = Pattern(
    name="fastai table",
    hints=("epoch ",),
    read=read_fastai,
    step_name="epoch",
    examples=(
        Example(
            "epoch     train_loss  valid_loss  accuracy  time    \n"
            "0         2.500000    2.250000    0.125000  00:12     \n"
            "1         nan         #na#        0.125000  00:12     ",
            (
                ("train", 0, {"train_loss": 2.5, "valid_loss": 2.25, "accuracy": 0.125}),
                ("train", 1, {"train_loss": math.nan, "valid_loss": None}),
            ),
        ),
    ),
)

PATTERNS = (ESPNET_CONSOLE, FASTAI_TABLE)
