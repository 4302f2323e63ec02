"""Rules of step 2 that need the data itself: `stabdiag batch LOG --data` judges by them."""

from __future__ import annotations

from collections.abc import Mapping

from stabdiag.findings import Severity
from stabdiag.rules.record import Rule, Threshold

# The least spread of each measure: what is hardly ever different is not odd where it differs a
# little. A score is counted in it where the ordinary sequences vary less.
SPREADS: Mapping[str, tuple[float, str]] = {
    "length": (0.1, "natural logarithm of the length"),
    "surprisal": (0.1, "bits a token"),
    "rare": (0.005, "share of the tokens"),
    "repetition": (0.1, "negative logarithm of the share of n-grams that do not repeat"),
    "compression": (0.08, "natural logarithm of compressed size over size"),
    "odd": (0.002, "share of the characters"),
    "script": (0.05, "share of the letters"),
    "masked": (0.05, "share of the targets"),
    "divergence": (0.005, "bits"),
}
_WHY_SPREAD = "project choice: the smallest difference in it that is worth a look"

UNUSUAL_SEQUENCE = Rule(
    id="SD204",
    name="unusual-sequence",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=(),
    what="A sequence of the batch (or the batch as a whole) is far from the ordinary batches' in "
    "length, token distribution, rare tokens, repetition, compressibility, odd characters, script "
    "or masked targets, and farther than each of theirs.",
    why_bad="Outlier batches are common triggers: unusual tokens, very long or repeated sequences. "
    "Real corpora have odd sequences anyway, so replay the batch before blaming one.",
    advice="Look at the sequence; drop or filter its kind and replay the batch on the checkpoint "
    "before.",
    thresholds=(
        Threshold(
            "min_score",
            6.0,
            "robust standard deviations",
            "with the margins below, 6 % of clean batches had a finding (source code cut at will "
            "4 %, by function or file 7 %, prose with tables 9 %; tests/batches/clean_batches.py)",
        ),
        Threshold(
            "warn_score",
            10.0,
            "robust standard deviations",
            "below it a finding is a remark: 3 % of the same clean batches reach it",
        ),
        Threshold(
            "margin",
            1.5,
            "times the score of the farthest ordinary sequence",
            "follows the tail of the corpus at hand: without it every fifth clean batch stood out",
        ),
        Threshold(
            "batch_margin", 2.0, "times the score of the farthest ordinary batch", "there are few"
        ),
        Threshold(
            "min_sequences", 20, "ordinary sequences", "a median and MAD of fewer say too little"
        ),
        Threshold(
            "min_batches", 5, "ordinary batches", "so many to judge a batch as a whole against"
        ),
        *(Threshold(f"spread_{name}", *least, _WHY_SPREAD) for name, least in SPREADS.items()),
        Threshold(
            "rare_below", 1e-4, "share of the ordinary tokens", "a token below it counts as rare"
        ),
    ),
    example="16 of 16 sequences stand out from 128 ordinary ones; first 317[0]: 100 % of its bytes "
    "are rare or absent in the ordinary batches, usual is 0 % (score 200)",
    sources=("handbook step 2", "Iglewicz and Hoaglin (1993), modified z-score"),
    command="batch",
)
NO_TARGET = Rule(
    id="SD205",
    name="sequence-without-targets",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=(),
    what="A sequence of the batch is empty, holds padding alone, or has every target masked.",
    why_bad="It trains nothing; where a whole batch is so, the mean loss is 0 or 0/0.",
    advice="Count the unmasked targets of each sequence; check truncation and the chat template.",
    example="3 of 8 sequences without a target (no target left: all are masked); of 64 ordinary ones 0",
    sources=("trl issue 6668", "unsloth issue 1128"),
    command="batch",
)
DUPLICATES = Rule(
    id="SD206",
    name="duplicate-sequences",
    workflow_step=2,
    severity=Severity.WARNING,
    needs=(),
    what="Sequences of the batch are the same, or nearly so, and those of ordinary batches are not.",
    why_bad="Repeated sequences act as a larger learning rate on one example.",
    advice="Deduplicate the corpus; check the sampler for repeated indices.",
    thresholds=(
        Threshold(
            "min_alike",
            0.8,
            "Jaccard similarity of n-grams",
            "the usual limit of near-duplicate filters of text corpora",
            below=1.0,
        ),
    ),
    example="16 of 16 sequences repeat another of the batch (11 exactly), more than in any "
    "ordinary batch",
    sources=("Lee et al. (2022), arXiv 2107.06499", "Broder (1997), MinHash"),
    command="batch",
)
RULES = (UNUSUAL_SEQUENCE, NO_TARGET, DUPLICATES)
