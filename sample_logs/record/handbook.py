"""The handbook's own example: one transformer block, 60 steps, recorded with all digits.

"Training Stability: Debugging Training Instability", Language AI Handbook. PyTorch 2.13.0 on a
CPU reproduces the table that the chapter prints; its list of per-layer gradient norms after one
backward pass is the first row (step 0: the fresh model, before any update).
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SEED = 42
STEPS = 60
WIDTH, HEADS = 128, 4
BATCH, LENGTH = 16, 32
LR, WEIGHT_DECAY, CLIP = 1e-3, 0.01, 1.0

Row = dict[str, float]


class HandbookBlock(nn.Module):
    """The chapter's block; the order of definition decides the random initial weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.ffn = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.ffn(x))


def handbook_rows() -> list[Row]:
    """Train the example and return one row a step, norms taken before clipping and update."""
    torch.manual_seed(SEED)
    model = HandbookBlock()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
    rows = []
    for step in range(STEPS):
        x = torch.randn(BATCH, LENGTH, WIDTH)
        target = torch.randn(BATCH, LENGTH, WIDTH)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        rows.append(_row(step, loss.item(), model))
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    return rows


def _row(step: int, loss: float, model: nn.Module) -> Row:
    grads = {name: p.grad.norm().item() for name, p in model.named_parameters()}
    weights = {name: p.detach().norm().item() for name, p in model.named_parameters()}
    grad_norm, param_norm = math.hypot(*grads.values()), math.hypot(*weights.values())
    return {
        "step": step,
        "loss": loss,
        "grad_norm": grad_norm,
        "param_norm": param_norm,
        "grad_param_ratio": grad_norm / param_norm,
        "lr": LR,
        **{f"grad_norm/{name}": value for name, value in grads.items()},
        **{f"param_norm/{name}": value for name, value in weights.items()},
    }


def write_handbook_run(path: Path) -> None:
    """Write the example's log as CSV, every number with all its digits."""
    rows = handbook_rows()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
