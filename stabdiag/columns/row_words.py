"""What the log itself says each row is: a training record, an evaluation, a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabdiag.columns.names import EVAL_WORDS
from stabdiag.model import LogTable, Mask

_TRAIN_SAID = frozenset({"train", "training", "fit", "train_inner", "step", "update"})


@dataclass(frozen=True)
class SaidKinds:
    """Masks over the rows, shape [R]: whose kind the log states, and which it calls training."""

    known: Mask
    train: Mask

    @property
    def other(self) -> Mask:
        """Rows that the log calls something else than training."""
        stated: Mask = self.known & ~self.train
        return stated


def said_kinds(table: LogTable, kind_column: str | None) -> SaidKinds | None:
    """The kinds that the format or a column such as "mode" states; None where neither does."""
    kinds: Sequence[str | None] | None = table.row_kind
    if kinds is None and kind_column is not None:
        kinds = table.load([kind_column])[kind_column].text
    if kinds is None:
        return None
    words = {kind: (kind or "").strip().lower() for kind in set(kinds)}
    is_train = {kind: word in _TRAIN_SAID for kind, word in words.items()}
    # A word that is neither ("warmup", "stable") says nothing of the kind.
    is_known = {
        kind: is_train[kind] or word in EVAL_WORDS or word == "summary"
        for kind, word in words.items()
    }
    if not any(is_train.values()):
        return None
    size = len(kinds)
    known = np.fromiter((is_known[kind] for kind in kinds), dtype=np.bool_, count=size)
    train = np.fromiter((is_train[kind] for kind in kinds), dtype=np.bool_, count=size)
    return SaidKinds(known, train)
