"""Any other log whose lines name a step or epoch and a loss, in the same form again and again."""

from __future__ import annotations

import math
import re

from stabdiag.readers.text_patterns.prefix import without_prefix
from stabdiag.readers.text_patterns.record import Example, Memory, Pattern, Row, RowKind
from stabdiag.readers.text_patterns.tokens import END, NUM, UNIT, WRAP, integer, value_of, whole

POSITION = re.compile(
    r"(?i)(?<![\w/.])(global[_ ]step|iterations?|iters?|steps?|updates?|batch|epochs?|it|ep)"
    r"[\"']?\s{0,4}[:=#|]?\s{0,8}[\[(]?\s{0,6}([0-9][0-9,]{0,14})(?![\d,]*\.?\w)"
    r"(?:\s{0,3}(?:/|of)\s{0,3}([0-9,]{1,15}))?"
)
QUALIFIER = (
    r"(?:(?:train(?:ing)?|val(?:id|idation)?|test|eval(?:uation)?|dev|avg|average|mean|total|"
    r"running|global|grad(?:ient)?|learning|loss|batch|epoch|[a-z]{1,20}/[a-z]{1,20})[ ]){0,3}"
)
METRIC = re.compile(
    rf"(?i)(?<![\w/.@-])[\"']?({QUALIFIER}[A-Za-z_][\w./@%+-]{{0,79}})[\"']?"
    rf"[ \t]{{0,9}}(?:[:=]|is[ ])[ \t]{{0,20}}[\"']?{WRAP}({NUM})({UNIT}){END}"
)
BARE = re.compile(
    rf"(?i)(?<![\w/.@-])({QUALIFIER}(?:[\w./-]{{0,40}}loss|[\w./]{{0,40}}norm|lr|ppl|acc))"
    rf"\s{{1,6}}({NUM})({UNIT}){END}"
)
LEADING = re.compile(r"\s{0,20}([0-9]{1,12})/([0-9]{1,12})\s")
EVALUATION = re.compile(r"(?i)\b(?:val|valid|validation|eval|evaluation|test|dev)\b|\bval_")
HELD_OUT = re.compile(
    r"(?i)(?:^|[\s/_.])(?:val|valid|validation|eval|evaluation|test|dev)(?![a-z])"
)
STEP_WORDS = ("global_step", "global step", "step", "iteration", "iter", "update", "it", "batch")
EPOCH_WORDS = ("epoch", "ep")
NAMES_A_PLACE = frozenset((*STEP_WORDS, *EPOCH_WORDS, "steps", "iterations", "updates", "epochs"))
FILE_NAME = re.compile(r"\.(?:py|cc|cpp|cu|h|yaml|json)$")


def read_generic(line: str, memory: Memory) -> list[Row] | None:
    """Read a line with a step or epoch and a loss; anything else is None."""
    body = without_prefix(line)
    found = metrics(body)
    if not any("loss" in key.lower() for key in found):
        return None
    places = positions(body)
    epoch = places.get("epoch")
    if epoch is not None:
        found = {"epoch": float(epoch[0]), **found}
    kind = kind_of(body, found)
    if kind == "eval":
        found = {(f"val_{key}" if key.lower() == "loss" else key): found[key] for key in found}
    if "step" in places:
        return [Row(kind, step_of(places, memory), found)]
    if epoch is not None:
        return epoch_rows(epoch[0], found, kind, memory)
    if math.isfinite(found.get("epoch", math.nan)):  # a fraction of an epoch: rows are counted
        memory.counted += kind == "train"
        memory.numbers["counted"] = memory.numbers.get("counted", 0) + (kind == "train")
        return [Row(kind, int(memory.numbers["counted"]), found)]
    return None


def metrics(body: str) -> dict[str, float]:
    """Find the named numbers of a line; names of one or several words."""
    found: dict[str, float] = {}
    for pattern in (METRIC, BARE):
        for match in pattern.finditer(body):
            key = match[1].strip()
            if key.lower() in NAMES_A_PLACE and key.lower() != "epoch":
                continue
            if FILE_NAME.search(key) or key in found:
                continue
            value = value_of(key, match[2], match[3])
            if value is not None:
                found[key] = value
    return found


def positions(body: str) -> dict[str, tuple[int, int]]:
    """Find "step" (most global word first) and "epoch", each with its total or 0."""
    seen: dict[str, tuple[int, int]] = {}
    for match in POSITION.finditer(body):
        word = match[1].lower().removesuffix("s")
        seen.setdefault(word, (integer(match[2]), integer(match[3]) if match[3] else 0))
    result = {}
    leading = LEADING.match(body)
    if leading is not None:
        result["step"] = (integer(leading[1]), integer(leading[2]))
    for name, words in (("step", STEP_WORDS), ("epoch", EPOCH_WORDS)):
        for word in words:
            if word in seen:
                result[name] = seen[word]
                break
    return result


def kind_of(body: str, found: dict[str, float]) -> RowKind:
    """Tell a line of an evaluation: all its losses are held-out ones, or it says so in words."""
    losses = [key for key in found if "loss" in key.lower()]
    if all(HELD_OUT.search(key) for key in losses):
        return "eval"
    plain = all(key.lower() == "loss" for key in losses)
    return "eval" if plain and EVALUATION.search(body) and "train" not in body.lower() else "train"


def step_of(places: dict[str, tuple[int, int]], memory: Memory) -> int:
    """Return the step from the start of the run, also where the log counts within each epoch."""
    position, length = places["step"]
    numbers = memory.numbers
    if "epoch" in places:
        epoch = places["epoch"][0]
        last = numbers.get("epoch", epoch)
        if epoch > last and position <= numbers.get("position", -1):
            numbers["offset"] = numbers.get("offset", 0) + (
                (epoch - last) * length if length else numbers["position"]
            )
        numbers["epoch"], numbers["position"] = epoch, position
    step = int(numbers.get("offset", 0)) + position
    numbers["step"] = step
    return step


def epoch_rows(epoch: int, found: dict[str, float], kind: RowKind, memory: Memory) -> list[Row]:
    """Split the summary of an epoch into its training averages and its evaluation."""
    step = whole(memory.numbers.get("step", math.nan), epoch)
    held_out = {key: value for key, value in found.items() if HELD_OUT.search(key)}
    training = {key: value for key, value in found.items() if key not in held_out}
    if kind == "eval" or "step" not in memory.numbers:
        return [Row("eval" if kind == "eval" else "epoch", step, found)]
    rows = [Row("epoch", step, training)]
    return [*rows, Row("eval", step, held_out)] if held_out else rows


GENERIC = Pattern(
    name="text log",
    hints=("loss", "Loss", "LOSS"),
    read=read_generic,
    least_alike=3,
    examples=(
        Example(
            "Epoch [1/2], Step [100/200], Loss: 2.5000\n"
            "Epoch [1/2], Step [200/200], Loss: 2.2500\n"
            "Epoch [1/2] validation loss: 2.0000\n"
            "Epoch [2/2], Step [100/200], Loss: nan",
            (
                ("train", 100, {"Loss": 2.5, "epoch": 1.0}),
                ("train", 200, {"Loss": 2.25}),
                ("eval", 200, {"validation loss": 2.0, "Loss": None}),
                ("train", 300, {"Loss": math.nan, "epoch": 2.0}),
            ),
        ),
        Example(
            "2024-01-01 12:00:00,123 - trainer - INFO - step=10 loss=2.5 grad_norm=1.25 lr=1e-4\n"
            "2024-01-01 12:00:01,123 - trainer - INFO - step=20 loss=2.25 grad_norm=inf lr=1e-4\n"
            "2024-01-01 12:00:02,123 - trainer - INFO - my loss is a banana, step=25\n"
            "2024-01-01 12:00:03,123 - trainer - INFO - step=30 loss=nan grad_norm=nan lr=1e-4",
            (
                ("train", 10, {"loss": 2.5, "grad_norm": 1.25, "lr": 1e-4}),
                ("train", 20, {"loss": 2.25, "grad_norm": math.inf}),
                ("train", 30, {"loss": math.nan, "grad_norm": math.nan}),
            ),
        ),
        Example(
            "Epoch 1/3: train_loss=0.5, val_loss=0.75\n"
            "Epoch 2/3: train_loss=0.25, val_loss=0.5\n"
            "Epoch 3/3: train_loss=0.125, val_loss=0.625",
            (
                ("train", 1, {"train_loss": 0.5, "val_loss": 0.75}),
                ("train", 2, {"train_loss": 0.25}),
                ("train", 3, {"val_loss": 0.625}),
            ),
        ),
        Example(
            "170/9500 (epoch 0.895), train_loss = 2.84438551, grad/param norm = 1.3375e-01, "
            "time/batch = 0.1679s\n"
            "171/9500 (epoch 0.900), train_loss = 2.82365211, grad/param norm = 1.1715e-01, "
            "time/batch = 0.1658s\n"
            "172/9500 (epoch 0.905), train_loss = nan, grad/param norm = nan, time/batch = 0.1s",
            (
                ("train", 170, {"train_loss": 2.84438551, "grad/param norm": 0.13375}),
                ("train", 171, {"train_loss": 2.82365211}),
                ("train", 172, {"train_loss": math.nan}),
            ),
        ),
        Example(
            "\titers: 100, epoch: 1 | loss: 0.3404325\n"
            "\tspeed: 0.0710s/iter; left time: 907.8888s\n"
            "\titers: 200, epoch: 1 | loss: 0.2512505\n\titers: 100, epoch: 2 | loss: 0.2106335",
            (
                ("train", 100, {"loss": 0.3404325}),
                ("train", 200, {"loss": 0.2512505}),
                ("train", 300, {"loss": 0.2106335, "epoch": 2.0}),
            ),
        ),
        Example(
            "INFO:tensorflow:loss = 2.5, step = 100 (12.345 sec)\n"
            "INFO:tensorflow:global_step/sec: 8.1\n"
            "INFO:tensorflow:loss = 2.25, step = 200 (12.345 sec)\n"
            "INFO:tensorflow:loss = nan, step = 300 (12.345 sec)",
            (
                ("train", 100, {"loss": 2.5}),
                ("train", 200, {"loss": 2.25}),
                ("train", 300, {"loss": math.nan}),
            ),
        ),
        Example(
            "epoch: 1 step: 100, loss is 2.5\nepoch: 1 step: 200, loss is 2.25\n"
            "epoch: 1 step: 300, loss is nan",
            (
                ("train", 100, {"loss": 2.5}),
                ("train", 200, {"loss": 2.25}),
                ("train", 300, {"loss": math.nan}),
            ),
        ),
        Example(
            'INFO:root:{"step": 1, "loss": 2.5}\nINFO:root:{"step": 2, "loss": 2.25}\n'
            'INFO:root:{"step": 3, "loss": NaN}',
            (
                ("train", 1, {"loss": 2.5}),
                ("train", 2, {"loss": 2.25}),
                ("train", 3, {"loss": math.nan}),
            ),
        ),
    ),
)
