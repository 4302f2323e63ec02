"""A sign: one observation of a step, before it is weighed for or against the causes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sign:
    """What was seen: `name` is a row of the weight table, `strength` in [0, 1] scales its weights.

    `text` is the sentence of the ledger; `steps` and `series` say where it was seen. `episode` is
    the number of the episode that it belongs to, None for signs of the whole run.
    """

    name: str
    strength: float
    text: str
    steps: tuple[int, ...] = ()
    series: tuple[str, ...] = ()
    episode: int | None = None
