"""What is not finite: written as strict JSON, named, and told apart from overflow of the scale."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)

from torch import nn

from stabdiag.recorder import Recorder
from tests.recorder.loops import batch_of, grads, loss_of, norm, tiny_model, train


def poison(name: str, value: float, at: int) -> Any:
    def action(step: int, model: nn.Module) -> None:
        if step == at:
            dict(model.named_parameters())[name].grad[0] = value

    return action


@pytest.mark.parametrize(
    ("value", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "Infinity")]
)
def test_a_bad_gradient_is_recorded_with_its_layer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: float, word: str
) -> None:
    train(tmp_path / "run.jsonl", 5, before_recording=poison("2.bias", value, 3))
    rows = strict_rows(tmp_path / "run.jsonl")
    row = rows[3]  # between two steps of the layers' cadence
    assert row["grad_norm"] == word
    assert row["grad_norm/2.bias"] == word
    assert isinstance(row["grad_norm/0.weight"], float)
    # weights are still sound before the step that this gradient makes, and not after it
    assert isinstance(row["param_norm/2.bias"], float)
    assert isinstance(row["loss"], float)
    assert rows[4]["loss"] in ("NaN", "Infinity")
    (record,) = caplog.records
    assert record.getMessage() == ("stabdiag recorder: step 3: not finite: the gradient of 2.bias")


def test_bad_weights_are_named_in_the_step_that_shows_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with Recorder(model, optimizer, tmp_path / "run.jsonl") as rec:
        for step in range(4):
            if step == 2:
                with torch.no_grad():
                    model[0].bias[0] = math.nan
            loss = loss_of(model, batch_of(step))
            loss.backward()
            rec.after_backward(loss)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    row = strict_rows(tmp_path / "run.jsonl")[2]
    assert row["loss"] == "NaN"
    assert row["param_norm"] == "NaN"
    bad = {n for n, v in row.items() if n.startswith("param_norm/") and v == "NaN"}
    assert bad == {"param_norm/0.bias"}
    assert "step 2: not finite: the loss" in caplog.text


def test_an_accelerator_looks_at_the_weights_once_it_knows(tmp_path: Path) -> None:
    """Numbers that arrive late bring the look at the weights late, and only one."""
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with Recorder(model, optimizer, tmp_path / "run.jsonl", late_steps=2) as rec:
        rec._on_host = False  # as for a model on a device
        for step in range(12):
            loss = loss_of(model, batch_of(step)) * (math.nan if step == 1 else 1.0)
            loss.backward()
            rec.after_backward(loss)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows] == list(range(12))
    assert [r["step"] for r in rows if "param_norm" in r] == [0, 3]
    assert rows[3]["param_norm"] == "NaN"


def test_layers_of_a_dead_run_do_not_fill_the_disk(tmp_path: Path) -> None:
    train(tmp_path / "run.jsonl", 60, before_recording=poison("2.bias", math.nan, 20))
    rows = strict_rows(tmp_path / "run.jsonl")
    assert rows[59]["grad_norm"] == "NaN"
    assert sum("grad_norm/2.bias" in row for row in rows[31:]) == len([40, 50])


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_norms_are_without_loss_scale(tmp_path: Path, unscale: bool, clip: float | None) -> None:
    plain, model = tiny_model(), tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    expected = []
    with Recorder(model, optimizer, tmp_path / "run.jsonl", scaler=scaler, clip=clip) as rec:
        for step in range(4):
            loss_of(plain, batch_of(step)).backward()
            expected.append(norm(grads(plain)))
            if clip:
                nn.utils.clip_grad_norm_(plain.parameters(), clip)
            plain_optimizer.step()
            plain_optimizer.zero_grad()

            loss = loss_of(model, batch_of(step))
            scaler.scale(loss).backward()
            if unscale:
                scaler.unscale_(optimizer)
            rec.after_backward(loss)
            scaler.step(optimizer)
            scaler.update()
            rec.after_step()
            optimizer.zero_grad()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["grad_norm"] for row in rows] == pytest.approx(expected, rel=1e-5)
    assert [row["loss_scale"] for row in rows] == [1024.0, 1024.0, 2048.0, 2048.0]
    assert [row["skipped"] for row in rows] == [0, 0, 0, 0]
    assert rows[0]["grad_norm/0.weight"] < 10
    torch.testing.assert_close(list(plain.parameters()), list(model.parameters()))


def test_a_step_that_the_scaler_skips(tmp_path: Path) -> None:
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with Recorder(model, optimizer, tmp_path / "run.jsonl", scaler=scaler) as rec:
        for step in range(4):
            loss = loss_of(model, batch_of(step))
            scaler.scale(loss).backward()
            if step == 2:
                model[0].weight.grad[0, 0] = math.inf
            rec.after_backward(loss)
            scaler.step(optimizer)
            scaler.update()
            rec.after_step()
            optimizer.zero_grad()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0]
    assert [row["loss_scale"] for row in rows] == [1024.0, 1024.0, 1024.0, 512.0]
    assert rows[2]["grad_norm"] == "Infinity"
    assert isinstance(rows[2]["loss"], float)


def test_a_scaler_that_is_off_is_none(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    train(tmp_path / "run.jsonl", 2, scaler=scaler)
    assert not any("loss_scale" in row for row in strict_rows(tmp_path / "run.jsonl"))
