"""Step 2 for one batch: choose it, retrieve it and ordinary ones, measure, rank, report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stabdiag.batches.choose import Choice, chosen_step, ordinary_steps
from stabdiag.batches.features import Features, Masking, Tokenizer, features_of
from stabdiag.batches.index_file import read_index
from stabdiag.batches.indices import BatchIds, Indices, indices_of, logged_seed
from stabdiag.batches.order import Drawing
from stabdiag.batches.rank import Ranking, rank
from stabdiag.batches.reasons import stand_out
from stabdiag.batches.retrieve import Retrieved, retrieve
from stabdiag.batches.sources import Corpus, open_corpus
from stabdiag.batches.sources.samples import CorpusOptions
from stabdiag.batches.tokenizers import byte_tokenizer, load_tokenizer
from stabdiag.findings import Finding, Report, Status
from stabdiag.inspection import MOST_IDS, BatchInspection, DataInfo, Statistic
from stabdiag.model import Run
from stabdiag.rules import CATALOGUE, Limits
from stabdiag.rules.batch import BATCH_OUTLIER, EMPTY_BATCH, ZERO_LOSS
from stabdiag.rules.inspection import RULES as INSPECTION_RULES
from stabdiag.rules.inspection import UNUSUAL_SEQUENCE
from stabdiag.settings import Settings
from stabdiag.steps.batch import oddities
from stabdiag.steps.outcome import finding
from stabdiag.verdict.advice import log_argument

MOST_ORDINARY = 2048  # sequences; with large batches fewer batches are compared
TO_LOG = (
    "`sample_ids`: the list of the samples' places in the corpus, each step (exact)",
    "or `data_start` and `data_end`: the first and last place, where a batch is a range",
    "or `batch_id`: its number, with `--batch-size N` or a file `--index FILE` beside it",
    "`stabdiag.recorder` does it: `recorder.after_backward(loss, indices=indices)`",
)


@dataclass(frozen=True)
class DataRequest:
    """What the user says of the batch and its corpus; None where nothing is said."""

    data: Path | None = None
    index: Path | None = None
    tokenizer: Path | None = None
    step: int | None = None
    ordinary: int = 8
    batch_size: int | None = None
    order: str = "sequential"
    seed: int | None = None  # None: what the log says, else 0
    drop_last: bool = False
    id_field: str | None = None
    masking: Masking = field(default_factory=Masking)
    corpus: CorpusOptions = field(default_factory=CorpusOptions)


@dataclass(frozen=True)
class _Case:
    """One question: the run with its diagnosis, the batch that is meant, and how it is found."""

    run: Run
    report: Report
    request: DataRequest
    limits: Limits
    choice: Choice
    indices: Indices | None
    own: BatchIds | None
    statistics: tuple[Statistic, ...]


@dataclass(frozen=True)
class _Answer:
    """What came of it."""

    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    data: DataInfo | None = None
    ordinary_steps: tuple[int, ...] = ()
    ordinary_sequences: int = 0
    ranking: Ranking | None = None
    size: int | None = None  # sequences found, where that is more than ids
    notes: tuple[str, ...] = ()


def inspect_batch(
    run: Run, report: Report, request: DataRequest, settings: Settings
) -> BatchInspection:
    """Retrieve the batch before the onset, or of the step asked for, and inspect it.

    Args:
        run: the run.
        report: its diagnosis.
        request: the batch and the corpus that are meant.
        settings: for the thresholds.

    Raises:
        InputError: the corpus or index can't be read, or does not hold the batch.
        UsageError: what is asked lacks something or does not fit together.
    """
    limits = Limits(CATALOGUE, settings.thresholds)
    indices = _indices(run, request)
    choice = chosen_step(report, indices.steps if indices else None, request.step, _cadence(report))
    own = None
    if indices is not None and choice.step is not None:
        own = indices.of_step(choice.step)
    statistics = _statistics(run, choice, report, limits)
    case = _Case(run, report, request, limits, choice, indices, own, statistics)
    if own is None or request.data is None:
        return _inspection(case, _from_log(case))
    return _inspection(case, _from_corpus(case, request.data, own))


def _indices(run: Run, request: DataRequest) -> Indices | None:
    if request.index is not None:
        return read_index(request.index, run)
    return indices_of(run, request.batch_size)


def _statistics(run: Run, choice: Choice, report: Report, limits: Limits) -> tuple[Statistic, ...]:
    """The batch statistics of the log at the chosen step, the oddest first."""
    if run.batch is None or choice.step is None:
        return ()
    window = int(limits(BATCH_OUTLIER, "window"))
    odd = oddities(run.batch, choice.step, _cadence(report), window)
    return tuple(Statistic(o.statistic, o.step, o.value, o.usual, o.score) for o in odd)


def _cadence(report: Report) -> int:
    loss = report.run.series.get("loss")
    return loss.cadence if loss is not None else 1


def _from_log(case: _Case) -> _Answer:
    """What the log alone says: its batch statistics, and what is missing to see the data."""
    more = _to_see_the_data(case)
    step = case.choice.step
    if step is None:
        own = next(result for result in case.report.workflow if result.step == 2)
        return _Answer(own.status if own.status != "found" else "clear", case.choice.why, (), more)
    findings = _logged_findings(case)
    if findings:
        return _Answer("found", f"unusual in the log: {_named(findings)}", findings, more)
    if case.statistics:
        largest, limit = case.statistics[0], case.limits(BATCH_OUTLIER, "min_score")
        reason = (
            f"the logged batch statistics are as usual: largest score {largest.score:.3g} "
            f"({largest.name}) of threshold {limit:g}"
        )
        return _Answer("clear", reason, (), more)
    if case.indices is None:
        lost = "the log has no data indices and no batch statistics"
        if case.request.data is not None:
            lost += "; --data can't be used without the indices"
        return _Answer("skipped", lost, (), more)
    return _Answer("skipped", "the log has data indices; name the corpus with --data", (), more)


def _logged_findings(case: _Case) -> tuple[Finding, ...]:
    """What is odd about the batch by the log alone: its statistics, and losses without targets."""
    limit = case.limits(BATCH_OUTLIER, "min_score")
    odd = [one for one in case.statistics if one.score >= limit]
    rules = {rule.id for rule in (ZERO_LOSS, EMPTY_BATCH)}
    step = case.choice.step
    return (
        *_odd_statistics(odd),
        *(f for f in case.report.findings if f.step == step and f.rule in rules),
    )


def _named(findings: Sequence[Finding]) -> str:
    """The statistics of findings of the log, or the findings' names where they have none."""
    return ", ".join(
        name
        for one in findings
        for name in (one.data if one.rule == BATCH_OUTLIER.id else (one.name,))
    )


def _odd_statistics(odd: Sequence[Statistic]) -> tuple[Finding, ...]:
    if not odd:
        return ()
    first = odd[0]
    text = (
        f"{first.name} is {first.value:.4g} at step {first.step}, usual is {first.usual:.4g} "
        f"({first.score:.0f} robust standard deviations off)"
    )
    data = {one.name: {"value": one.value, "usual": one.usual, "score": one.score} for one in odd}
    return (finding(BATCH_OUTLIER, text, step=first.step, last_step=first.step, data=data),)


def _to_see_the_data(case: _Case) -> tuple[str, ...]:
    if case.indices is None or case.choice.step is None or case.request.data is not None:
        return ()
    log = log_argument(case.run)
    return (f"stabdiag batch {log} --step {case.choice.step} --data CORPUS",)


def _from_corpus(case: _Case, path: Path, own: BatchIds) -> _Answer:
    """The batch and ordinary ones, out of the corpus."""
    assert case.indices is not None  # there is a batch
    request, indices = case.request, case.indices
    corpus = open_corpus(path, request.corpus)
    others = ordinary_steps(
        indices.steps,
        own.step,
        case.report.episodes,
        _cadence(case.report),
        min(request.ordinary, max(1, MOST_ORDINARY // max(1, len(own.ids)))),
    )
    wanted = [own, *(indices.of_step(step) for step in others)]
    tokenizer = load_tokenizer(request.tokenizer) if request.tokenizer else byte_tokenizer()
    found = retrieve(
        corpus,
        indices,
        wanted,
        lambda sample: features_of(sample, tokenizer, request.masking),
        asked_field=request.id_field,
        drawing=Drawing(
            request.order,
            logged_seed(case.run) if request.seed is None else request.seed,
            request.batch_size or indices.size,
            by_batch=indices.by_batch,
            drop_last=request.drop_last,
        ),
    )
    batch, ordinary = found.batches[0], found.batches[1:]
    ranking = rank(found.names[0], batch, ordinary, own.step, case.limits)
    peers = sum(map(len, ordinary))
    logged = _logged_findings(case)
    status, reason = _judged(case, ranking, logged, len(batch), peers)
    return _Answer(
        status,
        reason,
        (*ranking.findings, *logged),
        _after(case, ranking),
        _data_info(corpus, found, tokenizer, batch),
        found.steps[1:],
        peers,
        ranking,
        len(batch),
        found.notes,
    )


def _data_info(
    corpus: Corpus, found: Retrieved, tokenizer: Tokenizer, batch: Sequence[Features]
) -> DataInfo:
    unit = batch[0].unit if batch else tokenizer.unit
    files = f"{len(corpus.files)} files, " if len(corpus.files) > 1 else ""
    counted = "token ids of the corpus"
    if unit == tokenizer.unit:
        counted = tokenizer.described
    sample = f"a sample is {corpus.kind.sample}"
    return DataInfo(
        name=corpus.name,
        kind=f"{files}{corpus.kind.name}",
        described=f"{sample}; {found.understood}; {counted}",
        sequences=found.size,
        unit=unit,
    )


def _judged(
    case: _Case, ranking: Ranking, logged: Sequence[Finding], size: int, peers: int
) -> tuple[Status, str]:
    """The status of the step and its reason in a sentence."""
    compared = f"{peers} ordinary sequences compared"
    least = case.limits(UNUSUAL_SEQUENCE, "min_sequences")
    too_few = f"too few ordinary sequences to judge: {peers} of {least:g} needed"
    if ranking.findings:
        odd = sum(bool(one.reasons) for one in ranking.sequences)
        said = stand_out(odd, size) if odd else "the batch as a whole stands out"
        return "found", f"{said}; {compared if ranking.judged else too_few}"
    if logged:
        return "found", (
            f"unusual in the log ({_named(logged)}), but no sequence stands out: check that this "
            f"is the corpus of the run; {compared if ranking.judged else too_few}"
        )
    if not ranking.judged:
        return "skipped", too_few
    limit = case.limits(UNUSUAL_SEQUENCE, "min_score")
    largest = max((one.score for one in ranking.sequences if one.score is not None), default=0.0)
    beyond = " (theirs go as far)" if largest >= limit else ""
    return "clear", (
        f"no sequence stands out: largest score {largest:.3g} of threshold {limit:g}{beyond}, "
        f"{compared}"
    )


def _after(case: _Case, ranking: Ranking) -> tuple[str, ...]:
    """What to do now: replay what stands out, else look one step earlier."""
    step = case.choice.step or 0
    if ranking.findings:
        return (
            f"Replay the batch of step {step} on the checkpoint before it: the same again is data.",
            "Drop or filter what stands out, and continue.",
        )
    if case.request.step is not None or case.indices is None:
        return ()
    earlier = case.indices.steps[case.indices.steps < step]
    if not earlier.size:
        return ()
    return (
        f"Where the loop counts a step before it logs: `stabdiag batch {log_argument(case.run)} "
        f"--step {int(earlier[-1])} --data {shlex.quote(str(case.request.data))}`",
    )


def _known_size(case: _Case) -> int:
    """Sequences of the batch as far as the log says; 0 where it names the batch alone."""
    if case.own is None or case.indices is None or case.indices.means == "batch":
        return 0
    return len(case.own.ids)


def _inspection(case: _Case, answer: _Answer) -> BatchInspection:
    ids = case.own.ids if case.own is not None else ()
    ranking = answer.ranking
    return BatchInspection(
        version=case.report.version,
        run=case.report.run,
        step=case.choice.step,
        why=case.choice.why,
        indices=case.indices.described if case.indices is not None else "",
        ids=ids[:MOST_IDS],
        size=answer.size if answer.size is not None else _known_size(case),
        data=answer.data,
        ordinary_steps=answer.ordinary_steps,
        ordinary_sequences=answer.ordinary_sequences,
        status=answer.status,
        reason=answer.reason,
        statistics=case.statistics,
        measures=ranking.measures if ranking else (),
        sequences=ranking.sequences if ranking else (),
        not_measured=ranking.not_measured if ranking else (),
        findings=answer.findings,
        to_log=TO_LOG if case.indices is None else (),
        next_steps=answer.next_steps,
        notes=answer.notes,
        thresholds={
            key: value
            for key, value in sorted(case.limits.all().items())
            if key.split(".")[0] in _RULES
        },
    )


_RULES = frozenset(rule.id for rule in (BATCH_OUTLIER, *INSPECTION_RULES))
