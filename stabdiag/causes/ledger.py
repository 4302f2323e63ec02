"""From signs to evidence to probabilities: a sum of nats for each cause, and their softmax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from stabdiag.causes.signs import Sign
from stabdiag.causes.weights import CLASSES, PRIOR, WEIGHTS
from stabdiag.findings import CauseRank, Evidence

JOINT = (
    ("param_jump", "lr_steady", "jump_at_steady_rate"),
    ("loss_lingers", "param_quiet", "lingers_at_usual_steps"),
    ("new_level", "param_quiet", "level_at_usual_steps"),
)
LOST = frozenset({"diverged", "no_return", "collapsed"})
START = frozenset(
    {
        "initial_transient",
        "initial_loss_high",
        "initial_imbalance",
        "loss_falls_at_once",
        "grad_falls_at_once",
        "param_flat",
        "param_shrinks",
    }
)
START_SHARE = 0.3
RISES = frozenset({"loss_event", "loss_explodes", "diverged", "collapsed", "new_level"})
SHAPE = frozenset(
    {
        "one_step",
        "clean_return",
        "new_level",
        "no_return",
        "slow_decay",
        "same_step",
        "quiet_grad",
        "lr_steady",
        "batch_usual",
        "param_quiet",
        "tensors_quiet",
        "layers_all_up",
    }
)


@dataclass(frozen=True)
class Attribution:
    """Causes (and "none") with probability and ledger, most probable first."""

    ranks: tuple[CauseRank, ...]

    @property
    def best(self) -> CauseRank:
        """The most probable class."""
        return self.ranks[0]

    def probability(self, cause: str) -> float:
        """Probability of one cause, 0.0 for an unknown word."""
        return next((r.probability for r in self.ranks if r.cause == cause), 0.0)


def strongest(signs: Iterable[Sign]) -> dict[str, Sign]:
    """One sign a name, the strongest: the same observation must not count twice."""
    kept: dict[str, Sign] = {}
    for sign in signs:
        if sign.name not in kept or sign.strength > kept[sign.name].strength:
            kept[sign.name] = sign
    return kept


def joined(signs: Iterable[Sign]) -> list[Sign]:
    """Signs, and those that two of them make together where one alone says little.

    A parameter norm that jumps with a steady learning rate is no large step of the schedule; a
    loss that lingers while the parameters took their usual steps was not damaged by an update.
    """
    kept = list(signs)
    if any(s.name == "exact_ratio" for s in kept):  # the unit changed: no rise is one
        kept = [s for s in kept if s.name not in RISES]
    if any(s.name in LOST and s.strength > 0.5 for s in kept):
        # what the run ended in is not explained by how it began
        kept = [
            replace(s, strength=START_SHARE * s.strength) if s.name in START else s for s in kept
        ]
    by = {(s.episode, s.name): s for s in kept}
    more = []
    for (episode, name), sign in by.items():
        for first, second, joint in JOINT:
            other = by.get((episode, second))
            if name == first and other is not None:
                text = f"{sign.text}, and {other.text}"
                strength = min(sign.strength, other.strength)
                series = tuple(dict.fromkeys((*sign.series, *other.series)))
                more.append(Sign(joint, strength, text, sign.steps, series, episode))
    return kept + more


def scaled(signs: Iterable[Sign]) -> list[Sign]:
    """Signs that describe a spike of the loss, scaled by how clear the spike is.

    The shape of a blip says nothing about its cause: without this, many small "as usual" would
    add up to a diagnosis of noise.
    """
    kept = list(signs)
    clear = {s.episode: s.strength for s in kept if s.name == "loss_event"}
    return [
        replace(s, strength=s.strength * clear[s.episode])
        if s.name in SHAPE and s.episode in clear
        else s
        for s in kept
    ]


def attribute(
    signs: Iterable[Sign],
    *,
    weights: Mapping[str, Mapping[str, float]] = WEIGHTS,
    prior: Mapping[str, float] = PRIOR,
) -> Attribution:
    """Weigh the signs: each cause's sum of weight x strength, then the softmax over the causes.

    Args:
        signs: those of the whole run and of one episode; of equal names the strongest counts.
        weights: nats for (+) and against (-) a cause at full strength.
        prior: nats of each cause before any sign.

    Returns:
        Every class once, by probability, each with the evidence that moved it.
    """
    ledger: dict[str, list[Evidence]] = {c: [] for c in CLASSES}
    for name, sign in sorted(strongest(scaled(joined(signs))).items()):
        for cause, weight in weights.get(name, {}).items():
            value = weight * sign.strength
            if abs(value) >= 0.05:
                ledger[cause].append(
                    Evidence(cause, name, sign.text, round(value, 3), sign.steps, sign.series)
                )
    for cause in CLASSES:
        text = "before any evidence: how common it is among the labelled runs"
        ledger[cause].append(Evidence(cause, "prior", text, prior[cause]))
    sums = np.array([sum(e.weight for e in ledger[c]) for c in CLASSES])
    share = np.exp(sums - sums.max())
    share /= share.sum()
    order = sorted(range(len(CLASSES)), key=lambda i: (-share[i], i))
    return Attribution(
        tuple(
            CauseRank(
                CLASSES[i],
                float(share[i]),
                tuple(
                    sorted(
                        ledger[CLASSES[i]],
                        key=lambda e: (e.sign == "prior", -abs(e.weight), e.sign),
                    )
                ),
            )
            for i in order
        )
    )
