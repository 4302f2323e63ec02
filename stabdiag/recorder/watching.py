"""What deserves a look off the usual cadence: spikes, values that are not finite, clipped norms."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

LOGGER = logging.getLogger("stabdiag.recorder")

# Project choices. A healthy run has a step above 3 x its running median about twice in 1000.
SPIKE = 3.0
PAST = 50
LEAST_PAST = 10
# Steps in a row that are not finite and are still written in full.
MOST_IN_A_ROW = 5
# Norms before clipping never agree to so many digits in a row.
SAME = 1e-5
SAME_IN_A_ROW = 4


@dataclass
class Watch:
    """The recent gradient norms and what has been warned of."""

    past: deque[float] = field(default_factory=lambda: deque(maxlen=PAST))
    was_bad: bool = False
    bad_in_a_row: int = 0
    same_in_a_row: int = 0
    warned: set[str] = field(default_factory=set)

    def turned_bad(self, *values: float | None) -> bool:
        """Say whether a value is not finite while all of the last call were."""
        bad = not_finite(*values)
        turned, self.was_bad = bad and not self.was_bad, bad
        return turned

    def worth_layers(self, grad_norm: float | None, loss: float | None) -> bool:
        """Say whether this step's layers are worth a record: a spike, or not finite."""
        bad = not_finite(grad_norm, loss)
        self.bad_in_a_row = self.bad_in_a_row + 1 if bad else 0
        if bad:
            return self.bad_in_a_row <= MOST_IN_A_ROW
        if grad_norm is None:
            return False
        spike = len(self.past) >= LEAST_PAST and grad_norm > SPIKE * median(self.past)
        self._look_for_clipping(grad_norm)
        self.past.append(grad_norm)
        return spike

    def _look_for_clipping(self, grad_norm: float) -> None:
        last = self.past[-1] if self.past else 0.0
        same = last > 0 and abs(grad_norm - last) <= SAME * last
        self.same_in_a_row = self.same_in_a_row + 1 if same else 0
        if self.same_in_a_row >= SAME_IN_A_ROW - 1:
            self.warn(
                "clipped",
                f"the gradient norm stays at {grad_norm:.6g}: the gradients seem to be clipped "
                "before after_backward sees them; call it before clipping, or hand it what "
                "clip_grad_norm_ returned as grad_norm=",
            )

    def name_bad(
        self,
        step: int,
        loss: float | None,
        gradients: Mapping[str, float],
        weights: Mapping[str, float],
    ) -> None:
        """Warn once of the first values that are not finite, by name."""
        names = ["the loss"] if not_finite(loss) else []
        names += [f"the gradient of {name}" for name, v in gradients.items() if not_finite(v)]
        names += [f"the weights {name}" for name, v in weights.items() if not_finite(v)]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        self.warn("not finite", f"step {step}: not finite: {', '.join(names[:3])}{more}")

    def warn(self, kind: str, text: str) -> None:
        """Warn, once for each kind."""
        if kind not in self.warned:
            self.warned.add(kind)
            # no warnings.warn: where warnings are errors, it would end the training
            LOGGER.warning("stabdiag recorder: %s", text)


def not_finite(*values: float | None) -> bool:
    """Say whether one of the values is there and not finite."""
    return any(value is not None and not math.isfinite(value) for value in values)
