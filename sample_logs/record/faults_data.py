"""Faults of the data: one bad batch, labels that stay wrong, another kind of text."""

from __future__ import annotations

import dataclasses

import numpy as np
from corpus import PAD, VOCABULARY, Batch, text_batch
from loop import Fault

Rng = np.random.Generator


def _with_tokens(batch: Batch, tokens: np.ndarray, *, keep_lengths: bool) -> Batch:
    """Put [B, S + 1] tokens in the place of the batch's own."""
    targets = tokens[:, 1:].copy()
    if keep_lengths:
        targets[batch.targets == PAD] = PAD
    return dataclasses.replace(batch, inputs=tokens[:, :-1].copy(), targets=targets)


def random_bytes(batch: Batch, rng: Rng, share: float = 1.0) -> Batch:
    """Replace a share of the sequences by uniformly random bytes."""
    if batch.targets.ndim == 1:
        noise = rng.normal(size=batch.inputs.shape).astype(np.float32) * 25
        return dataclasses.replace(batch, inputs=noise)
    rows = np.arange(len(batch.inputs)) < round(share * len(batch.inputs))
    noise = rng.integers(0, VOCABULARY, (len(batch.inputs), batch.inputs.shape[1] + 1))
    own = np.concatenate([batch.inputs, np.maximum(batch.targets[:, -1:], 0)], axis=1)
    return _with_tokens(batch, np.where(rows[:, None], noise, own), keep_lengths=True)


def repeated_pattern(batch: Batch, rng: Rng, period: int = 3) -> Batch:
    """Replace all sequences by one short rare pattern, again and again."""
    pattern = rng.integers(128, VOCABULARY, period)
    length = batch.inputs.shape[1] + 1
    tokens = np.tile(pattern, length // period + 1)[:length]
    return _with_tokens(batch, np.tile(tokens, (len(batch.inputs), 1)), keep_lengths=True)


def long_sequences(batch: Batch, rng: Rng, times: int = 6) -> Batch:
    """Draw sequences `times` as long, without padding."""
    return text_batch(rng, len(batch.inputs), times * batch.inputs.shape[1], full_length=True)


def shuffled_labels(batch: Batch, rng: Rng, share: float = 1.0) -> Batch:
    """Shuffle the targets of a share of the positions among each other."""
    flat = batch.targets.reshape(-1).copy()
    places = np.flatnonzero(flat != PAD)
    chosen = places[rng.random(len(places)) < share]
    flat[chosen] = flat[rng.permutation(chosen)]
    return dataclasses.replace(batch, targets=flat.reshape(batch.targets.shape))


def empty(batch: Batch, rng: Rng) -> Batch:
    """Take all targets away: the mean over none of them is 0 / 0."""
    return dataclasses.replace(batch, targets=np.full_like(batch.targets, PAD))


def scaled_pixels(batch: Batch, rng: Rng, factor: float = 40.0) -> Batch:
    """Forget to normalise the images."""
    return dataclasses.replace(batch, inputs=(batch.inputs * factor).astype(np.float32))


_KINDS = {
    "random": (random_bytes, "random bytes"),
    "repeat": (repeated_pattern, "one short pattern repeated"),
    "long": (long_sequences, "sequences much longer than the others"),
    "labels": (shuffled_labels, "labels shuffled in one batch"),
    "empty": (empty, "an empty batch: the loss is 0 / 0, one NaN"),
    "pixels": (scaled_pixels, "images not normalised"),
}


def bad_batch(kind: str, onset: int, count: int = 1, **options: float) -> Fault:
    """Spoil `count` batches in a row from `onset` on."""
    spoil, note = _KINDS[kind]

    def batch(drawn: Batch, step: int, rng: Rng) -> Batch:
        return spoil(drawn, rng, **options) if onset <= step < onset + count else drawn

    acceptable = ("overflow",) if kind == "empty" else ()
    return Fault("bad_batch", "data", onset, True, acceptable, note=note, batch=batch)


def corrupted_labels(onset: int, share: float = 1.0, ramp: int = 0) -> Fault:
    """Shuffle a share of the labels from `onset` on, coming in over `ramp` steps."""

    def batch(drawn: Batch, step: int, rng: Rng) -> Batch:
        now = share * min(1.0, (step - onset + 1) / ramp) if ramp else share
        return shuffled_labels(drawn, rng, now)

    note = f"{share:.0%} of the labels shuffled" + (f", ramp of {ramp} steps" if ramp else "")
    return Fault("data_corruption", "data", onset, True, note=note, batch=batch)


def shifted_domain(onset: int, kind: str = "tables", share: float = 1.0) -> Fault:
    """Draw another kind of text from `onset` on: character tables, capitals, or a cipher."""

    def batch(drawn: Batch, step: int, rng: Rng) -> Batch:
        size, length = drawn.inputs.shape
        if kind == "tables":
            other = text_batch(rng, size, length, domain="tables")
        else:
            table = _capitals() if kind == "capitals" else _cipher()
            targets = np.where(drawn.targets == PAD, PAD, table[drawn.targets])
            other = dataclasses.replace(drawn, inputs=table[drawn.inputs], targets=targets)
        rows = rng.random(size) < share
        return dataclasses.replace(
            drawn,
            inputs=np.where(rows[:, None], other.inputs, drawn.inputs),
            targets=np.where(rows[:, None], other.targets, drawn.targets),
        )

    note = f"the text changes to {kind}" + ("" if share == 1.0 else f" in {share:.0%} of the rows")
    return Fault("data_shift", "data", onset, True, note=note, batch=batch)


def _capitals() -> np.ndarray:
    return np.frombuffer(bytes(range(VOCABULARY)).upper(), dtype=np.uint8).astype(np.int64)


def _cipher() -> np.ndarray:
    """Return a fixed mapping of the letters onto one another."""
    table = np.arange(VOCABULARY)
    letters = np.arange(ord("a"), ord("z") + 1)
    table[letters] = np.roll(letters, 7)
    return table


def longer_sequences(onset: int, times: int = 2) -> Fault:
    """Lengthen the sequences for good: a planned curriculum, not a fault."""

    def batch(drawn: Batch, step: int, rng: Rng) -> Batch:
        return text_batch(rng, len(drawn.inputs), times * drawn.inputs.shape[1])

    note = f"curriculum: sequences {times} times as long from {onset} on"
    return Fault("healthy", "none", onset, note=note, batch=batch)
