"""How often a clean batch is said to stand out: `python -m tests.batches.clean_batches`.

Text that every Python has: its library's source cut at will, by function, by file, and the prose of
its help pages (with tables in it). Batches are drawn at random, so that none is unusual.
"""

from __future__ import annotations

import pydoc_data.topics
import re
import sysconfig
from pathlib import Path

import numpy as np

from stabdiag.batches.features import Features, Masking, features_of
from stabdiag.batches.rank import rank
from stabdiag.batches.sources.samples import Sample
from stabdiag.batches.tokenizers import byte_tokenizer
from stabdiag.findings import Severity
from stabdiag.rules import CATALOGUE, Limits

MOST_DOCUMENTS = 4000
SIZES = ((16, 8, 60), (8, 8, 60), (32, 8, 25))  # sequences, ordinary batches, draws
_STARTS = re.compile(r"\n(?=    def |def |class )")


def corpora() -> dict[str, list[str]]:
    """Documents by how they were cut."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = sorted(library.glob("*.py")) + sorted(library.glob("*/*.py"))[:400]
    files = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    whole, rng = "\n".join(files), np.random.default_rng(0)
    ends = np.cumsum(rng.integers(200, 1200, len(whole) // 700)).tolist()
    return {
        "cut at will": [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)],
        "equal blocks": [whole[a : a + 1024] for a in range(0, len(whole), 1024)],
        "functions": [part for text in files for part in _STARTS.split(text) if len(part) > 20],
        "files": files,
        "prose": [
            part
            for topic in pydoc_data.topics.topics.values()
            for part in topic.split("\n\n")
            if len(part) > 20
        ],
    }


def claims(every: list[Features], size: int, ordinary: int, draws: int) -> tuple[float, float]:
    """Share of clean batches with a finding of any kind, and with a warning."""
    rng, limits = np.random.default_rng(1), Limits(CATALOGUE, {})
    found = warned = 0
    for _ in range(draws):
        picked = rng.choice(len(every), size * (ordinary + 1), replace=False)
        batches = [[every[i] for i in own] for own in picked.reshape(-1, size)]
        seen = rank([str(i) for i in range(size)], batches[0], batches[1:], 0, limits).findings
        seen = tuple(one for one in seen if one.rule == "SD204")
        found += bool(seen)
        warned += any(one.severity >= Severity.WARNING for one in seen)
    return found / draws, warned / draws


def main() -> None:
    """Print the shares for each corpus and size of batch."""
    for name, documents in corpora().items():
        np.random.default_rng(2).shuffle(documents)
        tokenizer = byte_tokenizer()
        every = [
            features_of(Sample(text=text), tokenizer, Masking())
            for text in documents[:MOST_DOCUMENTS]
        ]
        for size, ordinary, draws in SIZES:
            found, warned = claims(every, size, ordinary, draws)
            print(f"{name:12} {size:3} sequences: {found:.0%} a finding, {warned:.0%} a warning")


if __name__ == "__main__":
    main()
