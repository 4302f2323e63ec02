"""A tiny model and a plain loop around the recorder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stabdiag.recorder import Recorder

# Many threads for so little work only wait for each other.
torch.set_num_threads(1)


def tiny_model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


def batch_of(step: int, size: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(size, 8, generator=generator), torch.randn(size, 4, generator=generator)


def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def norm(tensors: list[Tensor | None]) -> float:
    """The L2 norm of all in float64, computed without the recorder's functions."""
    squares = [t.detach().double().pow(2).sum() for t in tensors if t is not None]
    return float(torch.stack(squares).sum().sqrt())


def grads(model: nn.Module) -> list[Tensor | None]:
    return [p.grad for p in model.parameters()]


def train(
    path: Path,
    steps: int,
    *,
    before_recording: Callable[[int, nn.Module], None] = lambda step, model: None,
    **options: Any,
) -> nn.Module:
    """Train the tiny model and record it; `before_recording` may tamper with its gradients."""
    model = tiny_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with Recorder(model, optimizer, path, **options) as rec:
        for _ in range(steps):
            step = rec.next_step
            loss = loss_of(model, batch_of(step))
            loss.backward()
            before_recording(step, model)
            rec.after_backward(loss, indices=step)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    return model
