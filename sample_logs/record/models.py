"""The small models: byte-level transformers (pre-LN, post-LN), an LSTM, an MLP, a conv net."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from configuration import RunConfig
from corpus import CLASSES, IMAGE_SIDE, VOCABULARY
from precision import rounded, scaled
from torch import Tensor, nn
from torch.nn import functional as F

LONGEST = 8  # positions are learned for sequences up to this many times `seq_len`


class Linear(nn.Linear):
    """A linear layer whose input and output can be mis-scaled by a fault."""

    def __init__(self, fan_in: int, fan_out: int, precision: str, *, bias: bool = True) -> None:
        super().__init__(fan_in, fan_out, bias=bias)
        self.precision = precision
        self.input_gain = 1.0
        self.output_gain = 1.0
        self.output_gain_back = 1.0
        self.nan_backward = False

    def forward(self, x: Tensor) -> Tensor:
        x = rounded(x * self.input_gain, self.precision)
        y = F.linear(x, rounded(self.weight, self.precision), self.bias)
        if self.output_gain != 1.0 or self.output_gain_back != 1.0:
            y = scaled(y, self.output_gain, self.output_gain_back)
        if self.nan_backward:  # the well-known trap: where() does not stop the NaN of sqrt'(0)
            y = y + torch.where(torch.zeros_like(y, dtype=torch.bool), torch.sqrt(y * 0), 0.0)
        return rounded(y, self.precision)


class RMSNorm(nn.Module):
    """Root-mean-square norm with a learned gain."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def _norm(config: RunConfig) -> nn.Module:
    return RMSNorm(config.width) if config.norm == "rms" else nn.LayerNorm(config.width)


class Attention(nn.Module):
    """Causal self-attention; Q, K, V in one matrix (`fused_qkv`) or in three."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        d, precision, bias = config.width, config.precision, config.bias
        self.heads = config.heads
        self.precision = precision
        self.fused = config.fused_qkv
        if self.fused:
            self.qkv = Linear(d, 3 * d, precision, bias=bias)
        else:
            self.q = Linear(d, d, precision, bias=bias)
            self.k = Linear(d, d, precision, bias=bias)
            self.v = Linear(d, d, precision, bias=bias)
        self.out = Linear(d, d, precision, bias=bias)
        self.logit_max = 0.0

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        b, s, d = x.shape
        parts = self.qkv(x).chunk(3, -1) if self.fused else (self.q(x), self.k(x), self.v(x))
        q, k, v = (p.view(b, s, self.heads, -1).transpose(1, 2) for p in parts)
        logits = rounded(q @ k.transpose(-1, -2) / math.sqrt(d / self.heads), self.precision)
        self.logit_max = float(logits.detach().abs().amax())
        weights = torch.softmax(logits.masked_fill(blocked, -torch.inf), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, s, d))


class Mlp(nn.Module):
    """Two linear layers with an activation between."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        d = config.width
        self.up = Linear(d, 4 * d, config.precision, bias=config.bias)
        self.down = Linear(4 * d, d, config.precision, bias=config.bias)
        self.activation = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """One transformer block: norm first, or norm last (`post_ln`)."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.post_ln = config.arch == "postln"
        self.mlp_norm = config.mlp_norm
        self.norm1 = _norm(config)
        self.norm2 = _norm(config)
        self.attn = Attention(config)
        self.mlp = Mlp(config)

    def forward(self, x: Tensor, blocked: Tensor) -> Tensor:
        if self.post_ln:
            x = self.norm1(x + self.attn(x, blocked))
            return self.norm2(x + self.mlp(x))
        x = x + self.attn(self.norm1(x), blocked)
        return x + self.mlp(self.norm2(x) if self.mlp_norm else x)


class Transformer(nn.Module):
    """A byte-level language model."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        d = config.width
        self.tok = nn.Embedding(VOCABULARY, d)
        self.pos = nn.Embedding(LONGEST * config.seq_len, d)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        normed = config.arch == "decoder" and config.mlp_norm
        self.norm_f = _norm(config) if normed else nn.Identity()
        self.head = Linear(d, VOCABULARY, config.precision, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        s = tokens.shape[1]
        blocked = torch.ones(s, s, dtype=torch.bool).triu(1)
        x = self.tok(tokens) + self.pos.weight[:s]
        for block in self.blocks:
            x = block(x, blocked)
        return self.head(self.norm_f(x))

    def logit_max(self) -> float:
        """Return the largest attention logit of the last forward pass."""
        return max(block.attn.logit_max for block in self.blocks)


class Recurrent(nn.Module):
    """A byte-level LSTM."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.tok = nn.Embedding(VOCABULARY, config.width)
        self.rnn = nn.LSTM(config.width, config.width, config.depth, batch_first=True)
        self.head = Linear(config.width, VOCABULARY, config.precision)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.tok(tokens))[0])


class Mlpnet(nn.Module):
    """A classifier of fully connected layers."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        d = config.width
        sizes = [IMAGE_SIDE**2] + [d] * config.depth
        self.fc = nn.ModuleList(Linear(a, b, config.precision) for a, b in pairwise(sizes))
        self.head = Linear(d, CLASSES, config.precision)
        self.activation = {
            "gelu": F.gelu,
            "relu": F.relu,
            "sigmoid": torch.sigmoid,
            "tanh": torch.tanh,
        }[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.fc:
            x = self.activation(layer(x))
        return self.head(x)


class Convnet(nn.Module):
    """A classifier of 3 x 3 convolutions with batch norm."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        d = config.width
        sizes = [1] + [d] * config.depth
        self.conv = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(sizes))
        self.bn = nn.ModuleList(nn.BatchNorm2d(d) for _ in range(config.depth))
        self.head = Linear(d, CLASSES, config.precision)

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(-1, 1, IMAGE_SIDE, IMAGE_SIDE)
        for conv, norm in zip(self.conv, self.bn, strict=True):
            x = F.relu(norm(conv(x)))
        return self.head(x.mean((-1, -2)))


_ARCHITECTURES = {
    "decoder": Transformer,
    "postln": Transformer,
    "lstm": Recurrent,
    "mlp": Mlpnet,
    "conv": Convnet,
}


def build_model(config: RunConfig) -> nn.Module:
    """Build the model of a configuration with its own seed.

    Transformers start as GPT-2 does (normal, 0.02 or 1 / sqrt(5 d), residual outputs smaller
    with depth); the other nets keep PyTorch's own initialization.
    """
    torch.manual_seed(config.seed)
    model = _ARCHITECTURES[config.arch](config)
    if config.arch not in ("decoder", "postln"):
        return model
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            continue
        std = config.init_std
        if name.endswith(("attn.out.weight", "mlp.down.weight")) and config.arch == "decoder":
            std /= math.sqrt(2 * config.depth)
        nn.init.normal_(parameter, 0.0, std)
    return model
