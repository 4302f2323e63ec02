"""What one sequence looks like: pure functions on its tokens and text, and the numbers kept of it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stabdiag.batches.sources.samples import Sample
from stabdiag.model import I64

U64 = NDArray[np.uint64]
Unit = Literal["token", "byte"]

MOST_UNITS = 1 << 20  # of a sequence that are looked at; its length counts in full
N_GRAM = {"token": 4, "byte": 16}  # some 16 characters of text both
LEAST_COMPRESSED = 64  # bytes; shorter ones hardly compress whatever they are
LONGEST_EXCERPT = 120  # characters
_LETTERS_LOOKED_AT = 20_000
_SKETCH_HASHES = 4096  # the smallest n-gram hashes of a sequence stand for all of them
_PERMUTATIONS = 64  # of MinHash: the similarity's standard error is at most 1/16
_ODD = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffd-\uffff\ue000-\uf8ff]")
_BLANKS = re.compile(r"\s+")
_ODD_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Features:
    """What is kept of one sequence; its tokens and text are not.

    `token` [U] and `count` [U] are its distinct tokens; `length` its real ones (padding apart).
    Shares and ratios are NaN where they can't be measured. `targets` is None where the corpus has
    none. `digest` is equal for equal sequences, `sketch` [64] (None where too short) alike for
    similar ones. `scripts` are shares of its letters; None where there is no text.
    """

    unit: Unit
    length: int
    token: I64
    count: I64
    repetition: float
    compression: float
    odd: float
    masked: float
    targets: int | None
    scripts: Mapping[str, float] | None
    digest: bytes
    sketch: U64 | None
    excerpt: str


@dataclass(frozen=True)
class Tokenizer:
    """How text becomes units, and units text again where there is no text."""

    unit: Unit
    described: str
    encode: Callable[[str], I64]
    decode: Callable[[I64], str | None]


@dataclass(frozen=True)
class Masking:
    """Which targets train nothing: `ignored` ones, and padding by `pad` where it is known."""

    ignored: int = -100
    pad: int | None = None


def features_of(sample: Sample, tokenizer: Tokenizer, masking: Masking) -> Features:
    """Measure one sequence."""
    given = sample.tokens
    whole = tokenizer.encode(sample.text or "") if given is None else given
    real = _real(whole, sample, masking)
    tokens = whole[real] if real is not None else whole
    looked = tokens[:MOST_UNITS]
    token, count = np.unique(looked, return_counts=True)
    text = sample.text if sample.text is not None else tokenizer.decode(looked)
    unit: Unit = "token" if given is not None else tokenizer.unit
    hashes = n_gram_hashes(looked, N_GRAM[unit])
    packed = _packed(looked) if text is None or given is not None else _utf8(text[:MOST_UNITS])
    masked, targets = _targets(whole, real, sample, masking)
    return Features(
        unit=unit,
        length=int(tokens.size),
        token=token.astype(np.int64),
        count=count.astype(np.int64),
        repetition=repeated_share(hashes),
        compression=compressed_share(packed),
        odd=float("nan") if text is None else odd_share(text),
        masked=masked,
        targets=targets,
        scripts=None if text is None else script_shares(text),
        digest=hashlib.blake2b(np.ascontiguousarray(tokens).tobytes(), digest_size=16).digest(),
        sketch=min_hash(hashes),
        excerpt=_excerpt(text, looked),
    )


def _real(whole: I64, sample: Sample, masking: Masking) -> NDArray[np.bool_] | None:
    """Where the tokens are no padding, [n]; None where nothing says."""
    real = None
    if sample.real is not None and sample.real.size == whole.size:
        real = sample.real != 0
    if masking.pad is not None:
        filled = whole != masking.pad
        real = filled if real is None else real & filled
    return real


def _targets(
    whole: I64, real: NDArray[np.bool_] | None, sample: Sample, masking: Masking
) -> tuple[float, int | None]:
    """Share of the targets that are ignored, and how many are left; NaN and None without any."""
    if sample.targets is None or (sample.targets.size != whole.size and whole.size):
        return float("nan"), None
    left = sample.targets != masking.ignored
    if real is not None and real.size == left.size:
        left &= real
    return (float(1.0 - left.mean()) if left.size else 1.0), int(np.count_nonzero(left))


def n_gram_hashes(tokens: I64, n: int) -> U64:
    """One well-mixed hash for each run of `n` tokens, shape [max(0, T - n + 1)]."""
    size = max(0, tokens.size - n + 1)
    mixed = np.zeros(size, dtype=np.uint64)
    unsigned = tokens.astype(np.uint64) + np.uint64(1)
    for k in range(n):  # a polynomial modulo 2^64
        mixed = mixed * _ODD_MULTIPLIER + unsigned[k : k + size]
    return _mix(mixed)


def _mix(value: U64) -> U64:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): every bit depends on every bit."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: U64 = value ^ (value >> np.uint64(31))
    return mixed


def repeated_share(hashes: U64) -> float:
    """Share of the n-grams that occurred before in the same sequence; NaN without any."""
    return 1.0 - np.unique(hashes).size / hashes.size if hashes.size else float("nan")


def compressed_share(data: bytes) -> float:
    """Size after zlib over size before; NaN for less than LEAST_COMPRESSED bytes."""
    if len(data) < LEAST_COMPRESSED:
        return float("nan")
    return len(zlib.compress(data, 6)) / len(data)


def odd_share(text: str) -> float:
    """Share of characters that text does not hold: control, private, U+FFFD (undecodable bytes)."""
    looked = text[:MOST_UNITS]
    return len(_ODD.findall(looked)) / len(looked) if looked else float("nan")


def script_shares(text: str) -> dict[str, float]:
    """Share of each script among the letters (evenly spaced ones of a long text)."""
    stride = 1 + len(text) // _LETTERS_LOOKED_AT
    counts = Counter(script for char in text[::stride] if (script := _script(char)))
    total = sum(counts.values())
    return {script: count / total for script, count in sorted(counts.items())}


@lru_cache(maxsize=1 << 16)
def _script(char: str) -> str:
    """The script of a letter by the first word of its Unicode name ("LATIN", "CJK"); "" for none."""
    if not char.isalpha():
        return ""
    return unicodedata.name(char, "").partition(" ")[0].partition("-")[0]


def min_hash(hashes: U64) -> U64 | None:
    """MinHash signature [64] of a set of n-grams (Broder, 1997); None where there is none."""
    distinct = np.unique(hashes)[:_SKETCH_HASHES]
    if distinct.size == 0:
        return None
    seeds = _mix(np.arange(1, _PERMUTATIONS + 1, dtype=np.uint64) * _ODD_MULTIPLIER)
    signature: U64 = _mix(distinct ^ seeds[:, None]).min(axis=1)
    return signature


def likeness(sketches: list[U64 | None]) -> tuple[NDArray[np.float64], list[int | None]]:
    """How similar each sequence is to the one most like it, and which that is.

    Returns:
        Estimated Jaccard similarity of their n-grams, shape [B], NaN where a sequence has no
        sketch or no other; and the indices of the others.
    """
    size = len(sketches)
    best = np.full(size, np.nan)
    which: list[int | None] = [None] * size
    have = [i for i, sketch in enumerate(sketches) if sketch is not None]
    if len(have) < 2:
        return best, which
    table = np.stack([sketch for sketch in sketches if sketch is not None])
    for row, i in enumerate(have):  # one row at a time: B x 64 comparisons
        alike = (table == table[row]).mean(axis=1)
        alike[row] = -1.0
        most = int(np.argmax(alike))
        best[i], which[i] = float(alike[most]), have[most]
    return best, which


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may hold half a surrogate pair


def _packed(tokens: I64) -> bytes:
    """Token ids in as few bytes as they all fit into."""
    if tokens.size == 0:
        return b""
    low, high = int(tokens.min()), int(tokens.max())
    narrow = next(
        (
            kind
            for kind in (np.uint8, np.uint16, np.uint32)
            if low >= 0 and high <= np.iinfo(kind).max
        ),
        np.int64,
    )
    return tokens.astype(narrow).tobytes()


def _excerpt(text: str | None, tokens: I64) -> str:
    """The beginning, on one line; characters that could steer a terminal are the reporter's job."""
    if text is None:
        return f"ids {' '.join(map(str, tokens[:16].tolist()))}{' …' if tokens.size > 16 else ''}"
    line = _BLANKS.sub(" ", text[: 4 * LONGEST_EXCERPT]).strip()
    return line if len(line) <= LONGEST_EXCERPT else f"{line[: LONGEST_EXCERPT - 1]}…"
