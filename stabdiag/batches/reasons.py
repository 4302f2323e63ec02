"""In which way a sequence is unusual: a sentence for each measure, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from stabdiag.batches.features import N_GRAM, Features
from stabdiag.batches.measures import Scored, shown

# What a measure is called where it stands alone, as in a table.
TITLES: Mapping[str, str] = {
    "length": "length",
    "surprisal": "bits a token",
    "rare": "rare tokens",
    "repetition": "repetition",
    "compression": "compressed to",
    "odd": "odd characters",
    "script": "other script",
    "masked": "masked targets",
    "divergence": "divergence",
}


def reason(scored: Scored, i: int, one: Features) -> str:
    """Why sequence `i` of the batch stands out in this measure."""
    value, usual = shown(scored.name, float(scored.value[i])), shown(scored.name, scored.usual)
    high = scored.score[i] > 0
    said = _said(scored.name, value, usual, one, high=high)
    return f"{said} (score {scored.size[i]:.3g})"


def _said(name: str, value: float, usual: float, one: Features, *, high: bool) -> str:
    unit = one.unit
    match name:
        case "length":
            return f"{one.length:,} {unit}s long, usual is {usual:,.0f}"
        case "surprisal":
            which = f"unusual {unit}s" if high else f"little but common {unit}s"
            return (
                f"{which}: {value:.1f} bits a {unit} under the ordinary batches' distribution, "
                f"usual is {usual:.1f}"
            )
        case "rare":
            return (
                f"{_percent(value)} of its {unit}s are rare or absent in the ordinary batches, "
                f"usual is {_percent(usual)}"
            )
        case "repetition":
            runs = f"runs of {N_GRAM[unit]} {unit}s"
            return (
                f"{_percent(value)} of its {runs} occurred before in it, usual is {_percent(usual)}"
            )
        case "compression":
            how = "hardly compresses: to" if high else "compresses to"
            return f"{how} {_percent(value)} of its size, usual is {_percent(usual)}"
        case "odd":
            return (
                f"{_percent(value)} of its characters are control characters or undecodable "
                f"bytes, usual is {_percent(usual)}"
            )
        case "script":
            return f"its letters are {_scripts(one)}: {_percent(value)} in other scripts than usual"
        case _:
            return f"{_percent(value)} of its targets are masked, usual is {_percent(usual)}"


def whole_reason(scored: Scored, unit: str) -> str:
    """Why the batch as a whole stands out in this measure."""
    value, usual = shown(scored.name, float(scored.value[0])), shown(scored.name, scored.usual)
    score = f"(score {scored.size[0]:.3g})"
    match scored.name:
        case "divergence":
            return (
                f"its {unit}s are distributed otherwise: divergence {value:.3g} bits, "
                f"usual is {usual:.3g} {score}"
            )
        case "length":
            return (
                f"its sequences are {value:,.0f} {unit}s long (geometric mean), usual is "
                f"{usual:,.0f} {score}"
            )
        case "surprisal":
            return f"{value:.1f} bits a {unit} in the mean, usual is {usual:.1f} {score}"
        case "repetition":
            return (
                f"{_percent(value)} of the n-grams repeat in the mean, usual is "
                f"{_percent(usual)} {score}"
            )
        case _:
            return (
                f"compresses to {_percent(value)} in the mean, usual is {_percent(usual)} {score}"
            )


def empty_reason(one: Features) -> str:
    """Why a sequence trains nothing."""
    if one.length == 0:
        return "empty: no token but padding" if one.targets is not None else "empty: no token"
    return "no target left: all are masked"


def _scripts(one: Features) -> str:
    shares = sorted((one.scripts or {}).items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name.capitalize()} {_percent(share)}" for name, share in shares[:2])


def stand_out(count: int, size: int) -> str:
    """How many of the sequences stand out."""
    return f"{count} of {size} sequences {'stands' if count == 1 else 'stand'} out"


def twin_reason(alike: float, other: str) -> str:
    """Which sequence of the batch this one repeats."""
    same = "the same as" if alike == 1.0 else f"{_percent(alike)} alike with"
    return f"{same} {other} in this batch"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
