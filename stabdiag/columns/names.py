"""A column's name taken apart: its words, and whether it speaks of training or evaluation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stabdiag.columns.records import Scope

# Between the run and the metric in the columns of a chart export.
RUN_SEPARATOR = " - "
TRAIN_WORDS = frozenset({"train", "training", "trainer"})
EVAL_WORDS = frozenset(
    {"val", "valid", "validation", "eval", "evaluation", "dev", "test", "heldout", "holdout"}
)
# Groups that loggers put before a metric without changing what it is.
GROUP_WORDS = frozenset(
    {"metrics", "metric", "stats", "log", "logs", "optim", "optimizer", "perf", "throughput"}
    | {"time", "actor", "info", "learner", "data", "batch", "stability", "monitor", "scalars"}
    | {"debug", "norms", "global", "rollout"}
)
CADENCE_WORDS = frozenset({"step", "epoch", "mean"})

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^a-z0-9]+")
# Lightning names the norm's order: grad_2.0_norm.
_NORM_ORDER = re.compile(r"(?<![a-z])grad_(?:[0-9]+(?:_[0-9]+)?|inf)_norm(?![a-z])")


@dataclass(frozen=True)
class Name:
    """A name reduced to what is compared with the aliases.

    `core` holds lower-case words joined by "_"; `stripped` counts the prefixes taken off and
    `cadence` is the suffix taken off ("step", "epoch", "mean" or ""): fewer is the better match.
    """

    core: str
    scope: Scope
    stripped: int = 0
    cadence: str = ""


# A long table asks for the same few prefixes again and again.
@lru_cache(maxsize=4096)
def words(name: str) -> str:
    """Lower-case words of a name joined by "_"; "grad norm", "gradNorm", "grad-norm" are one."""
    text = _NOT_WORD.sub("_", _CAMEL.sub("_", name).lower()).strip("_")
    return _NORM_ORDER.sub("grad_norm", text)


def scope_of(text: str) -> Scope:
    """Whether the words speak of training or evaluation; the first or last word decides."""
    parts = text.split("_")
    for part in (parts[0], parts[-1]):
        if part in EVAL_WORDS:
            return "eval"
    for part in (parts[0], parts[-1]):
        if part in TRAIN_WORDS:
            return "train"
    return "eval" if EVAL_WORDS.intersection(parts[:-1]) else ""


def readings(column: str) -> list[Name]:
    """Every way to read a name against the aliases, the most literal first.

    "train/loss_step" gives train_loss_step, loss_step and loss. Words of train and eval are taken
    off at either end, then groups such as "optim", then a suffix that says the cadence.
    """
    text = words(column)
    scope = scope_of(text)
    found = [Name(text, "")]
    parts = text.split("_")
    stripped = 0
    scope_words = TRAIN_WORDS | EVAL_WORDS
    while len(parts) > 1:
        if parts[0] in scope_words:
            parts = parts[1:]
        elif parts[-1] in scope_words:
            parts = parts[:-1]
        elif parts[-1] in CADENCE_WORDS and parts[-2] in scope_words:
            parts = [*parts[:-2], parts[-1]]
        elif parts[0] in GROUP_WORDS:
            parts = parts[1:]
        else:
            break
        stripped += 1
        found.append(Name("_".join(parts), scope, stripped))
    if len(parts) > 1 and parts[-1] in CADENCE_WORDS:
        found.append(Name("_".join(parts[:-1]), scope, stripped, parts[-1]))
    return found
