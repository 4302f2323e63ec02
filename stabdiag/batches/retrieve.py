"""From the ids of some batches to their sequences: one pass over the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stabdiag.batches.features import Features
from stabdiag.batches.indices import MOST_SEQUENCES, WHOLE, BatchIds, Indices
from stabdiag.batches.order import Drawing, Places
from stabdiag.batches.sources import Corpus
from stabdiag.batches.sources.folder import PARAGRAPHS, TEXT_LINES
from stabdiag.batches.sources.records import BATCH_IDS, IDS
from stabdiag.batches.sources.samples import Sample, Scan, Wanted
from stabdiag.errors import InputError, UsageError

_SHOWN = 3  # ids named in an error


@dataclass(frozen=True)
class Retrieved:
    """The sequences of each batch that the corpus holds, in the order of its ids.

    `names` [B] are what they are called, `understood` says what an id was taken for.
    """

    steps: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    batches: tuple[tuple[Features, ...], ...]
    understood: str
    size: int
    notes: tuple[str, ...]


def id_fields(indices: Indices, asked: str | None) -> tuple[str, ...]:
    """The fields of a record that may hold what the log's ids name; "none" asks for places."""
    if asked is not None:
        return () if asked == "none" else (asked,)
    if indices.means == "batch":
        return BATCH_IDS
    return IDS if indices.means == "ids" else ()


def retrieve(
    corpus: Corpus,
    indices: Indices,
    wanted: Sequence[BatchIds],
    take: Callable[[Sample], Features],
    *,
    asked_field: str | None,
    drawing: Drawing,
) -> Retrieved:
    """Find the sequences of some batches.

    Raises:
        InputError: an id is not in the corpus, or it could be a place as well as a name.
        UsageError: the order can't be remade.
    """
    if drawing.order != "sequential" and indices.means != "places":
        raise UsageError(
            f"--order {drawing.order} is for counted samples; here {indices.described}",
            "Leave it out.",
        )
    fields = id_fields(indices, asked_field)
    corpus = replace(corpus, options=replace(corpus.options, id_fields=fields))
    cut = [replace(b, ids=b.ids[:MOST_SEQUENCES], shards=b.shards[:MOST_SEQUENCES]) for b in wanted]
    notes = tuple(
        f"step {full.step}: the first {MOST_SEQUENCES:,} of {len(full.ids):,} or more sequences"
        for full in wanted
        if len(full.ids) > MOST_SEQUENCES
    )
    if any(one.shards for one in cut):
        return _from_shards(corpus, cut, take, notes)
    if indices.means == "places":
        cut, said = _in_order(corpus, cut, drawing)
        notes += said
    by_place = asked_field in (None, "none") and indices.means != "batch"
    ids = {name for one in cut for name in one.ids}
    places = sorted({int(name) for name in ids if by_place and WHOLE.fullmatch(name)})
    names = frozenset(ids) if fields else frozenset()
    found, _ = corpus.find(Wanted(tuple(places), names), take)
    if indices.means == "batch" or asked_field not in (None, "none"):
        return _by_name(corpus, indices, cut, found, fields, notes)
    return _by_either(corpus, cut, found, notes)


def _in_order(
    corpus: Corpus, wanted: Sequence[BatchIds], drawing: Drawing
) -> tuple[list[BatchIds], tuple[str, ...]]:
    """The ids as places, where they count the samples that a loader drew; what was assumed."""
    places = Places(drawing, corpus.size)
    found = places.of([[int(name) for name in one.ids] for one in wanted])
    own = [replace(one, ids=tuple(map(str, each))) for one, each in zip(wanted, found, strict=True)]
    return own, places.assumed


def _from_shards(
    corpus: Corpus,
    wanted: Sequence[BatchIds],
    take: Callable[[Sample], Features],
    notes: tuple[str, ...],
) -> Retrieved:
    keys = {
        (shard, int(name))
        for one in wanted
        for shard, name in zip(one.shards, one.ids, strict=True)
        if WHOLE.fullmatch(name)
    }
    found, local = corpus.find(Wanted(), take, sorted(keys))
    named = {f"{shard}:{place}": features for (shard, place), features in local.items()}
    full = [
        replace(one, ids=tuple(f"{s}:{n}" for s, n in zip(one.shards, one.ids, strict=True)))
        for one in wanted
    ]

    def lost(names: Sequence[str], step: int) -> InputError:
        return InputError(
            f"{corpus.name}: sample {names[0]} (shard:place, step {step}) is not in the corpus",
            "Name the corpus that the run read, with --data.",
        )

    said = "an id is a place in its shard, from 0"
    return _gathered(
        full, lambda name: [named[name]] if name in named else [], lost, said, found, notes
    )


def _by_name(
    corpus: Corpus,
    indices: Indices,
    wanted: Sequence[BatchIds],
    found: Scan[Features],
    fields: Sequence[str],
    notes: tuple[str, ...],
) -> Retrieved:
    """Every id is the value of a field; a batch's id may be that of many records."""
    whole = indices.means == "batch"

    def lost(names: Sequence[str], step: int) -> InputError:
        what, todo = "sample", "Name the field with --id-field NAME, or --id-field none for places."
        if whole:
            what = "batch"
            todo = "Give --batch-size N where batches are read in order, or --index FILE."
        return InputError(
            f"{corpus.name}: no record of {what} {_few(names)} of step {step} in field "
            f"{' or '.join(fields)}",
            todo,
        )

    def records(name: str) -> list[Features]:
        own = [features for _, features in found.by_name.get(name, ())]
        return own[:MOST_SEQUENCES] if whole else own[:1]

    said = f"an id is the value of field {' or '.join(fields)}"
    twice = 0 if whole else sum(len(own) > 1 for own in found.by_name.values())
    if twice:
        notes += (f"{twice} ids stand for several records; the first is taken",)
    return _gathered(wanted, records, lost, said, found, notes)


def _by_either(
    corpus: Corpus, wanted: Sequence[BatchIds], found: Scan[Features], notes: tuple[str, ...]
) -> Retrieved:
    """Ids that are places, or names, whichever the corpus has all of the first batch as.

    Raises:
        InputError: it has them all as both, for other samples; or neither.
    """

    def place(name: str) -> int | None:
        known = WHOLE.fullmatch(name) is not None and int(name) in found.by_place
        return int(name) if known else None

    own = wanted[0].ids
    named = all(name in found.by_name for name in own)
    placed = all(place(name) is not None for name in own)
    if named and placed and any(found.by_name[name][0][0] != int(name) for name in own):
        raise InputError(
            f"{corpus.name}: the ids could be places or the records' own ids, and these are "
            "other samples",
            "Say which: --id-field none for places, or --id-field NAME.",
        )

    def lost(names: Sequence[str], step: int) -> InputError:
        beyond = all(WHOLE.fullmatch(name) for name in names)
        what = (
            f"beyond its {found.size:,} samples" if beyond else "neither places nor ids of records"
        )
        todo = "Name the corpus that the run read, or the field of the ids with --id-field NAME."
        if corpus.kind in (TEXT_LINES, PARAGRAPHS):
            other = "lines" if corpus.kind == PARAGRAPHS else "blank"
            todo = (
                f"A sample was taken to be {corpus.kind.sample}: say --documents {other} where it "
                "is not, or name the corpus that the run read."
            )
        return InputError(f"{corpus.name}: sample {_few(names)} (step {step}): {what}", todo)

    if named and not placed:
        said = "an id is a record's own id"
        return _gathered(
            wanted, lambda n: [f for _, f in found.by_name.get(n, ())][:1], lost, said, found, notes
        )
    said = "an id is a place in the corpus, from 0"
    by_place = found.by_place
    return _gathered(
        wanted,
        lambda n: [by_place[p]] if (p := place(n)) is not None else [],
        lost,
        said,
        found,
        notes,
    )


def _gathered(
    wanted: Sequence[BatchIds],
    samples: Callable[[str], list[Features]],
    lost: Callable[[Sequence[str], int], InputError],
    understood: str,
    found: Scan[Features],
    notes: tuple[str, ...],
) -> Retrieved:
    """The batches with the samples of their ids; one to compare with may be missing, the first not.

    Raises:
        InputError: an id of the first batch has no sample: what `lost` makes of these ids.
    """
    steps: list[int] = []
    names: list[tuple[str, ...]] = []
    batches: list[tuple[Features, ...]] = []
    gone: list[int] = []
    for one in wanted:
        own = [(name, samples(name)) for name in one.ids]
        missing = [name for name, records in own if not records]
        if missing and not steps:
            raise lost(missing, one.step)
        if missing:
            gone.append(one.step)
            continue
        steps.append(one.step)
        batches.append(tuple(record for _, records in own for record in records))
        names.append(
            tuple(
                name if len(records) == 1 else f"{name}[{place}]"
                for name, records in own
                for place in range(len(records))
            )
        )
    if gone:
        said = f"ordinary batches of steps {', '.join(map(str, gone))} left out: not in the corpus"
        notes += (said,)
    return Retrieved(tuple(steps), tuple(names), tuple(batches), understood, found.size, notes)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
