"""The recorder in plain loops: what is measured, when, and under which step."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)

from torch import nn

from stabdiag.errors import UsageError
from stabdiag.recorder import Recorder
from tests.recorder.loops import batch_of, grads, loss_of, norm, tiny_model, train

NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]


def sgd(model: nn.Module, lr: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr)


def test_a_row_holds_what_the_loop_did(tmp_path: Path) -> None:
    model = tiny_model()
    optimizer = sgd(model)
    expected = []
    with Recorder(model, optimizer, tmp_path / "run.jsonl", every={"param_norm": 1}) as rec:
        for step in range(3):
            loss = loss_of(model, batch_of(step))
            loss.backward()
            expected.append((loss.item(), norm(grads(model)), norm(list(model.parameters()))))
            rec.after_backward(loss, indices=[3 * step, 3 * step + 1])
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    for step, (row, (loss, grad, param)) in enumerate(
        zip(strict_rows(tmp_path / "run.jsonl"), expected, strict=True)
    ):
        assert row["step"] == step
        assert row["segment"] == 0
        assert row["loss"] == pytest.approx(loss, rel=1e-6)
        assert row["grad_norm"] == pytest.approx(grad, rel=1e-6)
        assert row["param_norm"] == pytest.approx(param, rel=1e-6)
        assert row["grad_param_ratio"] == pytest.approx(grad / param, rel=1e-6)
        assert row["lr"] == 0.05
        assert row["sample_ids"] == [3 * step, 3 * step + 1]
        assert "loss_scale" not in row
        assert "skipped" not in row


def test_the_default_cadence_is_that_of_the_handbook(tmp_path: Path) -> None:
    train(tmp_path / "run.jsonl", 201)
    rows = strict_rows(tmp_path / "run.jsonl")
    for name in ("loss", "grad_norm", "lr", "grad_param_ratio"):
        assert all(name in row for row in rows)
    assert [r["step"] for r in rows if "param_norm" in r] == [0, 100, 200]
    assert [r["step"] for r in rows if "param_norm/0.weight" in r] == [0, 100, 200]
    with_layers = {r["step"] for r in rows if "grad_norm/0.weight" in r}
    assert with_layers >= set(range(0, 201, 10))
    assert len(with_layers) < 40
    # between two parameter norms the ratio is that to the last one
    assert rows[99]["grad_param_ratio"] == pytest.approx(
        rows[99]["grad_norm"] / rows[0]["param_norm"], rel=1e-6
    )


def test_a_cadence_can_be_set_for_each_metric(tmp_path: Path) -> None:
    every = {"loss": 2, "grad_norm": 3, "param_norm": 4, "layers": 0}
    train(tmp_path / "run.jsonl", 9, every=every)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [r["step"] for r in rows if "loss" in r] == [0, 2, 4, 6, 8]
    assert [r["step"] for r in rows if "grad_norm" in r] == [0, 3, 6]
    assert [r["step"] for r in rows if "param_norm" in r] == [0, 4, 8]
    assert not any(name.startswith("grad_norm/") for row in rows for name in row)


def test_what_has_cadence_0_is_never_recorded(tmp_path: Path) -> None:
    every = dict.fromkeys(("loss", "grad_norm", "param_norm", "layers", "activations", "batch"), 0)
    train(tmp_path / "run.jsonl", 2, every=every, activations=True)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert rows == [{"step": step, "segment": 0, "lr": 0.05} for step in range(2)]


def test_a_model_may_mix_precisions(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4).double(), nn.Linear(4, 4), nn.Linear(4, 4).bfloat16())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    with Recorder(model, sgd(model), tmp_path / "run.jsonl", clip=100.0) as rec:
        rec.after_backward(1.0)
    (row,) = strict_rows(tmp_path / "run.jsonl")
    assert row["grad_norm"] == pytest.approx(0.5 * 60**0.5, rel=1e-8)


@pytest.mark.parametrize(
    ("every", "said", "todo"),
    [
        ({"grad_nrom": 1}, "no metric is called 'grad_nrom'", "did you mean 'grad_norm'"),
        ({"loss": -1}, "'loss' is -1", "0 means never"),
    ],
)
def test_a_wrong_cadence_is_refused(
    tmp_path: Path, every: dict[str, int], said: str, todo: str
) -> None:
    with pytest.raises(UsageError) as caught:
        train(tmp_path / "run.jsonl", 1, every=every)
    assert said in caught.value.what
    assert todo in caught.value.todo


@pytest.mark.parametrize("way", ["after", "before", "recorder"])
def test_the_norm_is_that_before_clipping_wherever_the_loop_clips(tmp_path: Path, way: str) -> None:
    plain, model = tiny_model(), tiny_model()
    plain_optimizer, optimizer = sgd(plain), sgd(model)
    clip = 0.1
    expected = []
    with Recorder(
        model,
        optimizer,
        tmp_path / "run.jsonl",
        every={"layers": 1},
        clip=clip if way == "recorder" else None,
    ) as rec:
        for step in range(4):
            loss_of(plain, batch_of(step)).backward()
            expected.append([norm([p.grad]) for p in plain.parameters()])
            nn.utils.clip_grad_norm_(plain.parameters(), clip)
            plain_optimizer.step()
            plain_optimizer.zero_grad()

            loss = loss_of(model, batch_of(step))
            loss.backward()
            if way == "before":
                total = nn.utils.clip_grad_norm_(model.parameters(), clip)
                rec.after_backward(loss, grad_norm=total)
            else:
                rec.after_backward(loss)
            if way == "after":
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    for row, layers in zip(strict_rows(tmp_path / "run.jsonl"), expected, strict=True):
        assert math.hypot(*layers) > 2 * clip
        assert row["grad_norm"] == pytest.approx(math.hypot(*layers), rel=1e-5)
        recorded = [row[f"grad_norm/{name}"] for name in NAMES]
        assert recorded == pytest.approx(layers, rel=1e-5)
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_loop_that_clips_first_and_does_not_tell_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def clip(step: int, model: nn.Module) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    train(tmp_path / "run.jsonl", 20, before_recording=clip)
    assert caplog.text.count("clip") >= 1
    assert sum("seem to be clipped" in r.getMessage() for r in caplog.records) == 1


def test_no_warning_of_clipping_for_a_loop_that_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(tmp_path / "run.jsonl", 60)
    assert not caplog.records


@pytest.mark.parametrize("divided", [False, True])
def test_micro_batches_make_one_row(tmp_path: Path, divided: bool) -> None:
    model, whole = tiny_model(), tiny_model()
    optimizer = sgd(model)
    batch = batch_of(0, size=8)
    expected = loss_of(whole, batch)
    expected.backward()
    with Recorder(
        model, optimizer, tmp_path / "run.jsonl", micro_losses="sum" if divided else "mean"
    ) as rec:
        for number in range(4):
            part = (batch[0][2 * number :][:2], batch[1][2 * number :][:2])
            loss = loss_of(model, part)
            (loss / 4).backward()
            rec.after_backward(
                loss / 4 if divided else loss, indices=[number], batch=part, last=number == 3
            )
        optimizer.step()
        rec.after_step()
    (row,) = strict_rows(tmp_path / "run.jsonl")
    assert row["loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert row["grad_norm"] == pytest.approx(norm(grads(whole)), rel=1e-5)
    assert row["sample_ids"] == [0, 1, 2, 3]
    assert row["batch/abs_max"] == pytest.approx(float(batch[0].abs().max()), rel=1e-6)


def test_gradients_that_the_loop_drops_are_a_skipped_step(tmp_path: Path) -> None:
    model = tiny_model()
    optimizer = sgd(model)
    with Recorder(model, optimizer, tmp_path / "run.jsonl") as rec:
        for step in range(3):
            loss = loss_of(model, batch_of(step)) * (math.nan if step == 1 else 1.0)
            loss.backward()
            rec.after_backward(loss)
            if math.isfinite(loss.item()):
                optimizer.step()
                rec.after_step()
            optimizer.zero_grad()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert [row.get("skipped") for row in rows] == [None, 1, None]
    assert rows[1]["loss"] == "NaN"


def test_a_loop_that_forgets_after_step_skips_nothing(tmp_path: Path) -> None:
    model = tiny_model()
    optimizer = sgd(model)
    with Recorder(model, optimizer, tmp_path / "run.jsonl") as rec:
        for step in range(3):
            loss = loss_of(model, batch_of(step))
            loss.backward()
            rec.after_backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert not any("skipped" in row for row in rows)


def test_each_group_has_its_learning_rate(tmp_path: Path) -> None:
    model = tiny_model()
    groups: list[dict[str, Any]] = [
        {"params": model[0].parameters(), "lr": 0.5},
        {"params": model[2].parameters(), "lr": torch.tensor(0.25)},
    ]
    optimizer = torch.optim.SGD(groups)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with Recorder(model, optimizer, tmp_path / "run.jsonl", late_steps=5) as rec:
        for step in range(3):
            loss = loss_of(model, batch_of(step))
            loss.backward()
            rec.after_backward(loss)
            optimizer.step()
            scheduler.step()
            rec.after_step()
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["lr"] for row in rows] == [0.5, 0.25, 0.125]
    assert [row["lr/group1"] for row in rows] == [0.25, 0.125, 0.0625]


def test_layers_are_recorded_at_a_spike_too(tmp_path: Path) -> None:
    def spike(step: int, model: nn.Module) -> None:
        if step == 33:
            for gradient in grads(model):
                assert gradient is not None
                gradient *= 50

    train(tmp_path / "run.jsonl", 40, before_recording=spike)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert {r["step"] for r in rows if "grad_norm/0.weight" in r} >= {0, 10, 20, 30, 33}
    assert "grad_norm/0.weight" not in rows[35]


def test_the_loss_must_be_one_number(tmp_path: Path) -> None:
    model = tiny_model()
    with Recorder(model, sgd(model), tmp_path / "run.jsonl") as rec:
        with pytest.raises(UsageError, match=r"shape \(3,\)"):
            rec.after_backward(torch.ones(3))
        rec.after_backward(torch.ones(1))


def test_the_loss_is_that_of_the_call(tmp_path: Path) -> None:
    """A loop may reuse the tensor that it handed over."""
    model = tiny_model()
    total = torch.zeros(())
    with Recorder(model, sgd(model), tmp_path / "run.jsonl", late_steps=5) as rec:
        for _ in range(3):
            total += 1
            rec.after_backward(total)
            rec.after_step()
    assert [row["loss"] for row in strict_rows(tmp_path / "run.jsonl")] == [1.0, 2.0, 3.0]


def test_only_what_is_trained_is_measured(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(50, 8, sparse=True), nn.Linear(8, 8), nn.Linear(8, 4))
    for parameter in model[1].parameters():
        parameter.requires_grad_(False)
    optimizer = sgd(model)
    ids = torch.tensor([1, 1, 3])
    with Recorder(model, optimizer, tmp_path / "run.jsonl") as rec:
        loss = model(ids).pow(2).mean()
        loss.backward()
        dense = model[0].weight.grad.to_dense()
        rec.after_backward(loss)
        optimizer.step()
        rec.after_step()
    (row,) = strict_rows(tmp_path / "run.jsonl")
    assert row["grad_norm/0.weight"] == pytest.approx(norm([dense]), rel=1e-6)
    assert {n for n in row if n.startswith("param_norm/")} == {
        "param_norm/0.weight",
        "param_norm/2.weight",
        "param_norm/2.bias",
    }


def test_half_precision_norms_do_not_overflow(tmp_path: Path) -> None:
    model = nn.Linear(100, 1, bias=False).half()
    with Recorder(model, sgd(model), tmp_path / "run.jsonl") as rec:
        model.weight.grad = torch.full_like(model.weight, 60_000.0)
        rec.after_backward(1.0)
    (row,) = strict_rows(tmp_path / "run.jsonl")
    assert row["grad_norm"] == pytest.approx(600_000, rel=1e-3)


def test_own_rows_carry_the_last_step(tmp_path: Path) -> None:
    model = tiny_model()
    with Recorder(model, sgd(model), tmp_path / "run.jsonl", late_steps=5) as rec:
        rec.after_backward(1.0)
        rec.after_step()
        rec.log(val_loss=2.5)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert rows[1] == {"step": 0, "segment": 0, "val_loss": 2.5}
    assert rows[0]["loss"] == 1.0
