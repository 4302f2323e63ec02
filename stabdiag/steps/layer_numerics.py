"""Layers that are not finite: where it was born, and where it lasts unseen by the global series."""

from __future__ import annotations

from stabdiag.causes.signs import Sign
from stabdiag.findings import Finding
from stabdiag.rules.numerics import NON_FINITE_LAYER
from stabdiag.steps.layer_scores import LayerScore
from stabdiag.steps.layer_stats import LayerStats
from stabdiag.steps.outcome import finding
from stabdiag.steps.timeline import Timeline

LASTING_SHARE = 0.1  # of a layer's points: more is no loss scaler at work


def born(timeline: Timeline, scores: list[LayerScore], findings: list[Finding]) -> tuple[str, ...]:
    """The layers in which non-finite values came first; () where they say nothing."""
    main = timeline.main
    bad = [s for s in scores if s.bad_step >= 0]
    if not bad or main is None or not (main.has("non_finite") or main.has("loss_scale_collapse")):
        return ()
    first = min(s.bad_step for s in bad)
    born = [s for s in bad if s.bad_step == first]
    if len(born) == len(scores) and len(scores) > 1:
        text = f"all {len(scores)} layers turn non-finite at step {first}: the forward pass did"
        findings.append(finding(NON_FINITE_LAYER, text, step=first))
        return ()
    # below the culprit everything is NaN too: the one nearest to the loss is the first suspect
    born.sort(key=lambda s: (s.role.matrix, s.order), reverse=True)
    names = tuple(s.layer for s in born[:3])
    text = f"{names[0]} turns non-finite first, at step {first}"
    text += _beside(born, scores)
    findings.append(
        finding(NON_FINITE_LAYER, text, step=first, layer=names[0], data={"layers": list(names)})
    )
    return names


def _beside(born: list[LayerScore], scores: list[LayerScore]) -> str:
    """What else turned non-finite at once, and what the first one's place says of the source."""
    first, others = born[0], born[1:]
    last = max((s.order for s in scores if s.role.matrix), default=first.order)
    more = ""
    if others:
        below = " below it" if all(s.order < first.order for s in others) else " at the same step"
        more = f"with {len(others)} more{below}; "
    if first.order >= last and len(scores) > 1:
        return f" ({more}no layer is logged between it and the loss: the loss may be the source)"
    return f" ({more}it is the nearest of them to the loss)" if others else ""


def lasting(
    stats: tuple[LayerStats | None, ...],
    findings: list[Finding],
    signs: list[Sign],
    *,
    quiet: bool,
) -> tuple[str, ...]:
    """Layers that are non-finite in much of a run whose loss and global norm look well."""
    names = tuple(
        name
        for s in stats
        if s is not None
        for name, share in zip(s.layers, s.bad_share, strict=True)
        if share > LASTING_SHARE
    )
    if not names or not quiet:
        return ()
    first = min(
        int(s.bad_step[j])
        for s in stats
        if s is not None
        for j in range(len(s.layers))
        if s.bad_share[j] > LASTING_SHARE
    )
    text = f"{names[0]} is not finite from step {first} on, while loss and global norms look well"
    findings.append(finding(NON_FINITE_LAYER, text, step=first, layer=names[0]))
    signs.append(Sign("bad_activations", 1.0, text, (first,), (f"grad_norm/{names[0]}",)))
    return names[:3]
