"""What a layer is, from its name: role, depth, kind of tensor, and its peers in other blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

DEPTH = re.compile(r"(?:^|[._/])(\d+)(?=[._/]|$)")
TOKEN = re.compile(r"[./\s]+")

EMBEDDING = {"wte", "wpe", "embed", "embedding", "embeddings", "tok", "emb", "embedder"}
HEAD = {"head", "lmhead", "output", "classifier", "logits", "score", "unembed", "decoderout"}
NORM = {"ln", "norm", "layernorm", "rmsnorm", "bn", "batchnorm", "groupnorm", "gamma", "ln1", "ln2"}
ATTENTION = {"attn", "attention", "selfattn", "self", "crossattn", "mha", "encdecattention"}
ATTENTION_OUT = {"cproj", "oproj", "outproj", "wo", "o", "proj", "dense", "output", "out"}
ATTENTION_IN = {"cattn", "qproj", "kproj", "vproj", "inproj", "qkv", "query", "key", "value"}
MLP = {"mlp", "ffn", "fc", "cfc", "feedforward", "linear", "lin", "dense", "densereludense", "moe"}


@dataclass(frozen=True)
class Role:
    """`role` as in the JSON report; `depth` the block's number; `peers` the name without it.

    `matrix` is False for biases and norm scales, which start at 0 or 1 and grow by any factor.
    """

    role: str
    depth: int | None
    peers: str
    matrix: bool


def role_of(layer: str) -> Role:
    """Read a layer's role from its name; "other" where the name doesn't say."""
    numbers = DEPTH.findall(layer)
    depth = int(numbers[0]) if numbers else None
    peers = DEPTH.sub(lambda m: m.group(0).replace(m.group(1), "#"), layer)
    words = [re.sub(r"[^a-z0-9]|\d+$", "", w.lower().replace("_", "")) for w in TOKEN.split(layer)]
    words = [w for w in words if w and not w.isdigit()]
    bias = bool(words) and words[-1] in ("bias", "b", "inprojbias")
    names = set(words)
    role = _role(names, layer.lower())
    return Role(role, depth, peers, matrix=not bias and role != "norm")


def _role(names: set[str], name: str) -> str:
    if names & NORM or any(w.endswith(("norm", "layernorm")) for w in names):
        return "norm"
    if names & ATTENTION or any("attn" in w or "attention" in w for w in names):
        if names & ATTENTION_IN or any(w.startswith(("inproj", "qkv")) for w in names):
            return "attention_in"
        return "attention_out" if names & ATTENTION_OUT else "attention_in"
    if names & ATTENTION_IN:
        return "attention_in"
    if names & {"oproj"}:
        return "attention_out"
    if names & MLP or any(w.endswith("proj") for w in names) or "feed_forward" in name:
        return "mlp"
    if names & EMBEDDING or any(w.startswith("embed") for w in names) or "embedding" in name:
        return "embedding"
    if names & HEAD or any(w.endswith("head") for w in names):
        return "head"
    return "other"


def parts_of(order: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The model in parts in its own order: a block of one depth each, other modules alone."""
    parts: dict[str, list[str]] = {}
    for layer in order:
        parts.setdefault(part_of(layer), []).append(layer)
    return list(parts.items())


def part_of(layer: str) -> str:
    """The path of a layer up to its block's number; the module's path where it has none."""
    number = DEPTH.search(layer)
    if number is not None:
        return layer[: number.end()]
    module, _, tensor = layer.rpartition(".")
    return module if module and tensor in ("weight", "bias") else layer
