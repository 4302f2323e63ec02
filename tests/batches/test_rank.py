"""Each kind of planted sequence is ranked first with its own reason; numbers behave as they must."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabdiag.batches.features import (
    Features,
    Masking,
    Tokenizer,
    compressed_share,
    features_of,
    likeness,
    n_gram_hashes,
    odd_share,
    repeated_share,
    script_shares,
)
from stabdiag.batches.measures import divergence, reference_of, scored, surprisal, theil_sen
from stabdiag.batches.rank import Ranking, rank
from stabdiag.batches.sources.samples import Sample
from stabdiag.batches.tokenizers import byte_tokenizer
from stabdiag.findings import Severity
from stabdiag.rules import CATALOGUE, Limits
from tests.batches.corpora import BATCH, documents

LIMITS = Limits(CATALOGUE, {})
BYTES = byte_tokenizer()
PLACE = 3  # of the planted sequence in its batch
TOKENS = st.lists(st.integers(0, 2**31), max_size=60).map(lambda t: np.array(t, dtype=np.int64))


def of_text(text: str) -> Features:
    return features_of(Sample(text=text), BYTES, Masking())


def of_tokens(
    tokens: Sequence[int], targets: Sequence[int] | None = None, pad: int | None = None
) -> Features:
    sample = Sample(
        tokens=np.array(tokens, dtype=np.int64),
        targets=None if targets is None else np.array(targets, dtype=np.int64),
    )
    return features_of(sample, BYTES, Masking(pad=pad))


def batches(every: Sequence[Features]) -> list[list[Features]]:
    return [list(every[i : i + BATCH]) for i in range(0, len(every), BATCH)]


def ranking(batch: Sequence[Features], ordinary: Sequence[Sequence[Features]]) -> Ranking:
    return rank([f"s{i}" for i in range(len(batch))], batch, ordinary, 7, LIMITS)


ORDINARY_TEXT = [of_text(text) for text in documents()[: 9 * BATCH]]


def among_texts(planted: Features) -> Ranking:
    batch, *ordinary = batches(ORDINARY_TEXT)
    batch[PLACE] = planted
    return ranking(batch, ordinary)


WORDS = documents()[-1]
PLANTED = {
    "repeated": ("la " * 120, "occurred before in it"),
    "very long": (" ".join(documents()[100:160]), "bytes long, usual is"),
    "very short": ("no", "bytes long, usual is"),
    "garbled": (
        "".join(chr(c) for c in np.random.default_rng(0).integers(33, 0x2FF, 400).tolist()),
        "rare or absent",
    ),
    "control characters": (WORDS[:100] + "\x00\x1b" * 40 + WORDS[100:], "control characters"),
    "undecodable": (WORDS[:100] + "\ufffd" * 40 + WORDS[100:], "undecodable bytes"),
    "other script": ("мама мыла раму и папа читал газету " * 8, "Cyrillic 100 %"),
    "encoded": (
        "".join("0123456789abcdef"[c] for c in np.random.default_rng(1).integers(0, 16, 400)),
        "unusual bytes",
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_text_comes_first_with_its_reason(kind: str) -> None:
    text, said = PLANTED[kind]
    seen = among_texts(of_text(text))
    first, second = seen.sequences[:2]
    assert first.id == f"s{PLACE}"
    assert any(said in reason for reason in first.reasons), first.reasons
    assert second.reasons == ()
    assert first.score is not None
    assert first.score >= LIMITS.all()["SD204.min_score"]
    assert "SD204" in [one.rule for one in seen.findings]


def test_nothing_is_claimed_of_ordinary_batches() -> None:
    """One batch in twelve, each against the eight that follow it."""
    every = batches([of_text(text) for text in documents()])
    claims = 0
    for i in range(0, len(every) - 9, 12):
        claims += bool(ranking(every[i], every[i + 1 : i + 9]).findings)
    assert claims == 0


def labelled(seed: int, size: int, masked: float) -> Features:
    rng = np.random.default_rng(seed)
    tokens = np.minimum(rng.zipf(1.5, size), 5000)
    targets = np.where(np.arange(size) < masked * size, -100, tokens)
    return of_tokens(tokens.tolist(), targets.tolist())


def test_masked_targets() -> None:
    batch, *ordinary = batches([labelled(i, 80, 0.3 + 0.001 * (i % 50)) for i in range(9 * BATCH)])
    batch[2] = labelled(900, 80, 1.0)
    batch[5] = labelled(901, 80, 0.95)
    seen = ranking(batch, ordinary)
    first, second, third = seen.sequences[:3]
    assert (first.id, first.reasons) == ("s2", ("no target left: all are masked",))
    assert second.id == "s5"
    assert "95 % of its targets are masked, usual is 32 %" in second.reasons[0]
    assert third.reasons == ()
    empty = next(one for one in seen.findings if one.rule == "SD205")
    assert empty.data == {"sequences": ["s2"], "count": 1, "ordinary": 0}


def test_padding_is_no_token_and_padding_alone_is_no_sequence() -> None:
    padded = of_tokens([5, 6, 7, 0, 0, 0], [6, 7, 8, 0, 0, 0], pad=0)
    assert (padded.length, padded.targets) == (3, 3)
    alone = of_tokens([0] * 6, [0] * 6, pad=0)
    assert (alone.length, alone.targets) == (0, 0)
    usual = [of_tokens([1 + i % 7, 2, 3, 4, 5, 6] * 4, pad=0) for i in range(4 * BATCH)]
    batch, *ordinary = batches(usual)
    batch[0] = of_tokens([0] * 24, pad=0)
    seen = ranking(batch, ordinary)
    assert seen.sequences[0].reasons == ("empty: no token",)


def test_duplicates_exact_and_near() -> None:
    batch, *ordinary = batches(ORDINARY_TEXT)
    batch[1] = batch[6]
    text = documents()[500]
    batch[2], batch[4] = of_text(text), of_text(text[:-12] + "another end.")
    seen = ranking(batch, ordinary)
    by_id = {one.id: one.reasons for one in seen.sequences}
    assert by_id["s1"] == ("the same as s6 in this batch",)
    assert by_id["s6"] == ("the same as s1 in this batch",)
    assert by_id["s2"][0].endswith("alike with s4 in this batch")
    assert by_id["s0"] == ()
    found = next(one for one in seen.findings if one.rule == "SD206")
    assert (found.severity, found.data["count"], found.data["exact"]) == (Severity.WARNING, 4, 2)


def test_duplicates_that_are_usual_are_no_finding() -> None:
    every = batches(ORDINARY_TEXT)
    for own in every:
        own[1] = own[6]
    assert ranking(every[0], every[1:]).findings == ()


def test_a_batch_that_is_odd_as_a_whole() -> None:
    """Other words in every sequence: their distribution is what stands out."""
    _, *ordinary = batches(ORDINARY_TEXT)
    rng = np.random.default_rng(4)
    batch = [
        of_text(" ".join(rng.choice([*["spam", "eggs"] * 3, *documents()[i].split()[:9]], size=70)))
        for i in range(BATCH)
    ]
    seen = ranking(batch, ordinary)
    assert any("as a whole" in one.message for one in seen.findings)
    assert next(one for one in seen.measures if one.name == "divergence").unusual


def test_too_few_to_judge() -> None:
    batch, *ordinary = batches(ORDINARY_TEXT)
    batch[PLACE] = of_text("la " * 200)
    seen = ranking(batch, ordinary[:2])
    assert not seen.judged
    assert seen.findings == ()
    assert all(one.score is None for one in seen.sequences)


def test_what_tokens_can_not_show_is_said() -> None:
    batch, *ordinary = batches([of_tokens([1 + i % 7, 2, 3] * 9) for i in range(5 * BATCH)])
    said = " ".join(ranking(batch, ordinary).not_measured)
    assert "--tokenizer" in said
    assert "no labels" in said


def test_a_heavy_tail_raises_what_counts_as_unusual() -> None:
    length = np.zeros(64)
    calm = np.random.default_rng(0).normal(size=64)
    wild = calm.copy()
    wild[5] = 30.0
    value = np.array([12.0])
    options = {"floor": 0.1, "limit": 6.0, "margin": 1.5}
    assert scored("surprisal", value, length[:1], calm, length, **options).unusual[0]
    assert not scored("surprisal", value, length[:1], wild, length, **options).unusual[0]


def test_a_drift_with_the_length_is_taken_off() -> None:
    x = np.linspace(3, 8, 100)
    y = 0.1 * x + np.random.default_rng(0).normal(scale=0.01, size=100)
    assert theil_sen(x, y) == pytest.approx(0.1, abs=0.01)
    assert theil_sen(np.zeros(50), y[:50]) == 0.0
    options = {"floor": 0.001, "limit": 6.0, "margin": 1.5}
    ends = scored("repetition", y[[0, -1]], x[[0, -1]], y, x, **options)
    assert np.abs(ends.score).max() < 4
    off = scored("repetition", np.array([y[-1]]), x[:1], y, x, **options)
    assert off.unusual[0]


@given(TOKENS, st.integers(1, 6))
def test_repetition_is_a_share(tokens: np.ndarray, n: int) -> None:
    share = repeated_share(n_gram_hashes(tokens, n))
    if tokens.size < n:
        assert math.isnan(share)
    else:
        runs = [tuple(tokens[i : i + n]) for i in range(tokens.size - n + 1)]
        assert share == pytest.approx(1 - len(set(runs)) / len(runs))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=20), min_size=2, max_size=6))
def test_divergence_is_between_0_and_1(rows: list[list[int]]) -> None:
    every = [of_tokens(row) for row in rows]
    reference = reference_of(every, [])
    for one in every:
        assert -1e-9 <= divergence([one], reference, own=False) <= 1 + 1e-9
    assert divergence(every, reference, own=False) == pytest.approx(0, abs=1e-9)
    apart = [of_tokens([value + 10 for value in rows[0]])]
    assert divergence(apart, reference_of(every, apart), own=False) == pytest.approx(1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(2, 9))
def test_surprisal_does_not_depend_on_the_length(row: list[int], times: int) -> None:
    short, long = of_tokens(row), of_tokens(row * times)
    reference = reference_of([of_tokens(list(range(12)) * 5)], [short, long])
    one, many = surprisal(short, reference, own=False), surprisal(long, reference, own=False)
    assert one == pytest.approx(many)
    assert one > 0


@given(st.text(max_size=200))
def test_any_text_has_features(text: str) -> None:
    one = of_text(text)
    assert one.length == len(text.encode("utf-8", "surrogatepass"))
    assert "\n" not in one.excerpt
    if text:
        assert 0 <= odd_share(text) <= 1
    shares = script_shares(text)
    assert not shares or sum(shares.values()) == pytest.approx(1)


def test_similar_texts_have_similar_sketches() -> None:
    text = documents()[3] * 3
    one, near, other = of_text(text), of_text(text + " and so on"), of_text(documents()[9] * 3)
    alike, which = likeness([one.sketch, near.sketch, other.sketch, None])
    assert alike[0] > 0.8
    assert which[:2] == [1, 0]
    assert alike[2] < 0.3
    assert math.isnan(alike[3])


def test_short_data_is_not_compressed() -> None:
    assert math.isnan(compressed_share(b"abc"))
    assert compressed_share(b"a" * 1000) < 0.05
    assert compressed_share(np.random.default_rng(0).bytes(1000)) > 0.95


def test_lone_surrogates_are_text() -> None:
    one = features_of(
        Sample(text="\ud800" * 70), Tokenizer("byte", "", BYTES.encode, BYTES.decode), Masking()
    )
    assert one.length == 210
    assert math.isfinite(one.compression)
