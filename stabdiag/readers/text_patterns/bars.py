"""Metrics inside progress bars: Lightning, NeMo and tqdm postfixes, and Keras."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import fields, integer, segment_fields, whole

TQDM = re.compile(
    r"([^|\n]{0,120}?)[0-9]{1,3}%\|[^|\n]{0,400}\|\s{0,9}([0-9]{1,12})/([0-9]{1,12}) ?"
    r"\[[0-9:?]{1,12}<[^,\]\n]{0,40}(?:,[^,\]\n=]{0,40})?,\s?([^\]\n]{1,4000})"
)
EPOCH_WORD = re.compile(r"(?i)epoch[\s:=#\[]{0,4}([0-9]{1,9})")
NOT_TRAINING = re.compile(r"(?i)\b(?:valid|eval|test|predict|sanity)")
KERAS_EPOCH = re.compile(r"\s{0,9}Epoch ([0-9]{1,9})/[0-9]{1,9}\s{0,9}$")
KERAS = re.compile(
    r"(?<![\w/.])([0-9]{1,12})/([0-9]{1,12}) "
    r"(?:\[[=>.]{1,60}\] - |[━╸╺ ]{5,80}[0-9]|- [0-9]{1,6}s )"
)


def read_bar(line: str, memory: Memory) -> list[Row] | None:
    """`Epoch 0:  12%|#| 5/40 [00:01<00:09, 3.70it/s, v_num=0, train_loss=1.2]`.

    The step is `global_step` where the bar shows it, else counted through the epochs by the
    length of the bar. Bars of evaluations are no rows.
    """
    match = TQDM.match(line)
    if match is None:
        return None
    found = segment_fields(match[4].split(","))
    if not any("loss" in key.lower() for key in found):
        return None
    if NOT_TRAINING.search(match[1]):
        return []
    done, length = integer(match[2]), integer(match[3])
    epoch = EPOCH_WORD.search(match[1])
    step = done
    if epoch is not None:
        number = integer(epoch[1])
        step = memory.epochs_before(number) * length + done
        found = {"epoch": float(number), **found}
    step = whole(found.pop("global_step", math.nan), step)
    found.pop("v_num", None)
    if "reduced_train_loss" in found and math.isnan(found.get("loss", 0.0)):
        del found["loss"]  # Lightning's own running loss: NaN when a step returns none
    return [Row("train", step, found)]


def read_keras(line: str, memory: Memory) -> list[Row] | None:
    """`Epoch 1/10`, then `50/1875 [==>...] - ETA: 5s - loss: 0.2 - accuracy: 0.9`.

    The losses are running averages of the epoch, the last line of an epoch its average.
    """
    match = KERAS_EPOCH.match(without_prefix(line))
    if match is not None:
        memory.numbers["epoch"] = float(match[1])
        return []
    match = KERAS.search(line)
    if match is None or "loss: " not in line:
        return None
    found = fields(line[match.end() :].replace(" - ", "  "))
    found.pop("ETA", None)
    if not any(key.endswith("loss") for key in found):
        return None
    done, length = integer(match[1]), integer(match[2])
    epoch = memory.numbers.get("epoch", 1.0)
    step = max(0, int(epoch) - 1) * length + done
    return [Row("train", step, {"epoch": epoch, **found})]


PROGRESS_BAR = Pattern(
    name="progress bar",
    hints=("%|",),
    read=read_bar,
    examples=(
        Example(
            "Epoch 0:  12%|#4        | 5/40 [00:01<00:09,  3.70it/s, v_num=0, train_loss=1.200]\r"
            "Epoch 1:  15%|#5        | 6/40 [00:01<00:09,  3.70it/s, v_num=0, train_loss=nan.0]\r"
            "Validation DataLoader 0:  50%|##  | 1/2 [00:00<00:00, 5.00it/s, val_loss=1.0]",
            (
                ("train", 5, {"train_loss": 1.2, "epoch": 0.0}),
                ("train", 46, {"train_loss": math.nan, "epoch": 1.0}),
            ),
        ),
        Example(
            "Epoch 0: :   1%|          | 100/10000 [02:14<3:42:15, loss=nan, v_num=, "
            "reduced_train_loss=10.90, global_step=99.00, consumed_samples=800.0, "
            "train_step_timing in s=0.5",
            (
                (
                    "train",
                    99,
                    {"reduced_train_loss": 10.9, "train_step_timing in s": 0.5, "loss": None},
                ),
            ),
        ),
        Example(
            "  5%|5         | 50/1000 [00:10<03:10,  5.00it/s, loss=1.25, lr=1e-4]",
            (("train", 50, {"loss": 1.25, "lr": 1e-4}),),
        ),
    ),
)

KERAS_CONSOLE = Pattern(
    name="Keras console",
    hints=("Epoch ", "loss: "),
    read=read_keras,
    examples=(
        Example(
            "Epoch 1/2\n"
            "  50/1875 [>.............................] - ETA: 5s - loss: 2.5000 - accuracy: 0.1250"
            "\r1875/1875 [==============================] - 10s 5ms/step - loss: 0.2500 - "
            "accuracy: 0.9375 - val_loss: 0.1250\n"
            "Epoch 2/2\n"
            "1875/1875 - 10s - loss: nan - accuracy: 0.0980",
            (
                ("train", 50, {"loss": 2.5, "accuracy": 0.125, "epoch": 1.0}),
                ("train", 1875, {"loss": 0.25, "val_loss": 0.125}),
                ("train", 3750, {"loss": math.nan, "epoch": 2.0}),
            ),
        ),
        Example(
            "Epoch 3/5\n"
            "\x1b[1m1875/1875\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m "
            "\x1b[1m10s\x1b[0m 5ms/step - accuracy: 0.9375 - loss: 0.2500",
            (("train", 5625, {"loss": 0.25, "accuracy": 0.9375}),),
        ),
    ),
)

PATTERNS = (PROGRESS_BAR, KERAS_CONSOLE)
