"""What one training run is: its model, its optimizer, its data, its seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunConfig:
    """The configuration of one run; the defaults are a small healthy decoder."""

    arch: str = "decoder"  # decoder, postln, lstm, mlp, conv
    width: int = 32
    depth: int = 4
    heads: int = 4
    seq_len: int = 48
    batch_size: int = 16
    norm: str = "ln"
    mlp_norm: bool = True  # False: no norm before the MLPs, and none before the head
    activation: str = "gelu"
    bias: bool = True
    fused_qkv: bool = True
    init_std: float = 0.05
    naming: str = "gpt2"

    optimizer: str = "adamw"  # adamw, sgd
    lr: float = 2e-3
    schedule: str = "cosine"  # constant, cosine, step, wsd, linear
    warmup: int = 50
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8
    weight_decay: float = 0.1
    clip: float = 1.0  # 0: none

    precision: str = "fp32"
    loss_scale: float = 65536.0
    growth_interval: int = 100
    loss_scale_floor: float = 2.0**-24

    steps: int = 700
    seed: int = 0
    epoch_batches: int = 0  # > 0: the same so many batches again and again
    image_noise: float = 1.5
    resume: tuple[int, int] | None = None  # crash before this step, go on from that one
    domain: str = "source"

    @property
    def is_text(self) -> bool:
        """Whether the model reads bytes (else: images)."""
        return self.arch in ("decoder", "postln", "lstm")

    def describe(self) -> str:
        """Return size, sequence length, batch, optimizer and precision in one line."""
        names = {
            "decoder": f"decoder d{self.width} L{self.depth} {self.norm}, seq {self.seq_len}",
            "postln": f"post-LN transformer d{self.width} L{self.depth} {self.norm}, "
            f"seq {self.seq_len}",
            "lstm": f"LSTM d{self.width} L{self.depth}",
            "mlp": f"MLP d{self.width} L{self.depth}",
            "conv": f"conv net d{self.width} L{self.depth}",
        }
        return f"{names[self.arch]}, batch {self.batch_size}, {self.optimizer} {self.precision}"
