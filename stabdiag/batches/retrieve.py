"""From the ids of some batches to their sequences: one pass over the corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stabdiag.batches.features import Features
from stabdiag.batches.indices import MOST_SEQUENCES, BatchIds, Indices
from stabdiag.batches.order import places_drawn
from stabdiag.batches.sources import Corpus
from stabdiag.batches.sources.records import BATCH_IDS, IDS
from stabdiag.batches.sources.samples import Sample, Scan, Wanted
from stabdiag.errors import InputError

_WHOLE = re.compile(r"\d{1,18}")
_SHOWN = 3  # ids named in an error


@dataclass(frozen=True)
class Retrieved:
    """The sequences of each batch, in the order of its ids.

    `names` [B] are what they are called, `understood` says what an id was taken for.
    """

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
    order: str,
    seed: int,
) -> Retrieved:
    """Find the sequences of some batches.

    Raises:
        InputError: an id is not in the corpus, or it could be a place as well as a name.
        UsageError: the order can't be remade.
    """
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
        cut = _in_order(corpus, cut, order, seed)
    by_place = asked_field in (None, "none") and indices.means != "batch"
    ids = {name for one in cut for name in one.ids}
    places = sorted({int(name) for name in ids if by_place and _WHOLE.fullmatch(name)})
    names = frozenset(ids) if fields else frozenset()
    found, _ = corpus.find(Wanted(tuple(places), names), take)
    if indices.means == "batch" or asked_field not in (None, "none"):
        return _by_name(corpus, indices, cut, found, fields, notes)
    return _by_either(corpus, cut, found, ids, notes)


def _in_order(corpus: Corpus, wanted: Sequence[BatchIds], order: str, seed: int) -> list[BatchIds]:
    """The ids as places, where they count the samples that a loader drew."""
    return [
        replace(
            one,
            ids=tuple(map(str, places_drawn([int(i) for i in one.ids], order, seed, corpus.size))),
        )
        for one in wanted
    ]


def _from_shards(
    corpus: Corpus,
    wanted: Sequence[BatchIds],
    take: Callable[[Sample], Features],
    notes: tuple[str, ...],
) -> Retrieved:
    keys = [
        (shard, int(name))
        for one in wanted
        for shard, name in zip(one.shards, one.ids, strict=True)
        if _WHOLE.fullmatch(name)
    ]
    found, local = corpus.find(Wanted(), take, sorted(set(keys)))
    names, batches = [], []
    for one in wanted:
        own = []
        for shard, name in zip(one.shards, one.ids, strict=True):
            key = (shard, int(name) if _WHOLE.fullmatch(name) else -1)
            if key not in local:
                raise InputError(
                    f"{corpus.name}: step {one.step} names sample {name} of shard {shard!r}, "
                    "which that shard does not hold",
                    "Name the corpus that the run read, with --data.",
                )
            own.append(local[key])
        batches.append(tuple(own))
        names.append(tuple(f"{s}:{n}" for s, n in zip(one.shards, one.ids, strict=True)))
    return Retrieved(
        tuple(names), tuple(batches), "an id is a place in its shard, from 0", found.size, notes
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
    names, batches = [], []
    whole = indices.means == "batch"
    for one in wanted:
        lost = [name for name in one.ids if name not in found.by_name]
        if lost:
            what = "batch" if whole else "sample"
            todo = (
                "Give --batch-size N where batches are read in order, or --index FILE."
                if whole
                else "Name the field with --id-field NAME, or --id-field none for places."
            )
            raise InputError(
                f"{corpus.name}: no record of {what} {', '.join(lost[:_SHOWN])} of step {one.step} "
                f"in field {' or '.join(fields)}",
                todo,
            )
        own = [sample for name in one.ids for sample in found.by_name[name]]
        own = own[:MOST_SEQUENCES] if whole else [found.by_name[name][0] for name in one.ids]
        batches.append(tuple(features for _, features in own))
        numbered = [f"{one.ids[0]}[{i}]" for i in range(len(own))] if whole else one.ids
        names.append(tuple(numbered))
    said = f"an id is the value of field {' or '.join(fields)}"
    twice = sum(len(found.by_name[n]) > 1 for one in wanted for n in one.ids) if not whole else 0
    more = (f"{twice} ids stand for several records; the first is taken",) if twice else ()
    return Retrieved(tuple(names), tuple(batches), said, found.size, notes + more)


def _by_either(
    corpus: Corpus,
    wanted: Sequence[BatchIds],
    found: Scan[Features],
    ids: set[str],
    notes: tuple[str, ...],
) -> Retrieved:
    """Ids that are places, or names, whichever the corpus has all of.

    Raises:
        InputError: it has them all as both, for other samples; or neither.
    """
    named = all(name in found.by_name for name in ids)
    placed = all(_WHOLE.fullmatch(name) and int(name) in found.by_place for name in ids)
    if named and placed:
        if any(found.by_name[name][0][0] != int(name) for name in ids):
            raise InputError(
                f"{corpus.name}: the ids could be places or the records' own ids, and these are "
                "other samples",
                "Say which: --id-field none for places, or --id-field NAME.",
            )
        named = False
    if not named and not placed:
        raise _lost(corpus, wanted, found, ids)
    if placed:
        said = "an id is a place in the corpus, from 0"
        batches = tuple(tuple(found.by_place[int(n)] for n in one.ids) for one in wanted)
    else:
        said = "an id is a record's own id"
        batches = tuple(tuple(found.by_name[n][0][1] for n in one.ids) for one in wanted)
    return Retrieved(tuple(one.ids for one in wanted), batches, said, found.size, notes)


def _lost(
    corpus: Corpus, wanted: Sequence[BatchIds], found: Scan[Features], ids: set[str]
) -> InputError:
    lost = {
        name
        for name in ids
        if name not in found.by_name
        and not (_WHOLE.fullmatch(name) and int(name) in found.by_place)
    } or {name for name in ids if name not in found.by_name}
    step = next(one.step for one in wanted if lost & set(one.ids))
    first = ", ".join([name for one in wanted for name in one.ids if name in lost][:_SHOWN])
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    beyond = all(_WHOLE.fullmatch(name) for name in lost)
    what = f"beyond its {found.size:,} samples" if beyond else "neither places nor ids of records"
    return InputError(
        f"{corpus.name}: sample {first}{more} (step {step}): {what}",
        "Name the corpus that the run read, or the field of the ids with --id-field NAME.",
    )
