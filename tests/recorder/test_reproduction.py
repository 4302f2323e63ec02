"""The reproduction that `stabdiag layers` writes runs as it is, on any names of a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY

torch = pytest.importorskip("torch", reason=WHY)

from stabdiag.verdict.reproduction import outline  # noqa: E402


class Block(torch.nn.Module):  # type: ignore[misc]
    """A block whose activation has a NaN gradient at 0, as `sqrt` under `where` has."""

    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.c_fc = torch.nn.Linear(4, 8)
        self.c_proj = torch.nn.Linear(8, 4)
        self.broken = broken

    def forward(self, x: Any) -> Any:
        y = self.c_fc(x)
        if self.broken:
            y = y.clamp(min=0.0)
            y = torch.where(y > 0, y.sqrt(), torch.zeros_like(y))
        return x + self.c_proj(y)


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(False), Block(True), Block(False))


def run(block: Sequence[str], at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(model().state_dict(), at / "CHECKPOINT")
    monkeypatch.chdir(at)
    names = {
        "build_model": model,
        "batch_of": lambda step: torch.randn(3, 4),
        "loss_of": lambda made, batch: made(batch).square().mean(),
    }
    exec(compile("\n".join(outline(block, 280)), "outline", "exec"), names)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(
    "block",
    [
        ("1.c_fc.weight", "1.c_fc.bias", "1.c_proj.weight"),
        ("1.c_fc", "1.c_proj"),
        ("1/c_fc/weight", "1/c_proj/weight"),
        (),
    ],
)
def test_it_shows_where_the_nan_is_born(
    block: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(block, tmp_path, monkeypatch)
    out = capsys.readouterr().out
    shown = [line for line in out.splitlines() if line.startswith("1.c_fc: output")]
    assert len(shown) == 1
    assert shown[0].endswith(" 0 not finite")  # the forward pass is well
    assert "SqrtBackward0" in out  # the backward pass is not
    assert ("0.c_fc: output" in out) == (not block)


def test_names_that_the_model_does_not_have_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="SUSPECTS names none of"):
        run(("elsewhere.weight",), tmp_path, monkeypatch)
