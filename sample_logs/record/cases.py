"""The labelled bench: which run, with which fault, logged in which way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import kinds
import numpy as np
from configuration import RunConfig
from loop import Fault
from styles import STYLES, Style, style_named

SEED = 20240
_LAYERED = [
    "plain", "plain", "plain", "plain_js", "plain_pq", "empty", "samples", "logits", "modules",
    "offset", "pn1", "wandb", "wandb", "wandb_pq", "mega", "light", "c5", "c10", "wandb5",
]  # fmt: skip
_FLAT = ["nolayers", "nopn", "bare", "hf1", "hf1", "hf", "hf_avg", "mega_js", "nano", "wandb_js"]
_NON_FINITE = ["empty", "null_js", "plain", "wandb_pq", "mega", "plain_js", "nolayers", "hf1"]


@dataclass(frozen=True)
class Case:
    """One run of the bench."""

    number: int
    identity: str
    config: RunConfig
    fault: Fault
    style: Style
    group: str | None = None
    group_kind: str | None = None


def cases(count: int, seed: int = SEED) -> Iterator[Case]:
    """Yield the first `count` runs of the bench: three with a fault, then two healthy ones."""
    order = np.random.default_rng(seed)
    faulty, healthy = _endless(kinds.FAULTY, order), _endless(kinds.HEALTHY_KINDS, order)
    queue: list[Case] = []
    number = turn = 0
    while number < count:
        if not queue:
            kind = next(faulty if turn % 5 in (0, 2, 4) else healthy)
            queue = _runs_of_kind(kind, np.random.default_rng((seed, turn)), turn)
            turn += 1
        case = queue.pop(0)
        number += 1
        yield replace(case, number=number)


def _endless(kinds: list[Callable], rng: np.random.Generator) -> Iterator[Callable]:
    seed = int(rng.integers(10**9))
    own = np.random.default_rng(seed)
    while True:
        for place in own.permutation(len(kinds)):
            yield kinds[place]


def _runs_of_kind(kind: Callable, rng: np.random.Generator, turn: int) -> list[Case]:
    config, fault = kind(rng)
    name = kind.__name__.strip("_")
    config = replace(config, seed=int(rng.integers(1, 10**6)))
    seeds = kinds.GROUPS.get(kind)
    if seeds is None:
        style = _style(rng, config, fault, kind in kinds.QUIET)
        return [Case(0, f"{name}_{turn}", config, fault, style)]
    group_kind, members = seeds
    group = f"{name}_{turn}"
    return [
        Case(0, f"{group}_s{member}", replace(config, seed=config.seed + member), fault,
             _style(rng, config, fault, False), group, group_kind)
        for member in range(members)
    ]  # fmt: skip


def _style(rng: np.random.Generator, config: RunConfig, fault: Fault, quiet: bool) -> Style:
    """Draw a way of logging.

    Independent of the cause, but for the spellings of NaN, and for quiet faults, which
    are nearly always logged with the norms that show them.
    """
    if quiet and rng.random() < 0.85:
        return STYLES[str(rng.choice(_LAYERED))]
    if config.clip > 0 and fault.cause in ("none", "data") and rng.random() < 0.08:
        return STYLES["clipped"]
    if rng.random() < 0.05:
        return STYLES["nogn"]
    if fault.cause == "overflow" and rng.random() < 0.5:
        choices = _NON_FINITE
    else:
        choices = _LAYERED if rng.random() < 0.62 else _FLAT
    variant = str(rng.choice(choices))
    if variant == "logits" and config.arch not in ("decoder", "postln"):
        variant = "plain"
    first_step = int(rng.choice([0, 0, 0, 0, 0, 5000])) if variant in ("plain", "nolayers") else 0
    return style_named(variant, first_step)
