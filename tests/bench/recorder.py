"""What the recorder costs a training step: `python -m tests.bench.recorder [--tokens N]`.

Trains a transformer of about 100 million parameters on random tokens with the recorder at its
default cadence, and times the recorder's calls against the rest of the step. On a CPU every call
has done its work when it returns, so the time in the calls is the whole cost.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

LIMIT = 0.02  # share of a step, at the default cadence
VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 16_384, 768, 12, 12, 128
LAYERS_EVERY = 10  # of the default cadence


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step: in the recorder, in clip_grad_norm_, and in all of the rest."""

    recorder_s: float
    clip_s: float
    rest_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where the recorder costs more than the limit."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        print("recorder: not measured, PyTorch is not installed (`make recorder` sets it up)")
        return 0
    parameters, tensors, times = measured(options.steps, options.tokens)
    step = median(t.rest_s + t.clip_s for t in times[1:])
    clip = median(t.clip_s for t in times[1:])
    plain = median(t.recorder_s for i, t in enumerate(times) if i % LAYERS_EVERY)
    layers = median(t.recorder_s for i, t in enumerate(times) if i and i % LAYERS_EVERY == 0)
    # The first step measures all; later only one in a hundred does.
    everything = times[0].recorder_s
    share = (0.90 * plain + 0.09 * layers + 0.01 * everything) / step
    print(
        f"{parameters / 1e6:.0f} M parameters in {tensors} tensors, {options.tokens} tokens and "
        f"{step * 1e3:.0f} ms a step, {clip * 1e3:.1f} ms of it in clip_grad_norm_"
    )
    for name, seconds in (
        ("nine steps in ten", plain),
        ("one in ten, with layers", layers),
        ("one in a hundred, with parameter norms", everything),
    ):
        print(f"  recorder, {name}: {seconds * 1e3:.1f} ms, {seconds / step:.2%} of a step")
    print(f"  recorder at its default cadence: {share:.2%} of a step (limit {LIMIT:.0%})")
    return int(share > LIMIT)


def measured(steps: int, tokens: int) -> tuple[int, int, list[StepTime]]:
    """Train `steps` steps; return parameters, their tensors, and the time of each step."""
    import torch
    from torch import nn

    from stabdiag.recorder import Recorder

    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False),
        nn.Linear(WIDTH, VOCABULARY),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sizes = [p.numel() for p in model.parameters()]
    times = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(model, optimizer, Path(folder) / "run.jsonl") as rec,
    ):
        for number in range(steps):
            ids = torch.randint(0, VOCABULARY, (tokens // LENGTH, LENGTH))
            start = time.perf_counter()
            logits = model(ids).flatten(0, 1)
            loss: Any = nn.functional.cross_entropy(logits, ids.roll(-1, 1).flatten())
            loss.backward()
            backward = time.perf_counter()
            rec.after_backward(loss, batch=ids, indices=number)
            seen = time.perf_counter()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            clipped = time.perf_counter()
            optimizer.step()
            optimizer.zero_grad()
            stepped = time.perf_counter()
            rec.after_step()
            written = time.perf_counter()
            times.append(
                StepTime(
                    recorder_s=(seen - backward) + (written - stepped),
                    clip_s=clipped - seen,
                    rest_s=(backward - start) + (stepped - clipped),
                )
            )
    return sum(sizes), len(sizes), times


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.recorder",
        description="What the recorder costs a training step.",
    )
    parser.add_argument(
        "--steps", type=int, default=13, metavar="N", help="steps (13, at least 11)"
    )
    parser.add_argument(
        "--tokens", type=int, default=1024, metavar="N", help="tokens of a step (1024)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
