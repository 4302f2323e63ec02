"""How often each metric is recorded."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from stabdiag.errors import UsageError


@dataclass(frozen=True)
class Cadence:
    """Steps between two records of each metric; 0 means never.

    The defaults are the handbook's minimum: loss, gradient norm (and with it the ratio) at each
    step, parameter norms every 100. `layers` is for `grad_norm/<layer>`; `param_norm/<layer>` come
    with every parameter norm unless `layers` is 0. The learning rate is in every row.
    """

    loss: int = 1
    grad_norm: int = 1
    param_norm: int = 100
    layers: int = 10
    activations: int = 10
    batch: int = 1


def cadence_from(every: Mapping[str, int] | None) -> Cadence:
    """Return the defaults with the named cadences changed.

    Raises:
        UsageError: a metric that is not recorded, or a cadence that is no whole number from 0.
    """
    known = [f.name for f in fields(Cadence)]
    for name, steps in (every or {}).items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"every: no metric is called {name!r}",
                f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
            )
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise UsageError(
                f"every: {name!r} is {steps!r}", "give a whole number of steps; 0 means never"
            )
    return Cadence(**(every or {}))
