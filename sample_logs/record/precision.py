"""Sixteen-bit arithmetic on a machine that computes in 32: rounding, and the loss scaler."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class _Round(torch.autograd.Function):
    """Store a value, and on the way back its gradient, in 16 bits; overflow gives Inf."""

    @staticmethod
    def forward(ctx, x: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.dtype = dtype
        return x.to(dtype).to(torch.float32)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad.to(ctx.dtype).to(torch.float32), None


class _Gain(torch.autograd.Function):
    """Multiply by one number forward and by another backward."""

    @staticmethod
    def forward(ctx, x: Tensor, ahead: float, back: float) -> Tensor:
        ctx.back = back
        return x * ahead

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad * ctx.back, None, None


def rounded(x: Tensor, precision: str) -> Tensor:
    """Round to the storage type of `precision`; fp32 leaves it alone."""
    return _Round.apply(x, DTYPES[precision]) if precision in DTYPES else x


def scaled(x: Tensor, ahead: float, back: float) -> Tensor:
    """Multiply the value by `ahead` and its gradient by `back`."""
    return _Gain.apply(x, ahead, back)


@dataclass
class LossScaler:
    """Dynamic loss scaling: halve at an overflow, double after `growth_interval` good steps."""

    scale: float = 65536.0
    growth_interval: int = 100
    floor: float = 2.0**-24
    good_steps: int = 0

    def update(self, overflow: bool) -> None:
        """Adapt the scale after one step."""
        if overflow:
            self.scale = max(self.scale / 2, self.floor)
            self.good_steps = 0
            return
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.scale *= 2
            self.good_steps = 0
