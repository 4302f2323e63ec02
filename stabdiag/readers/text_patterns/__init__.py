"""The formats of text logs, in the order in which a line is offered to them."""

from __future__ import annotations

from stabdiag.readers.text_patterns import (
    algoperf,
    bars,
    blocks,
    epochs,
    fairseq,
    generic,
    hugging_face,
    megatron,
    nanogpt,
    scaler,
    speedruns,
    torchtitan,
    vision,
)
from stabdiag.readers.text_patterns.record import Pattern

GENERIC = generic.GENERIC
PATTERNS: tuple[Pattern, ...] = (
    *scaler.PATTERNS,
    *hugging_face.PATTERNS,
    *fairseq.PATTERNS,
    *speedruns.PATTERNS,
    *nanogpt.PATTERNS,
    *torchtitan.PATTERNS,
    *megatron.PATTERNS,
    *algoperf.PATTERNS,
    *vision.PATTERNS,
    *blocks.PATTERNS,
    *epochs.PATTERNS,
    *bars.PATTERNS,
)
