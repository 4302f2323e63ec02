"""What a log of several processes, runs, crashes and formats is read as."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from stabdiag.model import LogTable, Note
from stabdiag.readers.text_log import read_text

LOG = Path("train.log")


def column(table: LogTable, name: str) -> list[float]:
    """The logged values of one column."""
    found = table.load([name])[name]
    return found.value[found.logged].tolist()


def notes(table: LogTable, kind: str) -> list[Note]:
    return [note for note in table.notes if note.kind == kind]


def hf(loss: float, epoch: float, **more: object) -> str:
    fields = {"loss": loss, "grad_norm": 1.5, "learning_rate": 1e-5, **more, "epoch": epoch}
    return repr(fields)


# --- the step that the Hugging Face Trainer doesn't print ---


def test_progress_bars_give_the_real_steps() -> None:
    lines = []
    for step in range(1, 41):
        lines.append(f" {step}%|#   | {step}/400 [00:{step:02d}<06:00,  1.00it/s]")
        if step % 10 == 0:
            lines += [" " * 50, hf(3 - step / 100, step / 100), ""]
    table = read_text(LOG, "\r".join(lines) + "\n")
    assert column(table, "step") == [10, 20, 30, 40]
    assert not table.counted_step
    assert not notes(table, "guessed")


def test_overflow_messages_take_their_step_from_the_bar() -> None:
    text = "\n".join(
        (
            " 14%|#  | 378/2724 [13:58:09<86:18:35, 132.44s/it][2023-06-07 22:16:00,018] [INFO] "
            "[loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
            "Attempted loss scale: 64, reducing to 32",
            " 14%|#  | 379/2724 [14:00:21<86:09:52, 132.28s/it][2023-06-07 22:18:11,762] [INFO] "
            "[loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
            "Attempted loss scale: 32, reducing to 16",
            " 14%|#  | 380/2724 [14:02:33<86:01:24, 132.12s/it]",
            hf(2.0491, 0.28),
            " 14%|#  | 390/2724 [14:02:33<86:01:24, 132.12s/it]",
            hf(2.5, 0.29),
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
            "Exiting run.",
        )
    )
    table = read_text(LOG, text + "\n")
    loaded = table.load(["step", "loss", "loss_scale"])
    assert loaded["step"].value.tolist() == [379, 380, 380, 390]
    assert column(table, "loss_scale") == [32, 16]
    assert column(table, "skipped") == [1, 1]
    assert ["loss scale at its minimum" in note.text for note in notes(table, "ending")] == [True]


def test_finished_bars_of_other_work_are_no_steps() -> None:
    text = "100%|####| 5000/5000 [00:09<00:00, 500.00it/s]\n" + "\n".join(
        hf(3 - n / 10, n / 10) for n in range(1, 6)
    )
    table = read_text(LOG, text + "\n")
    assert column(table, "step") == [1, 2, 3, 4, 5]
    assert table.counted_step


def test_a_resume_goes_back_to_the_rows_it_repeats() -> None:
    first = [hf(3.0, n / 100) for n in range(1, 201)]
    again = [hf(2.0, n / 100) for n in range(151, 251)]
    arguments = "TrainingArguments(\nlogging_steps=5,\nlogging_strategy=steps,\n)"
    table = read_text(LOG, "\n".join([arguments, *first, arguments, *again]) + "\n")
    steps = column(table, "step")
    assert steps[:200] == list(range(5, 1001, 5))
    assert steps[200] == pytest.approx(755, abs=5)
    assert steps[-1] - steps[200] == 99 * 5
    assert ["resume" in note.text for note in notes(table, "guessed")] == [True, False]


def test_an_epoch_that_ends_before_the_first_row_of_a_second_run_starts_it_over() -> None:
    run = [hf(3.0, n / 10) for n in range(1, 31)]
    end = "{'train_runtime': 10.5, 'train_loss': 0.5, 'epoch': 3.0}"
    table = read_text(LOG, "\n".join([*run, end, *run, end]) + "\n")
    steps = column(table, "step")
    assert steps == [*range(1, 31), 30, *range(1, 31), 30]
    assert table.row_kind is not None
    assert table.row_kind.count("summary") == 2


# --- several processes ---


def titan(step: int, loss: float, rank: int | None = None, tps: int = 3502) -> str:
    mark = "" if rank is None else f"[rank{rank}]:"
    return (
        f"{mark}[titan] 2025-10-30 14:32:58,897 - root - INFO - step: {step:2}  "
        f"loss: {loss:7.4f}  grad_norm:  1.5000  memory:  2.47GiB(3.12%)  tps: {tps:,}"
    )


def test_ranks_that_run_apart_are_one_series() -> None:
    printed = [(n + rank * 0.7, rank, n) for n in range(1, 101) for rank in range(4)]
    lines = [titan(n, 8 / n, rank) for _, rank, n in sorted(printed)]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "step") == list(range(1, 101))
    (note,) = notes(table, "dropped")
    assert note.count == 300
    assert "other values" not in note.text


def test_ranks_with_their_own_losses_give_the_losses_of_one_rank() -> None:
    lines = [titan(n, 10 * rank + 1, rank) for n in range(1, 51) for rank in (2, 0, 1)]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "loss") == [21.0] * 50
    (note,) = notes(table, "dropped")
    assert "100 of them with other values" in note.text


def test_processes_without_a_mark_are_told_by_the_repeated_step() -> None:
    lines = [titan(n, 8 / n, tps=3000 + k) for n in range(1, 51) for k in range(8)]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "step") == list(range(1, 51))
    assert [note.count for note in notes(table, "dropped")] == [350]


def test_a_restart_is_kept_whatever_its_ranks() -> None:
    for ranks in ((None,), (0, 1)):
        lines = [titan(n, 8 / n, rank) for n in range(1, 101) for rank in ranks]
        lines += ["W0216 torch/distributed/run.py:779] restarting"] * 3
        lines += [titan(n, 9 / n, rank) for n in range(81, 121) for rank in ranks]
        table = read_text(LOG, "\n".join(lines) + "\n")
        assert column(table, "step") == [*range(1, 101), *range(81, 121)]


def test_a_new_process_after_a_restart_is_no_second_rank() -> None:
    lines = [f"(TaskRunner pid=11) step:{n} - actor/pg_loss:0.5" for n in range(1, 31)]
    lines += [f"(TaskRunner pid=22) step:{n} - actor/pg_loss:0.25" for n in range(21, 41)]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "step") == [*range(1, 31), *range(21, 41)]
    assert not notes(table, "dropped")


# --- companions and other formats ---


def test_skipped_steps_stand_between_the_steps_around_them() -> None:
    overflow = (
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}"
    )
    iteration = " iteration {:8}/    1000 | learning rate: 1.0E-04 | lm loss: 2.5E+00 | "
    lines = [
        iteration.format(10) + "loss scale: 8.0 | grad norm: 1.0 |",
        overflow.format(8, 4),
        overflow.format(4, 2),
        iteration.format(20) + "loss scale: 2.0 | grad norm: 1.0 |",
        "[Rank 0] step=20, skipped=2, lr=[0.0001, 0.0001], mom=[(0.9, 0.999)]",
    ]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert table.format == "Megatron console"
    assert column(table, "iteration") == [10, 11, 12, 20, 20]
    assert column(table, "loss scale") == [8, 4, 2, 2]
    assert column(table, "skipped_total") == [2]
    (note,) = notes(table, "guessed")
    assert (note.count, note.rows) == (2, (2, 3))


def test_the_same_overflow_from_every_rank_is_one() -> None:
    lines = [f"step:{n}/90 train_loss:2.5000 train_time:{n}ms" for n in range(1, 10)]
    for scale in (32768.0, 16384.0):
        lines += [
            f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}"
        ] * 4
        lines += [f"step:{n}/90 train_loss:2.5000 train_time:{n}ms" for n in range(10, 12)]
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "loss_scale") == [32768, 16384]


def test_lines_of_another_format_are_left_out_and_said() -> None:
    lines = [f"iter {n}: loss 2.5000, time 10.00ms, mfu 5.00%" for n in range(50)]
    lines.insert(20, "s:3 trl:2.5 lr:0.1 norm:1.0")
    lines.insert(30, "custom loss = 2.25 at the gate")
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert table.rows == 50
    assert [(note.count, note.rows) for note in notes(table, "dropped")] == [(1, (21,)), (1, (31,))]


def test_one_known_line_does_not_outweigh_a_log_of_another_form() -> None:
    lines = [f"[trainer] step={n} my_loss={2.5:.4f} lr=0.001" for n in range(50)]
    lines.insert(3, hf(2.0, 0.5))
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert table.format == "text log"
    assert table.rows == 50


def test_epoch_averages_are_left_out_where_steps_are_logged() -> None:
    text = "\n".join(
        (
            "| INFO | train_inner | epoch 001:     10 / 20 loss=9.5, num_updates=10, gnorm=1.5",
            "| INFO | train_inner | epoch 001:     20 / 20 loss=8.5, num_updates=20, gnorm=1.5",
            "| INFO | train | epoch 001 | loss 9.0 | num_updates 20 | gnorm 1.5",
            "| INFO | valid | epoch 001 | valid on 'valid' subset | loss 8.25 | num_updates 20",
        )
    )
    table = read_text(LOG, text + "\n")
    assert table.row_kind == ("train", "train", "eval")
    assert column(table, "loss") == [9.5, 8.5]
    assert column(table, "valid_loss") == [8.25]
    assert ["averages over a whole epoch" in note.text for note in notes(table, "dropped")] == [
        True
    ]


# --- how the text ends ---

LINES = [f"iter {n}: loss {4 - n / 100:.4f}, time 10.00ms, mfu 5.00%" for n in range(100)]


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        ("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
         "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
         "Python exception: torch.cuda.OutOfMemoryError: CUDA out of memory"),
        ("FloatingPointError: Minimum loss scale reached (0.0001).", "loss scale at its minimum"),
        ("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1", "NCCL error"),
        ("Killed", "killed: Killed"),
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01 DUE TO TIME LIMIT ***",
         "terminated"),
        ("[rank3]: KeyboardInterrupt", "interrupted"),
        ("Traceback (most recent call last):\n  File \"train.py\", line 3", "cut off"),
    ],
)  # fmt: skip
def test_what_stands_after_the_last_metrics(tail: str, said: str) -> None:
    table = read_text(LOG, "\n".join(LINES) + "\nsaving\n" + tail + "\n")
    (note,) = notes(table, "ending")
    assert said in note.text
    assert note.rows[0] > 100 or "cut off" in said


def test_errors_before_the_last_metrics_are_no_ending() -> None:
    head = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'wandb'\n"
    table = read_text(LOG, head + "\n".join(LINES) + "\ndone, killed the time\n")
    assert not notes(table, "ending")


def test_the_same_exception_of_all_ranks_is_one_note() -> None:
    tail = "".join(
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "train.py", line 3, in <module>\n'
        f"[rank{rank}]: RuntimeError: CUDA error: device-side assert triggered\n"
        for rank in range(8)
    )
    (note,) = notes(read_text(LOG, "\n".join(LINES) + "\n" + tail), "ending")
    assert note.count == 8


def test_a_last_line_that_lacks_fields_is_cut_short() -> None:
    table = read_text(LOG, "\n".join(LINES) + "\niter 100: loss 3")
    assert table.rows == 100
    assert [note.text for note in notes(table, "dropped")] == [
        "the last line is cut short: left out"
    ]


def test_a_last_line_without_a_line_break_is_kept_and_said() -> None:
    table = read_text(LOG, "0 train 10.95\n1 train 10.5\n2 train 1")
    assert table.rows == 3
    assert ["last number may be cut short" in note.text for note in notes(table, "guessed")] == [
        True
    ]


# --- the general form ---


@pytest.mark.parametrize(
    "form",
    [
        "Epoch {e}/9 | Batch {n}/100 | Loss: {loss:.4f} | LR: 0.001",
        "epoch: {e}, iter: {n}, loss: {loss:.4f}, time: 0.25s",
        "[2024-01-01 10:00:00] Epoch {e} Step {n}/100 loss {loss:.4f} grad_norm 1.5",
        "INFO 10:11:12 train.py:45] epoch={e} step={n}/100 train_loss={loss:.4f}",
        '2024-01-01 10:00:00 INFO {{"epoch": {e}, "step": {n}, "loss": {loss:.4f}}}',
        "Epoch [{e}] [{n}/100] G loss: {loss:.4f} D loss: 0.5 step {n}",
    ],
)
def test_steps_within_epochs_are_counted_through(form: str) -> None:
    lines = []
    for epoch in range(1, 4):
        for n in range(10, 101, 10):
            lines.append(form.format(e=epoch, n=n, loss=4 - epoch / 10 - n / 1000))
            lines.append("saving 3 checkpoints")
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert column(table, "step") == list(range(10, 301, 10))
    losses = [name for name in table.names if "loss" in name.lower()]
    assert column(table, losses[0])[0] == pytest.approx(3.89)
    assert column(table, losses[0])[-1] == pytest.approx(3.6)


def test_steps_that_go_on_through_epochs_are_left_alone() -> None:
    lines = [f"epoch {1 + n // 100} step {n} loss {4 - n / 1000:.3f}" for n in range(10, 301, 10)]
    assert column(read_text(LOG, "\n".join(lines) + "\n"), "step") == list(range(10, 301, 10))


def test_two_lines_are_no_log() -> None:
    from stabdiag.errors import InputError

    with pytest.raises(InputError, match="no metric lines"):
        read_text(LOG, "step 1 loss 2.5\nstep 2 loss 2.25\n")


def test_source_code_and_sample_text_are_no_metrics() -> None:
    rng = random.Random(0)
    code = [
        f"    loss = criterion(out, y)  # step {rng.randint(1, 9)}",
        'print(f"step:{step}/{args.num_iterations} train_loss:{loss:.4f}")',
        "    assert step > 10 and loss < 3, 'iteration 5'",
        "lr = 0.01 if step < 100 else 0.001",
    ]
    sample = "Then at step 3 the loss of 12 men in 1914, a 5.5 : 4 defeat, was nan or never."
    lines = code * 200 + ["=" * 100]
    for n in range(1, 101):
        lines.append(f"step:{n}/100 train_loss:{8 / n:.4f} train_time:{n}ms step_avg:nanms")
        lines += [sample] * (n % 3)
    table = read_text(LOG, "\n".join(lines) + "\n")
    assert table.rows == 100
    assert np.isfinite(column(table, "train_loss")).all()
    assert "step_avg" not in table.names


def test_settings_come_from_argument_dumps_only() -> None:
    text = "\n".join(
        (
            "if fp16: print('max_grad_norm is nice')",
            "  fp16 ............................................ True",
            "  clip_grad ....................................... 1.0",
            "Overriding: dtype = float16",
            *LINES,
        )
    )
    table = read_text(LOG, text + "\n")
    assert dict(table.facts) == {"fp16": "True", "max_grad_norm": "1.0", "dtype": "float16"}


def test_columns_come_in_the_order_asked_and_lines_are_those_of_the_file() -> None:
    table = read_text(LOG, "hello\n\n" + "\n".join(LINES) + "\n")
    assert list(table.load(["mfu", "iter"])) == ["mfu", "iter"]
    assert table.line.tolist() == list(range(3, 103))
    assert table.kinds == dict.fromkeys(table.names, "number")
