"""Learning-rate schedules: the planned rate at each step."""

from __future__ import annotations

import math

from configuration import RunConfig


def planned_lr(config: RunConfig, step: int) -> float:
    """Return the learning rate the schedule gives at `step`."""
    if step < config.warmup:
        return config.lr * (step + 1) / config.warmup
    done = (step - config.warmup) / max(config.steps - config.warmup, 1)
    return config.lr * _share(config.schedule, done)


def _share(schedule: str, done: float) -> float:
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done))
    if schedule == "linear":
        return 1.0 - 0.95 * done
    if schedule == "step":
        return 1.0 if done < 0.5 else 0.1 if done < 0.8 else 0.01
    if schedule == "wsd":
        return 1.0 if done < 0.8 else max((1.0 - done) / 0.2, 0.02)
    raise ValueError(f"unknown schedule {schedule!r}")
