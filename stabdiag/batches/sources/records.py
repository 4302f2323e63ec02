"""Records of a corpus: which field is the text, the tokens, the targets, the id."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stabdiag.batches.sources.samples import CorpusOptions, Record, Sample
from stabdiag.errors import InputError
from stabdiag.model import EXACT, I64

# In order of preference; names that corpora and tokenized data sets use for the same thing.
TOKENS = ("input_ids", "tokens", "token_ids")
TEXTS = ("text", "content", "document", "body", "raw_content", "code", "completion")
PAIRS = (("prompt", "completion"), ("instruction", "output"), ("question", "answer"))
CHATS = ("messages", "conversations", "conversation")
TARGETS = ("labels", "targets", "target_ids")
MASKS = ("attention_mask", "loss_mask")
IDS = (
    *("id", "sample_id", "doc_id", "document_id", "example_id", "data_index", "index", "idx"),
    *("uid", "uuid", "_id"),
)
BATCH_IDS = ("batch_id", "batch_idx", "batch")
_KNOWN = frozenset((*TOKENS, *TEXTS, *sum(PAIRS, ()), *CHATS, *TARGETS, *MASKS))


def columns_wanted(names: Iterable[str], options: CorpusOptions) -> list[str]:
    """The columns of a table that a sample is made of, in the table's order."""
    wanted = _KNOWN | {options.field, *options.id_fields}
    return [name for name in names if name in wanted]


def names_of(record: Record, options: CorpusOptions) -> list[str]:
    """The ids that a record goes by, as text."""
    return [t for name in options.id_fields if (t := id_text(record.get(name))) is not None]


def id_text(value: Any) -> str | None:
    """An id as text: a whole number without a decimal point; None where it is no id."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value.is_integer() else repr(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None


def sample_of(record: Record, where: str, options: CorpusOptions) -> Sample:
    """The sample that a record holds.

    Raises:
        InputError: it has no field of text or tokens; `where` names the file and its place.
    """
    if options.field is not None:
        if options.field not in record:
            raise _no_field(record, where, f"no field {options.field!r}")
        return _of_field(record, options.field, where)
    for name in TOKENS:
        if record.get(name) is not None:
            return _of_field(record, name, where)
    text = _text(record)
    if text is None:
        raise _no_field(record, where, "no field of text or tokens that is known by its name")
    return Sample(text=text)


def _text(record: Record) -> str | None:
    for first, second in PAIRS:
        if isinstance(record.get(first), str) and isinstance(record.get(second), str):
            return f"{record[first]}\n{record[second]}"
    for name in TEXTS:
        if isinstance(record.get(name), (str, bytes)):
            return _decoded(record[name])
        if name in record and record[name] is None:
            return ""
    for name in CHATS:
        if isinstance(record.get(name), list):
            return "\n".join(_turn(turn) for turn in record[name])
    return None


def _turn(turn: Any) -> str:
    if isinstance(turn, Mapping):
        said = turn.get("content", turn.get("value"))
        return said if isinstance(said, str) else ""
    return turn if isinstance(turn, str) else ""


def _of_field(record: Record, name: str, where: str) -> Sample:
    value = record[name]
    if value is None:
        return Sample(text="")
    if isinstance(value, (str, bytes)):
        return Sample(text=_decoded(value))
    targets = next((n for n in TARGETS if isinstance(record.get(n), (list, np.ndarray))), None)
    mask = next((n for n in MASKS if isinstance(record.get(n), (list, np.ndarray))), None)
    return Sample(
        tokens=_whole(value, f"{where}, field {name!r}"),
        targets=_whole(record[targets], f"{where}, field {targets!r}") if targets else None,
        real=_whole(record[mask], f"{where}, field {mask!r}") if mask else None,
    )


def _decoded(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _whole(values: Any, where: str) -> I64:
    """A list of whole numbers as int64 [n]."""
    try:
        array = np.asarray(values if len(values) else np.zeros(0, dtype=np.int64))
    except (TypeError, ValueError) as err:
        raise _not_tokens(where) from err
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise _not_tokens(where)
    if array.dtype.kind == "f":
        usable = np.isfinite(array) & (np.abs(array) < EXACT)
        if not (usable.all() and (array == np.floor(array)).all()):
            raise _not_tokens(where)
    return array.astype(np.int64)


def _not_tokens(where: str) -> InputError:
    return InputError(
        f"{where}: neither text nor a list of token ids", "Name another field with --field NAME."
    )


def _no_field(record: Record, where: str, what: str) -> InputError:
    fields = ", ".join(map(repr, list(record)[:12])) or "none"
    return InputError(
        f"{where}: {what}; it has {fields}", "Name the field of text or tokens with --field NAME."
    )
