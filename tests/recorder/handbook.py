"""The handbook's example run, one transformer block, and what the chapter prints of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stabdiag.recorder import Recorder

# Many threads for so little work only wait for each other.
torch.set_num_threads(1)

STEPS = 60
# step: loss, grad norm, param norm, ratio, as printed
TABLE = {
    0: ("2.0107", "0.1917", "26.5670", "0.00722"),
    10: ("1.9674", "0.1889", "26.5752", "0.00711"),
    20: ("1.9495", "0.1889", "26.5815", "0.00711"),
    30: ("1.9310", "0.1885", "26.6000", "0.00709"),
    40: ("1.8933", "0.1896", "26.6370", "0.00712"),
    50: ("1.8609", "0.1924", "26.7158", "0.00720"),
}
# after one backward pass, largest first, as printed
LAYERS = {
    "norm2.weight": "0.177542",
    "ffn.2.weight": "0.058973",
    "ffn.0.weight": "0.030297",
    "norm2.bias": "0.016122",
    "attention.in_proj_weight": "0.012976",
    "attention.out_proj.weight": "0.012630",
    "attention.out_proj.bias": "0.007798",
    "ffn.2.bias": "0.007755",
    "norm1.bias": "0.007732",
    "norm1.weight": "0.007320",
    "attention.in_proj_bias": "0.004454",
    "ffn.0.bias": "0.002660",
}


class Block(nn.Module):
    """The chapter's block; the order of definition decides the random initial weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(128, 4, batch_first=True)
        self.norm1 = nn.LayerNorm(128)
        self.norm2 = nn.LayerNorm(128)
        self.ffn = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.ffn(x))


def record_handbook_run(path: Path, **options: Any) -> None:
    """Train the chapter's example as its plain loop does, with the recorder's two lines in it."""
    torch.manual_seed(42)
    model = Block()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    with Recorder(model, optimizer, path, **options) as rec:
        for _ in range(STEPS):
            x = torch.randn(16, 32, 128)
            target = torch.randn(16, 32, 128)
            loss = F.mse_loss(model(x), target)
            loss.backward()
            rec.after_backward(loss)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
