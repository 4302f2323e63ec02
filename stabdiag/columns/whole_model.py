"""Whether the layers that are logged are evidently all parameters of the model."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INDEX = re.compile(r"(?:^|[._/])([0-9]+)(?=[._/])")
_EMBEDDING = re.compile(r"embed|wte|tok_emb|word_emb", re.IGNORECASE)
# The fewest names outside the blocks: an embedding, and a final norm or head.
_MIN_OUTSIDE = 2


def is_whole_model(layers: Sequence[str]) -> bool:
    """Say whether these are all layers of a transformer.

    So it is when an embedding and something after the blocks are there, the blocks are numbered
    from 0 without a gap, and every block has the same parts. Anything less may be a choice of
    layers, whose norms don't add up to the global one.
    """
    blocks: dict[int, set[str]] = {}
    outside = []
    for layer in layers:
        index = _INDEX.search(layer)
        if index is None:
            outside.append(layer)
        else:
            blocks.setdefault(int(index[1]), set()).add(layer[index.end() :])
    if len(outside) < _MIN_OUTSIDE or not any(_EMBEDDING.search(layer) for layer in outside):
        return False
    if not blocks or sorted(blocks) != list(range(len(blocks))):
        return False
    return all(parts == blocks[0] for parts in blocks.values())
