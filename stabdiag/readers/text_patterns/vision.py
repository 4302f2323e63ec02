"""OpenMMLab, Detectron2, torchvision references (MAE, DeiT) and timm consoles."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.record import NO_STEP, Example, Memory, Pattern, Row, RowKind
from stabdiag.readers.text_patterns.tokens import NUM, UNIT, fields, integer, value_of

MM = re.compile(
    r" - (?:mmengine|mm\w{1,20}) - INFO - (Epoch|Iter)(?:\((train|val|test)\))?\s{0,4}"
    r"(?:\[\s{0,9}([0-9]{1,9})\]\s{0,2})?\[\s{0,9}([0-9]{1,12})/([0-9]{1,12})\]\s{1,4}"
)
D2 = re.compile(r"(?<!\w)iter: ([0-9]{1,12})\s{1,4}(?=\w{0,60}loss)")
METERS = re.compile(
    r"(Train|Test|Val|Valid|Validation)?:? ?Epoch: \[([0-9]{1,9})\]\s{0,2}"
    r"\[\s{0,9}([0-9]{1,12})/([0-9]{1,12})\]\s{1,4}"
)
METER = re.compile(
    rf"(?<![\w@])([A-Za-z_][\w@./]{{0,40}}(?: mem)?):?\s{{1,9}}({NUM})({UNIT})(?=\s|\(|$|,)"
)
TIMM = re.compile(
    r"Train: ([0-9]{1,9}) \[\s{0,9}([0-9]{1,12})/([0-9]{1,12}) \(\s{0,4}[0-9]{1,3}%\)\]\s{1,4}"
)
MNIST = re.compile(
    r"Train Epoch: ([0-9]{1,9}) \[([0-9]{1,12})/([0-9]{1,12}) \([0-9]{1,3}(?:\.[0-9]{1,2})?%\)\]"
)


def read_mm(line: str, memory: Memory) -> list[Row] | None:
    """`Epoch(train) [1][ 50/100]  lr: ...  loss: ...` or `Iter [50/40000] lr: ..., loss: ...`.

    The iteration is counted from the start of the run, whether or not it restarts every epoch.
    """
    match = MM.search(line)
    if match is None:
        return None
    found = fields(line[match.end() :])
    if not found:
        return None
    epoch, position, length = match[3], integer(match[4]), integer(match[5])
    kind: RowKind = "train" if match[2] in (None, "train") else "eval"
    step = position
    if kind == "eval":
        step = NO_STEP
    elif match[1] == "Epoch":
        step = max(0, integer(epoch or "1") - 1) * length + position
    if epoch:
        found = {"epoch": float(epoch), **found}
    if kind == "eval":
        found = {(f"val_{key}" if key == "loss" else key): found[key] for key in found}
    return [Row(kind, step, found)]


def read_d2(line: str, memory: Memory) -> list[Row] | None:
    """`eta: 0:01:02  iter: 19  total_loss: 1.2  loss_cls: 0.5  time: 0.2  lr: 2e-05`."""
    match = D2.search(line)
    if match is None:
        return None
    return [Row("train", integer(match[1]), fields(line[match.end() :]))]


def read_meters(line: str, memory: Memory) -> list[Row] | None:
    """`Epoch: [0]  [20/1251]  eta: ...  lr: ...  loss: 7.0 (7.1)` and its imagenet ancestor."""
    match = METERS.search(line)
    if match is not None and match[1] in (None, "Train"):
        first = 0
    else:
        match = TIMM.search(line)
        if match is None:
            return None
        first = 1
    group = 2 - first
    epoch, position, length = (integer(match[group + k]) for k in range(3))
    found: dict[str, float] = {}
    for meter in METER.finditer(line, match.end()):
        value = value_of(meter[1], meter[2], meter[3])
        if value is not None:
            found.setdefault(meter[1], value)
    if not any("loss" in key.lower() for key in found):
        return None
    return [Row("train", epoch * length + position, {"epoch": float(epoch), **found})]


def read_mnist(line: str, memory: Memory) -> list[Row] | None:
    """`Train Epoch: 1 [640/60000 (1%)]  Loss: 2.300`: the step counts samples."""
    match = MNIST.search(line)
    if match is None:
        return None
    epoch, position, length = (integer(match[group]) for group in (1, 2, 3))
    found = fields(line[match.end() :])
    if not found:
        return None
    step = memory.epochs_before(epoch) * length + position
    return [Row("train", step, {"epoch": float(epoch), **found})]


OPENMMLAB = Pattern(
    name="OpenMMLab console",
    hints=(" - INFO - Epoch", " - INFO - Iter"),
    read=read_mm,
    step_name="iter",
    examples=(
        Example(
            "05/10 15:37:01 - mmengine - INFO - Epoch(train)  [2][ 50/100]  lr: 4.000000e-08  "
            "eta: 4:59:11  time: 0.571  data_time: 0.1  memory: 1234  grad_norm: 3.125  "
            "loss: 0.421912  loss_kpt: 0.25\n"
            "05/10 15:37:09 - mmengine - INFO - Epoch(val) [2][20/20]  coco/AP: 0.125  loss: 0.5",
            (
                ("train", 150, {"loss": 0.421912, "grad_norm": 3.125, "epoch": 2.0, "lr": 4e-8}),
                ("eval", 150, {"coco/AP": 0.125, "val_loss": 0.5, "loss": None}),
            ),
        ),
        Example(
            "2022-05-10 15:37:01,123 - mmseg - INFO - Iter [50/40000]\tlr: 9.989e-03, "
            "eta: 4:59:11, time: 0.5, memory: 8000, decode.loss_ce: 1.25, loss: nan",
            (("train", 50, {"loss": math.nan, "decode.loss_ce": 1.25, "lr": 0.009989}),),
        ),
    ),
)

DETECTRON2 = Pattern(
    name="Detectron2 console",
    hints=("iter: ",),
    read=read_d2,
    step_name="iter",
    examples=(
        Example(
            "[05/10 15:37:01 d2.utils.events]:  eta: 0:01:02  iter: 19  total_loss: 1.5  "
            "loss_cls: 0.5  loss_box_reg: nan  time: 0.2  last_time: 0.25  data_time: 0.1  "
            "lr: 2e-05  max_mem: 2000M",
            (("train", 19, {"total_loss": 1.5, "loss_box_reg": math.nan, "lr": 2e-5}),),
        ),
    ),
)

METRIC_LOGGER = Pattern(
    name="PyTorch meters console",
    hints=("Epoch: [", "Train: "),
    read=read_meters,
    examples=(
        Example(
            "Epoch: [1]  [  20/1251]  eta: 1:00:00  lr: 0.000001  loss: 7.0000 (7.1000)  "
            "time: 0.5000  data: 0.1000  max mem: 1000\n"
            "Test: Epoch: [1]  [  20/50]  loss: 1.0",
            (("train", 1271, {"loss": 7.0, "lr": 1e-6, "epoch": 1.0, "max mem": 1000.0}),),
        ),
        Example(
            "Epoch: [0][  10/5005]\tTime  0.500 ( 0.600)\tData  0.100 ( 0.200)\t"
            "Loss 6.9500e+00 (7.0000e+00)\tAcc@1   0.39 (  0.10)\tAcc@5   0.78 (  0.50)",
            (("train", 10, {"Loss": 6.95, "Acc@1": 0.39, "Time": 0.5}),),
        ),
        Example(
            "Train: 2 [  50/1251 (  4%)]  Loss: 6.9500 (6.95)  Time: 0.5s, 250.00/s  "
            "LR: 1.000e-05  Data: 0.01 (0.02)",
            (("train", 2552, {"Loss": 6.95, "LR": 1e-5, "epoch": 2.0}),),
        ),
    ),
)

MNIST_EXAMPLE = Pattern(
    name="PyTorch MNIST example console",
    hints=("Train Epoch: ",),
    read=read_mnist,
    step_name="samples",
    examples=(
        Example(
            "Train Epoch: 2 [640/60000 (1%)]\tLoss: 2.312500",
            (("train", 60640, {"Loss": 2.3125, "epoch": 2.0}),),
        ),
        Example(
            "Train Epoch: 0 [640/60000 (1%)]\tLoss: 2.312500\n"
            "Train Epoch: 1 [0/60000 (0%)]\tLoss: nan",
            (("train", 640, {"Loss": 2.3125}), ("train", 60000, {"Loss": math.nan})),
        ),
    ),
)

PATTERNS = (OPENMMLAB, DETECTRON2, METRIC_LOGGER, MNIST_EXAMPLE)
