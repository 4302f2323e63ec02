"""The formats of text logs, in the order in which a line is offered to them."""

from __future__ import annotations

from stabdiag.readers.text_patterns import hugging_face, nanogpt, scaler, speedruns
from stabdiag.readers.text_patterns.record import Pattern

PATTERNS: tuple[Pattern, ...] = (
    *scaler.PATTERNS,
    *hugging_face.PATTERNS,
    *speedruns.PATTERNS,
    *nanogpt.PATTERNS,
)
