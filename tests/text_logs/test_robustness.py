"""Noise, damage and hostile text: the same rows, only the tool's own errors, bounded time."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.text_log import looks_like_text_log, read_text
from stabdiag.readers.text_patterns import GENERIC, PATTERNS
from stabdiag.readers.text_patterns.record import Example, Pattern

LOG = Path("train.log")
EXAMPLES = [(p, example) for p in (*PATTERNS, GENERIC) for example in p.examples]

PREFIXES = (
    "[rank0]: ",
    "[default3]:",
    "511: ",
    "(TaskRunner pid=247607) ",
    "2024-05-01 12:00:00,123 - root - INFO - ",
    "2024-05-01T12:00:00.123Z ",
    "[2024-05-01 12:00:00,123] [INFO] [trainer.py:45:log] ",
    "\x1b[36m",
    "[1,0]<stdout>:",
)


def values(table: LogTable) -> list[list[float | None]]:
    columns = table.load(table.names)
    return [
        [float(c.value[row]) if c.logged[row] else None for c in columns.values()]
        for row in range(table.rows)
    ]


def rows_of(text: str) -> tuple[str, tuple[str, ...], str]:
    """What a table says: format, kinds, and its cells as text (so that NaN equals NaN)."""
    table = read_text(LOG, text)
    return table.format, table.row_kind or (), repr((table.names, values(table)))


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("pattern", "example"), EXAMPLES, ids=[f"{p.name}-{p.examples.index(e)}" for p, e in EXAMPLES]
)
def test_prefixes_do_not_change_the_rows(pattern: Pattern, example: Example, prefix: str) -> None:
    lines = example.lines.split("\n")
    noisy = "\n".join(prefix + line for line in lines) + "\n"
    assert rows_of(noisy) == rows_of(example.lines + "\n")


@pytest.mark.parametrize(
    ("pattern", "example"), EXAMPLES, ids=[f"{p.name}-{p.examples.index(e)}" for p, e in EXAMPLES]
)
def test_line_ends_and_colours_do_not_change_the_rows(pattern: Pattern, example: Example) -> None:
    wanted = rows_of(example.lines + "\n")
    assert rows_of(example.lines.replace("\n", "\r\n") + "\r\n") == wanted
    coloured = "\n".join(f"\x1b[1;32m{line}\x1b[0m" for line in example.lines.split("\n"))
    assert rows_of(coloured + "\n") == wanted


NOISE = st.sampled_from(
    (
        "",
        "saving checkpoint to out",
        "rank 1 sample 0: Hello, I'm a language model, 12 of 24 are 3.5, loss of 4",
        'print(f"step {step} loss {loss.item():.4f} lr {lr}")',
        "    loss = F.cross_entropy(logits.view(-1, 50257), targets.view(-1))",
        "| NVIDIA-SMI 535.129.03  Driver Version: 535.129.03   CUDA Version: 12.2     |",
        "UserWarning: nan is banana in 3 of 10 bunches",
        " 12%|#4   | 50/400 [00:01<00:09]",
        "W0216 01:29:32.254889 140275123599168 torch/distributed/run.py:779] ****",
    )
)


@given(noise=st.lists(NOISE, max_size=6), place=st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_noise_between_lines_does_not_change_the_rows(noise: list[str], place: int) -> None:
    lines = [f"step:{n}/20 train_loss:{10 / n:.4f} train_time:{n}ms" for n in range(1, 21)]
    wanted = rows_of("\n".join(lines) + "\n")
    lines[place:place] = noise
    assert rows_of("\n".join(lines) + "\n") == wanted


@pytest.mark.parametrize("text", ["", "\n\n", "hello", "the loss of 3 bananas\nstep 4"])
def test_text_without_metrics_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"train.log: no metric lines recognised in") as error:
        read_text(LOG, text)
    assert "HF Trainer, " in error.value.what
    assert error.value.todo
    assert "\n" not in error.value.what + error.value.todo
    assert not looks_like_text_log(text)


PIECES = st.sampled_from(
    [line for _, example in EXAMPLES for line in example.lines.split("\n")]
    + ["{'loss': ", "nan", "inf", "1e999", "step: 10", "\r", "\x1b[", "-" * 30, "| ", "=", ","]
)


@given(
    text=st.one_of(
        st.text(max_size=400),
        st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=12).map("\n".join),
        st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=8).map("".join),
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_is_read_or_refused(text: str) -> None:
    looks_like_text_log(text)
    try:
        table = read_text(LOG, text)
    except InputError:
        return
    columns = table.load(table.names)
    assert all(column.value.shape == (table.rows,) for column in columns.values())
    assert all(np.isnan(column.value[~column.logged]).all() for column in columns.values())
    assert table.row_kind is not None
    assert len(table.row_kind) == table.rows == table.line.size > 0


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_log_may_stop_at_any_character(data: st.DataObject) -> None:
    _, example = data.draw(st.sampled_from(EXAMPLES))
    cut = data.draw(st.integers(0, len(example.lines)))
    with contextlib.suppress(InputError):
        read_text(LOG, example.lines[:cut])


DAMAGE = (
    "nan",
    "1e999",
    "9" * 30,
    "-",
    "\r",
    "\x1b[",
    "\x00",
    ",",
    "1,234",
    ":",
    "|",
    "}",
    "\u0663",
)


def test_damaged_lines_are_read_or_refused() -> None:
    rng = random.Random(7)
    lines = [line for _, example in EXAMPLES for line in example.lines.split("\n")]
    for _ in range(600):
        damaged = []
        for line in rng.choices(lines, k=rng.randint(1, 8)):
            start = rng.randint(0, len(line))
            damaged.append(line[:start] + rng.choice(DAMAGE) + line[start + rng.randint(0, 8) :])
        with contextlib.suppress(InputError):
            table = read_text(LOG, "\n".join(damaged))
            step = table.load(table.names[:1])[table.names[0]]
            assert (step.value[step.logged] >= 0).all()
            assert (step.value[step.logged] < 2**53).all()


@pytest.mark.parametrize(
    "line",
    [
        "Train Epoch: 999999999 [999999999999/999999999999 (1%)]\tLoss: 2.5",
        "step:999999999999999999/9 train_loss:2.5",
        "iter 999999999999999999999: loss 2.5, time 1ms, mfu 1%",
        "{'loss': 2.5, 'step': 1e300, 'epoch': 1.0}",
        "{'loss': 2.5, 'step': nan, 'epoch': 1.0}",
    ],
)
def test_steps_out_of_all_measure_are_no_steps(line: str) -> None:
    with contextlib.suppress(InputError):
        table = read_text(LOG, line + "\n" + "iter 7: loss 2.5, time 1ms, mfu 1%\n" * 2)
        step = table.load(table.names[:1])[table.names[0]]
        assert (step.value[step.logged] < 2**53).all()


HOSTILE = {
    "one word": "a" * 60000,
    "words": "loss " * 12000,
    "keys": "loss:" * 12000,
    "colons": "loss: : : " * 6000,
    "digits": "loss: " + "9" * 60000,
    "commas": "loss: " + "1,234" * 12000,
    "blanks": "step: 1 loss:" + " " * 60000 + "x",
    "tabs": "\t" * 60000 + "loss",
    "bars": "| " * 30000 + "epoch 1 | loss",
    "percent bars": "%|" * 30000,
    "half a bar": " 5%|" + "#" * 60000,
    "open dictionaries": "{'epoch': " * 6000,
    "quotes": "{'loss': 'epoch':" + "'" * 60000,
    "escapes": "\x1b[" * 30000,
    "escape with digits": "loss \x1b[" + "1;" * 30000,
    "dashes": "-" * 60000,
    "table": "-" * 30 + "\n| " + "a " * 30000 + "|",
    "ranks": "[rank" * 12000,
    "pids": "(a pid=" * 9000,
    "brackets": "[" * 60000 + "loss: 1",
    "underscores": "_" * 30000 + "loss" + "_" * 30000,
    "slashes": "a/" * 30000 + "loss=1",
    "qualifiers": "train val " * 6000 + "loss",
    "verl": "step:1 - " + "a:1 - " * 10000,
    "numbers": "epoch 1 loss " + "1.5 " * 15000,
    "dots": "iteration 1/ 2 | " + "." * 60000 + ": 1",
    "dictionary": "'epoch': 1, " * 5000 + "}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lines_take_no_time(name: str) -> None:
    lines = [HOSTILE[name]] * 10
    started = time.process_time()
    with contextlib.suppress(InputError):
        read_text(LOG, "\n".join(lines))
    assert time.process_time() - started < 6.0  # 0.6 MB; milliseconds when linear, hours when not


def test_a_line_of_many_megabytes_is_passed_over() -> None:
    text = "loss: 1 step " * 400_000 + "\nstep:1/9 train_loss:2.5\n"
    table = read_text(LOG, text)
    assert table.rows == 1
    assert [note.text for note in table.notes if "too long" in note.text]
