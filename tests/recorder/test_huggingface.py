"""The Hugging Face callback inside the real Trainer, beside the Trainer's own log."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate, which its Trainer needs, is not installed")

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import stabdiag
from stabdiag.recorder import HuggingFaceRecorder
from stabdiag.rules.monitoring import AUDIT_POINTS, OVERFLOW_POINTS
from stabdiag.verdict.logging_lines import lines_for
from tests.recorder import loops

# What transformers and accelerate warn of in themselves.
pytestmark = pytest.mark.filterwarnings("default")
assert loops  # for its one thread

VOCABULARY, LENGTH = 32, 12


def data(rows: int) -> list[dict[str, list[int]]]:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, VOCABULARY, (rows, LENGTH), generator=generator).tolist()
    return [{"input_ids": row, "labels": row, "attention_mask": [1] * LENGTH} for row in ids]


def trainer_of(folder: Path, steps: int, callbacks: list[Any], **arguments: Any) -> Trainer:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=LENGTH,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    settings = {
        "max_steps": steps,
        "per_device_train_batch_size": 4,
        "logging_steps": 1,
        "max_grad_norm": 0.05,
        "learning_rate": 1e-2,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    return Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(output_dir=str(folder / "out"), **settings | arguments),
        train_dataset=data(64),
        eval_dataset=data(4),
        callbacks=callbacks,
    )


def train(folder: Path, steps: int = 6, *, callback: Any = None, **arguments: Any) -> Trainer:
    callback = callback or HuggingFaceRecorder(folder / "run.jsonl")
    trainer = trainer_of(folder, steps, [callback], **arguments)
    trainer.train()
    return trainer


def logged(trainer: Trainer, name: str) -> dict[int, float]:
    history = trainer.state.log_history
    return {record["step"]: float(record[name]) for record in history if name in record}


@pytest.mark.parametrize("accumulation", [1, 2])
def test_rows_are_those_of_the_trainer_before_clipping(tmp_path: Path, accumulation: int) -> None:
    trainer = train(tmp_path, gradient_accumulation_steps=accumulation)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    loss, grad_norm = logged(trainer, "loss"), logged(trainer, "grad_norm")
    lr = logged(trainer, "learning_rate")
    for row in rows:
        assert row["loss"] == pytest.approx(loss[row["step"]], abs=1e-4)
        assert row["grad_norm"] == pytest.approx(grad_norm[row["step"]], rel=1e-4)
        assert row["grad_norm"] > 2 * 0.05
        assert row["lr"] == pytest.approx(lr[row["step"]])
        assert row["batch/seq_len"] == LENGTH
        assert 0 < row["batch/token_entropy"] < math.log(VOCABULARY)
        assert row["batch/targets"] == accumulation * 4 * LENGTH
    layers = [v for n, v in rows[0].items() if n.startswith("grad_norm/")]
    assert "grad_norm/transformer.h.0.attn.c_attn.weight" in rows[0]
    assert math.hypot(*layers) == pytest.approx(rows[0]["grad_norm"], rel=1e-6)


def test_each_step_is_recorded_also_between_the_trainers_logs(tmp_path: Path) -> None:
    trainer = train(tmp_path, logging_steps=3)
    rows = strict_rows(tmp_path / "run.jsonl")
    window = [row["loss"] for row in rows if row["step"] in (1, 2, 3)]
    assert sum(window) / 3 == pytest.approx(logged(trainer, "loss")[3], abs=1e-4)


def test_a_nan_loss_that_the_trainer_hides_is_recorded(tmp_path: Path) -> None:
    class Poison(HuggingFaceRecorder):
        def on_step_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
            if state.global_step == 3:
                with torch.no_grad():
                    named["model"].transformer.h[0].mlp.c_fc.bias[0] = math.nan

    trainer = train(tmp_path, callback=Poison(tmp_path / "run.jsonl"))
    rows = strict_rows(tmp_path / "run.jsonl")
    assert rows[3]["loss"] == "NaN"
    assert math.isfinite(logged(trainer, "loss")[4])
    bad = {n for n, v in rows[3].items() if n.startswith("param_norm/") and v == "NaN"}
    assert bad == {"param_norm/transformer.h.0.mlp.c_fc.bias"}


def test_a_loss_that_the_model_does_not_compute_comes_from_the_trainer(tmp_path: Path) -> None:
    trainer = train(tmp_path, label_smoothing_factor=0.1, logging_steps=2)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert {r["step"]: r["loss"] for r in rows if "loss" in r} == logged(trainer, "loss")
    grad_norm = {r["step"]: r["grad_norm"] for r in rows if "grad_norm" in r}
    assert set(grad_norm) == {1, 2, 3, 4, 5, 6}
    for step, value in logged(trainer, "grad_norm").items():
        assert grad_norm[step] == pytest.approx(value, rel=1e-4)


def test_gradients_that_nobody_shows_come_from_the_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HuggingFaceRecorder, "_backward_ended", lambda self: None)
    trainer = train(tmp_path, logging_steps=2)
    rows = strict_rows(tmp_path / "run.jsonl")
    grad_norm = {r["step"]: r["grad_norm"] for r in rows if "grad_norm" in r}
    assert grad_norm == logged(trainer, "grad_norm")
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5, 6]


def test_evaluation_gives_the_validation_loss_and_no_row(tmp_path: Path) -> None:
    trainer = train(tmp_path, eval_strategy="steps", eval_steps=2)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert {r["step"]: r["val_loss"] for r in rows if "val_loss" in r} == logged(
        trainer, "eval_loss"
    )
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5, 6]


def test_training_on_from_a_checkpoint_is_a_new_segment(tmp_path: Path) -> None:
    train(tmp_path, 4, save_strategy="steps", save_steps=2)
    callback = HuggingFaceRecorder(tmp_path / "run.jsonl")
    torch.manual_seed(0)
    trainer = train(tmp_path, 2, callback=callback)  # a fresh start on the same log
    trainer.args.max_steps = 4
    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-2"))
    rows = strict_rows(tmp_path / "run.jsonl")
    got = [(row["segment"], row["step"]) for row in rows]
    assert got == [(0, s) for s in (1, 2, 3, 4)] + [(1, s) for s in (1, 2)] + [
        (2, s) for s in (3, 4)
    ]


def test_the_model_is_left_without_hooks(tmp_path: Path) -> None:
    trainer = train(tmp_path, 1)
    assert not trainer.model._forward_hooks


def test_the_lines_of_the_audit_close_the_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand in the script as they are: the arguments first, the callback at the Trainer."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(lines_for("hf", [*AUDIT_POINTS, *OVERFLOW_POINTS]))
    arguments, imported, callback = code.partition("from stabdiag.recorder")
    names: dict[str, Any] = {"TrainingArguments": dict}
    exec(arguments, names)
    assert names["args"].pop("eval_steps") == 500
    trainer = trainer_of(tmp_path, 100, [], **names["args"], eval_steps=50)
    exec(imported + callback, {"trainer": trainer})
    trainer.train()
    trainer.save_state()
    audit = stabdiag.analyze(tmp_path / "run.jsonl").audit
    assert audit is not None
    assert audit.score == 100
    own = stabdiag.analyze(tmp_path / "out" / "trainer_state.json").audit
    assert own is not None
    assert own.framework == "hf"
    gaps = {item.metric for item in own.items if item.status != "ok"}
    assert gaps == {"param_norm", "grad_param_ratio", "layers", "batch"}
