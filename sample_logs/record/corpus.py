"""The training data: text that every Python machine has, and small synthetic images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 256
PAD = -100
IMAGE_SIDE = 12
CLASSES = 10
VALIDATION_SHARE = 20  # one piece of text in twenty is kept for validation
PIECE = 4096


@dataclass(frozen=True)
class Batch:
    """One batch as the loop draws it.

    inputs: [B, S] bytes, or [B, side * side] pixels; targets: [B, S] (PAD where there is no
    target), or [B] classes; indices: [B] place of each sample in the data set.
    """

    inputs: NDArray[np.int64] | NDArray[np.float32]
    targets: NDArray[np.int64]
    indices: NDArray[np.int64]


@cache
def _text(domain: str) -> NDArray[np.uint8]:
    """Return the bytes of a domain: `source` (modules) or `tables` (character tables)."""
    library = Path(os.__file__).parent
    pattern = {"source": "*.py", "tables": "encodings/cp*.py"}[domain]
    joined = b"\n".join(path.read_bytes() for path in sorted(library.glob(pattern)))
    return np.frombuffer(joined[:4_000_000], dtype=np.uint8)


@cache
def _pieces(domain: str, part: str) -> NDArray[np.uint8]:
    """Return the pieces of a domain kept for `train` or `validation`: shape [P, PIECE]."""
    text = _text(domain)
    count = len(text) // PIECE
    pieces = text[: count * PIECE].reshape(count, PIECE)
    held_out = np.arange(count) % VALIDATION_SHARE == VALIDATION_SHARE - 1
    return pieces[held_out if part == "validation" else ~held_out]


def text_batch(
    rng: np.random.Generator,
    batch_size: int,
    seq_len: int,
    *,
    domain: str = "source",
    part: str = "train",
    full_length: bool = False,
) -> Batch:
    """Draw sequences of `seq_len` bytes, two in five of them shorter (padded at the end)."""
    flat = _pieces(domain, part).reshape(-1)
    starts = rng.integers(0, len(flat) - seq_len - 1, batch_size)
    window = flat[starts[:, None] + np.arange(seq_len + 1)].astype(np.int64)
    short = rng.integers(seq_len // 4, seq_len + 1, batch_size)
    lengths = np.where(rng.random(batch_size) < 0.6, seq_len, short)
    if full_length:
        lengths[:] = seq_len
    targets = window[:, 1:].copy()
    targets[np.arange(seq_len) >= lengths[:, None]] = PAD
    return Batch(window[:, :-1], targets, starts // 64)


@cache
def _templates() -> NDArray[np.float32]:
    """Return one smooth image a class: shape [CLASSES, side, side]."""
    rng = np.random.default_rng(11)
    coarse = rng.normal(size=(CLASSES, 4, 4))
    smooth = np.kron(coarse, np.ones((1, IMAGE_SIDE // 4, IMAGE_SIDE // 4)))
    return smooth.astype(np.float32)


def image_batch(rng: np.random.Generator, batch_size: int, *, noise: float = 1.5) -> Batch:
    """Draw images of ten classes: a template, shifted by up to two pixels, with noise."""
    classes = rng.integers(0, CLASSES, batch_size)
    shifts = rng.integers(-2, 3, (batch_size, 2))
    pairs = zip(classes, shifts, strict=True)
    images = np.stack([np.roll(_templates()[c], tuple(s), axis=(0, 1)) for c, s in pairs])
    images = images + noise * rng.normal(size=images.shape).astype(np.float32)
    flat = images.reshape(batch_size, -1).astype(np.float32)
    return Batch(flat, classes.astype(np.int64), rng.integers(0, 50_000, batch_size))


def is_text(batch: Batch) -> bool:
    """Return whether the batch holds bytes (else: images)."""
    return batch.targets.ndim == 2


def token_count(batch: Batch) -> int:
    """Return how many targets the batch has (images: how many images)."""
    return int((batch.targets != PAD).sum()) if is_text(batch) else len(batch.targets)


def batch_statistics(batch: Batch) -> tuple[float, float, float]:
    """Return mean length, entropy of the tokens in nats, and share of repeated byte pairs.

    For images: pixels, entropy of the classes, and 0.
    """
    if not is_text(batch):
        return float(batch.inputs.shape[1]), _entropy(batch.targets, CLASSES), 0.0
    real = batch.targets != PAD
    lengths = real.sum(axis=1)
    tokens = batch.inputs.astype(np.int64)
    entropy = _entropy(tokens[real], VOCABULARY)
    repeated = pairs = 0
    for row, length in zip(tokens, lengths, strict=True):
        codes = row[: length - 1] * VOCABULARY + row[1:length] if length > 1 else row[:0]
        pairs += len(codes)
        repeated += len(codes) - len(np.unique(codes))
    return float(lengths.mean()), entropy, repeated / max(pairs, 1)


def _entropy(values: NDArray[np.int64], size: int) -> float:
    if values.size == 0:
        return 0.0
    share = np.bincount(values.ravel(), minlength=size) / values.size
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())
