"""What is recorded is diagnosed, and audited without a gap; what the audit says to add, adds it."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY

torch = pytest.importorskip("torch", reason=WHY)

from torch import Tensor, nn

import stabdiag
from stabdiag.recorder import Recorder
from stabdiag.rules.monitoring import AUDIT_POINTS, OVERFLOW_POINTS
from stabdiag.verdict.logging_lines import lines_for
from tests.command_line import Command
from tests.recorder import loops

assert loops  # for its one thread

VOCABULARY, LENGTH, BATCH, WIDTH = 32, 16, 16, 32
STEPS, FAULT = 300, 200
GAPS = (*AUDIT_POINTS, *OVERFLOW_POINTS)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln_1(x)
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class Model(nn.Module):
    """A language model of two blocks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.h = nn.ModuleList([Block(), Block()])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    def loss(self, ids: Tensor) -> Tensor:
        logits = self(ids[:, :-1]).flatten(0, 1)
        return nn.functional.cross_entropy(logits, ids[:, 1:].flatten())


def corpus() -> Callable[[int], Tensor]:
    """Batches of a Markov chain by their step."""
    generator = torch.Generator().manual_seed(1)
    table = torch.softmax(2 * torch.randn(VOCABULARY, VOCABULARY, generator=generator), 1)

    def batch_of(step: int) -> Tensor:
        generator.manual_seed(step)
        ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
        for t in range(LENGTH):
            ids[:, t + 1] = torch.multinomial(table[ids[:, t]], 1, generator=generator)[:, 0]
        return ids

    return batch_of


def optimizer_of(model: nn.Module, steps: int = STEPS) -> tuple[Any, Any]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 20) * (1 - 0.9 * step / steps)
    )
    return optimizer, schedule


def record(path: Path, fault: str) -> None:
    """Train and record; the fault is put in at FAULT."""
    model, batch_of = Model(), corpus()
    optimizer, schedule = optimizer_of(model)
    with Recorder(model, optimizer, path) as rec:
        for step in range(STEPS):
            ids = batch_of(step)
            if fault == "data" and FAULT <= step < FAULT + 3:
                ids = torch.randint(0, VOCABULARY, ids.shape)
            if fault == "optimizer" and FAULT <= step < FAULT + 20:
                optimizer.param_groups[0]["lr"] *= 60
            loss = model.loss(ids)
            loss.backward()
            if fault == "overflow" and step == FAULT:
                model.h[1].mlp[0].weight.grad[0, 0] = math.nan  # type: ignore[index, union-attr]
            rec.after_backward(loss, batch=ids, indices=range(step * BATCH, (step + 1) * BATCH))
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            rec.after_step()
            schedule.step()
            if step % 50 == 49:
                with torch.no_grad():
                    rec.log(val_loss=model.loss(batch_of(STEPS + step)).item())


@pytest.mark.parametrize(
    ("fault", "health"),
    [
        ("none", "healthy"),
        ("optimizer", "unstable"),
        ("data", "unstable"),
        ("overflow", "diverged"),
    ],
)
def test_a_recorded_run_is_diagnosed_and_logs_what_is_asked(
    command: Command,
    tmp_path: Path,
    fault: str,
    health: str,
) -> None:
    log = tmp_path / "run.jsonl"
    record(log, fault)
    done = command("analyze", log, "--format", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    verdict = report["verdict"]
    assert (verdict["health"], verdict["cause"]) == (health, fault)
    if fault == "none":
        assert verdict["onset_step"] is None
    else:
        assert FAULT <= verdict["onset_step"] <= FAULT + 2
    if fault == "overflow":
        assert verdict["layers"][0] == "h.1.mlp.0.weight"
    gaps = {one["metric"] for one in report["audit"]["items"] if one["status"] != "ok"}
    assert gaps == (set(OVERFLOW_POINTS) if fault == "overflow" else set())
    page = command("audit", log, "--min-score", "100")
    assert page.code == (1 if gaps else 0)
    assert ("Lines to add" in page.out) == bool(gaps)


def test_a_resume_from_lost_weights_is_seen_though_the_steps_count_on(tmp_path: Path) -> None:
    """The recorder goes on at the next step: its count of segments alone tells of the restart."""
    log = tmp_path / "run.jsonl"
    batch_of = corpus()
    for first in (0, 200):
        model = Model()  # the second time the checkpoint was not loaded
        optimizer, _ = optimizer_of(model)
        with Recorder(model, optimizer, log) as rec:
            for step in range(first, first + 200):
                loss = model.loss(batch_of(step))
                loss.backward()
                rec.after_backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                rec.after_step()
    run = stabdiag.read_run(log)
    assert [(s.first_step, s.last_step) for s in run.segments] == [(0, 199), (200, 399)]
    report = stabdiag.analyze(log)
    assert report.verdict.cause == "state_corruption"
    assert report.verdict.onset_step == 200


def pasted(path: Path, gaps: tuple[str, ...], steps: int) -> None:
    """Train a plain loop in which the lines that the audit gives stand as they are."""
    model, batch_of = Model(), corpus()
    optimizer, _ = optimizer_of(model)
    text = "\n".join(lines_for("pytorch", gaps))
    before, mark, inside = text.partition("# after loss.backward()")
    code = compile(mark + inside, "lines", "exec")
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def evaluate(model: Model) -> float:
        with torch.no_grad():
            return model.loss(batch_of(steps)).item()

    with path.open("a") as log:
        names: dict[str, Any] = {
            "torch": torch,
            "json": json,
            "model": model,
            "optimizer": optimizer,
            "scaler": scaler,
            "max_norm": 1.0,
            "evaluate": evaluate,
            "log": log,
        }
        exec(before, names)
        for step in range(steps):
            loss = model.loss(batch_of(step))
            scaler.scale(loss).backward()
            indices = torch.arange(step * BATCH, (step + 1) * BATCH)
            names |= {"loss": loss, "step": step, "indices": indices}
            exec(code, names)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def test_the_lines_for_a_plain_loop_close_the_gaps(tmp_path: Path) -> None:
    pasted(tmp_path / "run.jsonl", GAPS, 250)
    audit = stabdiag.analyze(tmp_path / "run.jsonl").audit
    assert audit is not None
    assert {item.metric: item.status for item in audit.items} == dict.fromkeys(GAPS, "ok")
    assert audit.score == 100
