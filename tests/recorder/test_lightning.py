"""The Lightning callback inside the real Trainer."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("lightning", reason="lightning is not installed")

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import grad_norm
from torch import Tensor, nn

import stabdiag
from stabdiag.recorder import LightningRecorder
from stabdiag.rules.monitoring import AUDIT_POINTS, OVERFLOW_POINTS
from stabdiag.verdict.logging_lines import lines_for
from tests.recorder.loops import loss_of, norm, tiny_model

# What Lightning warns of in itself and its environment.
pytestmark = pytest.mark.filterwarnings("default")

BATCHES = 5


class Module(pl.LightningModule):
    def __init__(self, *, fails_at: int | None = None) -> None:
        super().__init__()
        self.model = tiny_model()
        self.fails_at = fails_at
        self.norms: list[float] = []
        self.losses: list[float] = []

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        if self.global_step == self.fails_at:
            raise ZeroDivisionError
        loss = loss_of(self.model, batch)
        self.losses.append(loss.item())
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.norms.append(norm([p.grad for p in self.parameters()]))

    def validation_step(self, batch: tuple[Tensor, Tensor], number: int) -> None:
        self.log("val_loss", loss_of(self.model, batch))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


def loader(batches: int = BATCHES) -> Any:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4 * batches, 8, generator=generator)
    y = torch.randn(4 * batches, 4, generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)


def fit(folder: Path, module: Module, *, validate: bool = False, **options: Any) -> None:
    callback = options.pop("callback", None) or LightningRecorder(folder / "run.jsonl")
    trainer = pl.Trainer(
        **{
            "max_epochs": 1,
            "accelerator": "cpu",
            "devices": 1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "callbacks": [callback],
            "default_root_dir": str(folder),
        }
        | options
    )
    trainer.fit(module, loader(), loader(1) if validate else None)


def test_rows_are_those_of_the_module_before_clipping(tmp_path: Path) -> None:
    module = Module()
    fit(tmp_path, module, gradient_clip_val=0.05)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows] == list(range(BATCHES))
    assert [row["loss"] for row in rows] == pytest.approx(module.losses, rel=1e-6)
    assert [row["grad_norm"] for row in rows] == pytest.approx(module.norms, rel=1e-6)
    assert min(module.norms) > 2 * 0.05
    assert [row["lr"] for row in rows] == [0.1 * 0.5**step for step in range(BATCHES)]
    assert [row["batch_id"] for row in rows] == list(range(BATCHES))
    assert "grad_norm/model.0.weight" in rows[0]
    assert rows[0]["batch/abs_max"] > 1


def test_accumulated_batches_make_one_row(tmp_path: Path) -> None:
    """Five batches in pairs: the last one is a step of its own."""
    module = Module()
    callback = LightningRecorder(tmp_path / "run.jsonl", indices=lambda batch: [len(batch[0])])
    fit(tmp_path, module, accumulate_grad_batches=2, callback=callback)
    rows = strict_rows(tmp_path / "run.jsonl")
    a, b, c, d, e = module.losses
    assert [row["loss"] for row in rows] == pytest.approx([(a + b) / 2, (c + d) / 2, e], rel=1e-6)
    assert [row["grad_norm"] for row in rows] == pytest.approx(module.norms, rel=1e-6)
    assert [row["sample_ids"] for row in rows] == [[4, 4], [4, 4], [4]]


def test_half_precision_with_a_scaler(tmp_path: Path) -> None:
    class Overflow(Module):
        def on_after_backward(self) -> None:
            if self.global_step == 2 and len(self.losses) == 3:
                self.model[0].weight.grad[0, 0] = math.inf

    module = Overflow()
    precision = pl.plugins.precision.MixedPrecision("16-mixed", "cpu")
    # Lightning itself would make a scaler for CUDA.
    precision.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    fit(tmp_path, module, plugins=[precision])
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0, 0]
    assert [row["loss_scale"] for row in rows] == [256.0, 256.0, 256.0, 128.0, 128.0]
    assert rows[2]["grad_norm"] == "Infinity"
    sound = [0, 1, 3, 4]
    assert [rows[i]["grad_norm"] for i in sound] == pytest.approx(
        [module.norms[i] for i in sound], rel=1e-3
    )


def test_validation_gives_the_validation_loss(tmp_path: Path) -> None:
    fit(tmp_path, Module(), validate=True, val_check_interval=2)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert [row["step"] for row in rows if "val_loss" in row] == [1, 3]
    assert [row["step"] for row in rows if "loss" in row] == list(range(BATCHES))


def test_a_run_that_fails_is_written(tmp_path: Path) -> None:
    callback = LightningRecorder(tmp_path / "run.jsonl", late_steps=100)
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path, Module(fails_at=3), callback=callback)
    assert [row["step"] for row in strict_rows(tmp_path / "run.jsonl")] == [0, 1, 2]


def test_manual_optimization_with_two_optimizers(tmp_path: Path) -> None:
    class Manual(Module):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
            loss = loss_of(self.model, batch)
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()
            return loss

        def configure_optimizers(self) -> Any:
            model: Any = self.model
            return [torch.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 2)]

    module = Manual()
    fit(tmp_path, module)
    rows = strict_rows(tmp_path / "run.jsonl")
    assert len(rows) == BATCHES
    assert [row["grad_norm"] for row in rows] == pytest.approx(module.norms[::2], rel=1e-6)
    assert isinstance(module.model, nn.Sequential)


class AuditedModule(Module):
    """The lines that the audit gives for a LightningModule, as they are."""

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        loss = super().training_step(batch, number)
        self.log("train_loss", loss, on_step=True)
        self.log("batch_idx", float(number), on_step=True)
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.log_dict(grad_norm(self, norm_type=2))


def test_the_lines_of_the_audit_close_the_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(lines_for("lightning", [*AUDIT_POINTS, *OVERFLOW_POINTS]))
    said = (
        'self.log("train_loss", loss, on_step=True)',
        'self.log("batch_idx", float(batch_idx), on_step=True)',
        "from lightning.pytorch.utilities import grad_norm",
        "self.log_dict(grad_norm(self, norm_type=2))",
    )
    assert all(line in code for line in said)
    _, imported, trainer = code.partition("from lightning.pytorch.callbacks")
    settings = {
        "max_epochs": 1,
        "accelerator": "cpu",
        "devices": 1,
        "logger": CSVLogger(tmp_path),
        "gradient_clip_val": 0.1,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    made: list[pl.Trainer] = []
    exec(
        imported + trainer,
        {"Trainer": lambda **given: made.append(pl.Trainer(**settings, **given))},
    )
    made[0].fit(AuditedModule(), loader(120), loader(4))
    audit = stabdiag.analyze(tmp_path / "run.jsonl").audit
    assert audit is not None
    assert audit.score == 100
    own = stabdiag.analyze(next(tmp_path.rglob("metrics.csv"))).audit
    assert own is not None
    assert own.framework == "lightning"
    gaps = {item.metric: item.status for item in own.items if item.status != "ok"}
    assert gaps == {"param_norm": "missing", "grad_param_ratio": "missing", "layers": "partial"}
