"""Console of the Hugging Face Trainer and what is built on it (TRL, Axolotl, LLaMA-Factory)."""

from __future__ import annotations

import math
import re
from bisect import bisect_left

from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row
from stabdiag.readers.text_patterns.tokens import VALUE, is_timing, value_of, whole

PAIR = re.compile(r"'([^'\n]{1,120})':\s{0,4}(?:'([^'\n]{0,60})'|([^,'{}\[\]\n]{1,60}))")
SAME_EPOCH = 0.011  # epochs are printed with two decimals


def read_dict(line: str, memory: Memory) -> list[Row] | None:
    """Read one printed dictionary: train, `eval_*`, or the summary with `train_runtime`.

    It names no step. The step is the count of the progress bar where one is printed, else the
    rows are counted, in units of `logging_steps` where the log states it.
    """
    mark = line.find("'epoch':")
    start, end = line.rfind("{", 0, mark), line.find("}", mark)
    if mark < 0 or start < 0 or end < 0:
        return None
    found = numbers_in(line[start:end])
    if "epoch" not in found:
        return None
    if "train_runtime" in found:
        memory.numbers["summary_seen"] = 1
        return [Row("summary", last_step(memory), found)]
    if "loss" in found or "grad_norm" in found:
        return [Row("train", next_step(found, memory), found)]
    if any(key.startswith("eval_") for key in found):
        return [Row("eval", last_step(memory), found)]
    if any("loss" in key for key in found):
        return [Row("train", next_step(found, memory), found)]
    return None


def numbers_in(text: str) -> dict[str, float]:
    """Return the numeric items of a dictionary's repr; other items are left out."""
    found: dict[str, float] = {}
    for key, quoted, plain in PAIR.findall(text):
        word = quoted or plain.strip()
        try:
            value: float | None = float(word)
        except ValueError:
            number = VALUE.match(word)
            if number is None or word[number.end() :] not in ("", ")"):
                continue
            value = value_of(key, number[1], number[2])
        if value is not None and (math.isfinite(value) or not is_timing(key)):
            found[key] = value
    return found


def last_step(memory: Memory) -> int:
    """Return the step of the latest train row of this run."""
    return int(memory.numbers.get("step", 0))


def next_step(found: dict[str, float], memory: Memory) -> int:
    """Return the step of a new train row: stated, from the progress bar, or counted."""
    numbers, log = memory.numbers, memory.log
    for key in ("step", "global_step"):
        if key in found:
            numbers["step"] = whole(found[key], last_step(memory))
            return last_step(memory)
    begin_run_if_new(found["epoch"], memory)
    total = int(numbers.get("bar_total", 0))
    if not total and last_step(memory) < log.bars.get(log.bar, 0) < log.bar:
        total = log.bar
        numbers["bar_total"] = total
    memory.epochs.append(found["epoch"])
    shown = log.bars.get(total, 0) if total else 0
    if shown > last_step(memory):
        numbers["step"] = shown
    else:
        memory.counted += 1
        numbers["step"] = last_step(memory) + logging_steps(memory)
    return last_step(memory)


def logging_steps(memory: Memory) -> int:
    """Return the steps between two train rows as the printed arguments say, else 1."""
    facts = memory.log.facts
    text = facts.get("logging_steps", "1")
    by_step = facts.get("logging_strategy", "steps").lower().endswith("steps")
    return max(1, int(text)) if by_step and text.isdecimal() and len(text) < 9 else 1


def begin_run_if_new(epoch: float, memory: Memory) -> None:
    """Set the count back where the epoch falls back: to 0, or in a resume to that epoch's row."""
    epochs, numbers = memory.epochs, memory.numbers
    ended = numbers.pop("summary_seen", 0)
    dumps = memory.log.argument_dumps
    dumped = dumps > numbers.get("dumps", 0)
    numbers["dumps"] = dumps
    if not epochs or not (ended or dumped or epoch < epochs[-1] - SAME_EPOCH):
        return
    if epoch >= epochs[-1] - SAME_EPOCH and not ended:
        return  # arguments printed again, but the run goes on where it was
    numbers.pop("bar_total", None)
    rows_before = bisect_left(epochs, epoch) if epoch > epochs[0] + 2 * SAME_EPOCH else 0
    if ended and rows_before:
        rows_before = 0
    stride = last_step(memory) / len(epochs)
    numbers["step"] = int(rows_before * stride)
    del epochs[rows_before:]
    if rows_before:
        memory.guesses.setdefault(
            "the epoch falls back: a resume, its step was taken from the earlier rows", []
        ).append(memory.log.line)


HF_TRAINER = Pattern(
    name="HF Trainer console",
    hints=("'epoch':",),
    read=read_dict,
    examples=(
        Example(
            "{'loss': 1.4164, 'grad_norm': inf, 'learning_rate': 0.0, 'epoch': 0.0}\n"
            "{'loss': '0.25', 'grad_norm': 'nan', 'learning_rate': '1e-05', 'epoch': '0.5'}\n"
            "{'eval_loss': 0.91, 'eval_runtime': 518.8, 'epoch': 0.5}\n"
            "{'train_runtime': 147356.5, 'train_loss': 0.19, 'epoch': 0.5}\n"
            "{'config_name': 'a.yaml', 'epochs': 5, 'learning_rate': 1e-05}",
            (
                ("train", 1, {"loss": 1.4164, "grad_norm": math.inf, "learning_rate": 0.0}),
                ("train", 2, {"loss": 0.25, "grad_norm": math.nan, "epoch": 0.5}),
                ("eval", 2, {"eval_loss": 0.91}),
                ("summary", 2, {"train_loss": 0.19, "train_runtime": 147356.5}),
            ),
        ),
        Example(
            "TrainingArguments(\nfp16=True,\nlogging_steps=10,\nlogging_strategy=steps,\n)\n"
            "{'loss': 2.0, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
            "{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.2}",
            (("train", 10, {"loss": 2.0}), ("train", 20, {"loss": 1.5})),
        ),
        Example(
            " 14%|#4        | 380/2724 [14:02:33<86:01:24, 132.12s/it]{'loss': np.float64(2.0491), "
            "'rewards/chosen': -0.5, 'epoch': 0.28}\r 14%|#4        | 390/2724 [14:02:33<86:01:24]"
            "\n{'loss': 2.25, 'rewards/chosen': 0.5, 'epoch': 0.29}",
            (
                ("train", 380, {"loss": 2.0491, "rewards/chosen": -0.5}),
                ("train", 390, {"loss": 2.25, "rewards/chosen": 0.5}),
            ),
        ),
    ),
)

PATTERNS = (HF_TRAINER,)
