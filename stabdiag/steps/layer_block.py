"""The smallest contiguous part of the model that explains the trouble."""

from __future__ import annotations

from collections.abc import Sequence

from stabdiag.rules.layers import FIRST_TO_LEAVE
from stabdiag.rules.limits import Limits
from stabdiag.steps.layer_scores import LayerScore
from stabdiag.steps.roles import part_of, parts_of


def block_of(
    guilty: Sequence[str],
    scores: Sequence[LayerScore],
    limits: Limits,
    *,
    born: bool,
    by_score: bool,
) -> tuple[str, ...]:
    """Return the layers to reproduce the trouble with, in the model's order; () where none is named.

    `born`: the first of `guilty` is where non-finite gradients come from. Then it is between that
    layer and the next one towards the loss, which is still finite. Else it is the shortest stretch
    that holds as many of `guilty`, the first ones first, as lie near one another: a stretch of
    more than `max_block` of the model's parts would say nothing. Where they are named `by_score`,
    only those take part that come near to the first one's.
    """
    order = [s.layer for s in scores]
    named = [g for g in guilty if g in order]
    if not named:
        return ()
    if born:
        return _from_birth(named[0], scores)
    if by_score:
        score = {s.layer: s.score for s in scores}
        least = limits(FIRST_TO_LEAVE, "min_of_first") * score[named[0]]
        named = named[:1] + [g for g in named[1:] if score[g] >= least]
    place = {name: i for i, (name, _) in enumerate(parts_of(order))}
    most = max(1.0, limits(FIRST_TO_LEAVE, "max_block") * len(place))
    for count in range(len(named), 1, -1):
        at = [order.index(g) for g in named[:count]]
        at_parts = [place[part_of(g)] for g in named[:count]]
        if max(at_parts) - min(at_parts) < most:
            return tuple(order[min(at) : max(at) + 1])
    return (named[0],)


def _from_birth(layer: str, scores: Sequence[LayerScore]) -> tuple[str, ...]:
    """The layer nearest to the loss that is not finite, to the next one that is.

    That needs the model's order: where a layer below is still finite the log has another one.
    """
    matrices = [s for s in scores if s.role.matrix]
    found = next((i for i, s in enumerate(matrices) if s.layer == layer), None)
    if found is None:
        return (layer,)
    first = matrices[found].bad_step
    if found + 1 == len(matrices) or any(s.bad_step != first for s in matrices[:found]):
        return (layer,)
    above = matrices[found + 1]
    return tuple(s.layer for s in scores if matrices[found].order <= s.order <= above.order)
