"""Activation maxima by hooks."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)

from torch import nn

from stabdiag.errors import UsageError
from stabdiag.recorder import Recorder
from tests.recorder.loops import batch_of, loss_of, tiny_model, train


def test_maxima_are_those_of_the_outputs(tmp_path: Path) -> None:
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    path = tmp_path / "run.jsonl"
    with Recorder(model, optimizer, path, activations=True, every={"activations": 2}) as rec:
        expected = {}
        for step in range(4):
            batch = batch_of(step)
            hidden = model[0](batch[0])
            expected[step] = float(hidden.detach().abs().max())
            loss = loss_of(model, batch)
            loss.backward()
            rec.after_backward(loss)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    rows = strict_rows(path)
    assert [r["step"] for r in rows if "activation_max" in r] == [0, 2]
    for step in (0, 2):
        per_layer = {n for n in rows[step] if n.startswith("activation_max/")}
        assert per_layer == {"activation_max/0", "activation_max/1", "activation_max/2"}
        assert rows[step]["activation_max/0"] == pytest.approx(expected[step], rel=1e-6)
        assert rows[step]["activation_max"] == max(rows[step][name] for name in per_layer)


def test_micro_batches_give_one_maximum_and_evaluation_none(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1, bias=False))
    nn.init.ones_(model[1].weight)
    path = tmp_path / "run.jsonl"
    with Recorder(
        model, torch.optim.SGD(model.parameters(), lr=0.1), path, activations=True
    ) as rec:
        for value in (3.0, -7.0, 5.0):
            model(torch.tensor([[value]]))
        model.eval()
        model(torch.tensor([[100.0]]))
        rec.after_backward(1.0)
    (row,) = strict_rows(path)
    assert row["activation_max/1"] == 7.0
    assert "activation_max/0" not in row


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (-math.inf, "Infinity")])
def test_maxima_that_are_not_finite(tmp_path: Path, value: float, word: str) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Flatten())
    path = tmp_path / "run.jsonl"
    parameter = nn.Parameter(torch.ones(1))
    with Recorder(model, torch.optim.SGD([parameter], lr=0.1), path, activations=["0", "1"]) as rec:
        for first in (1.0, value, 2.0):
            model(torch.tensor([[first, 4.0]]))
        rec.after_backward(1.0)
    (row,) = strict_rows(path)
    assert row["activation_max"] == row["activation_max/0"] == word


def test_modules_by_expression_and_hooks_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = train(path, 1, activations="[02]")
    names = {n for n in strict_rows(path)[0] if n.startswith("activation_max/")}
    assert not any(module._forward_hooks for module in model.modules())
    assert names == {"activation_max/0", "activation_max/2"}


@pytest.mark.parametrize("which", ["transformer.*", ["0", "9"]])
def test_unknown_modules_are_refused(tmp_path: Path, which: str | list[str]) -> None:
    with pytest.raises(UsageError, match="activations: no module"):
        train(tmp_path / "run.jsonl", 1, activations=which)
