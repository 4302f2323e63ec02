"""A corpus: one file, or the shards of a folder counted on in the order of their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from stabdiag.batches.sources.lines import (
    documents_of,
    scan_json_lines,
    scan_text_lines,
    scan_text_paragraphs,
)
from stabdiag.batches.sources.samples import CorpusOptions, Kind, Sample, Scan, Shard, Wanted
from stabdiag.batches.sources.tables import scan_csv, scan_parquet
from stabdiag.batches.sources.tokens import (
    flat_tokens,
    mapped_array,
    scan_bin,
    scan_megatron,
    scan_npy,
)
from stabdiag.errors import InputError
from stabdiag.readers.source import open_source, unpacked

T = TypeVar("T")
_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")
Local = tuple[str, int]  # a shard as the log names it, and the place in it


@dataclass(frozen=True)
class Corpus:
    """Files of one kind, in the order in which their samples are counted."""

    name: str
    files: tuple[Path, ...]
    kind: Kind
    options: CorpusOptions

    def find(
        self,
        wanted: Wanted,
        take: Callable[[Sample], T],
        local: Sequence[Local] = (),
    ) -> tuple[Scan[T], Mapping[Local, T]]:
        """One pass over the files: what was wanted by place or name, and by shard and place in it.

        Raises:
            InputError: a file can't be read, or the log names a shard that is not there.
        """
        found: Scan[T] = Scan()
        in_shards: dict[Local, T] = {}
        shards = {shard: self._shard(shard) for shard, _ in local}
        for number, path in enumerate(self.files):
            own = {key: found.size + key[1] for key in local if shards[key[0]] == number}
            places = tuple(sorted({*wanted.places, *own.values()}))
            part = self.kind.scan(
                Shard(path, found.size, Wanted(places, wanted.names), self.options, take)
            )
            in_shards |= {
                key: part.by_place[place] for key, place in own.items() if place in part.by_place
            }
            found.by_place |= part.by_place
            for name, samples in part.by_name.items():
                found.by_name.setdefault(name, []).extend(samples)
            found.size += part.size
        return found, in_shards

    def size(self) -> int:
        """Number of samples."""
        return self.find(Wanted(), lambda sample: None)[0].size

    def _shard(self, shard: str) -> int:
        """The file that the log calls `shard`: by name, by the number in its name, or by order."""
        for number, path in enumerate(self.files):
            if shard in (path.name, _stem(path), str(path)):
                return number
        if shard.isdecimal():
            numbers = [_LAST_NUMBER.search(_stem(path)) for path in self.files]
            named = [
                place for place, hit in enumerate(numbers) if hit and int(hit[1]) == int(shard)
            ]
            if len(named) == 1:
                return named[0]
            if not any(numbers) and int(shard) < len(self.files):
                return int(shard)
        raise InputError(
            f"{self.name}: the log names shard {shard!r}, and no file of the corpus is called so",
            f"Its files are {', '.join(path.name for path in self.files[:6])}.",
        )


JSON_LINES = Kind("JSON Lines", "a line", scan_json_lines)
TEXT_LINES = Kind("plain text", "a line", scan_text_lines)
PARAGRAPHS = Kind("plain text", "a document between blank lines", scan_text_paragraphs)
PARQUET = Kind("Parquet", "a row", scan_parquet)
CSV = Kind("CSV", "a row", scan_csv)
MEGATRON = Kind(
    "Megatron tokens (.bin, .idx)",
    "a document as it was tokenized, not one of Megatron's packed samples",
    scan_megatron,
)


def open_corpus(path: Path, options: CorpusOptions) -> Corpus:
    """Find out what kind of corpus a file or folder is.

    Raises:
        InputError: there is none, or it is of no kind that can be read.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder", "Check the path given with --data.")
    files = _files(path) if path.is_dir() else (path,)
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty", "Name the corpus that the run read.")
    return Corpus(str(path), files, _kind(files[0], options), options)


def _files(folder: Path) -> tuple[Path, ...]:
    """The shards of a folder: its files of the suffix that most have, in order of their names."""
    files = [
        one
        for one in folder.iterdir()
        if one.is_file()
        and one.stat().st_size
        and one.name[0] not in "._"
        and one.suffix not in (".idx", ".md", ".lock")
    ]
    suffixes = Counter(_suffix(one) for one in files)
    data = [suffix for suffix in suffixes if suffix != ".json"] or list(suffixes)
    if not data:
        raise InputError(
            f"{folder}: no file with anything in it in this folder",
            "Name the folder of the shards.",
        )
    if len(data) > 1:
        raise InputError(
            f"{folder}: files of several kinds: {', '.join(sorted(data))}",
            "Name one file, or a folder with the shards alone.",
        )
    return tuple(sorted((one for one in files if _suffix(one) == data[0]), key=_natural))


def _natural(path: Path) -> tuple[object, ...]:
    """The order of names with the numbers in them counted: shard 10 after shard 9."""
    parts = re.split(r"(\d+)", path.name)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts))


def _suffix(path: Path) -> str:
    return Path(unpacked(path.name.lower())).suffix


def _stem(path: Path) -> str:
    return unpacked(path.name).rsplit(".", 1)[0]


def _kind(path: Path, options: CorpusOptions) -> Kind:
    """The kind of a file, by its first bytes, then by its suffix."""
    with path.open("rb") as file:
        head = file.read(8)
    suffix = _suffix(path)
    if head.startswith(b"PAR1"):
        return PARQUET
    block = f"{options.block_size} tokens" if options.block_size else "tokens"
    flat = f"{block} from any token on" if options.token_offsets else f"a block of {block}"
    if head.startswith(b"\x93NUMPY"):
        array = mapped_array(path)
        name = f"token array ({array.dtype})"
        return Kind(name, "a row" if array.ndim == 2 else flat, scan_npy)
    if suffix == ".bin":
        if path.with_suffix(".idx").exists():
            return MEGATRON
        return Kind(f"tokens ({flat_tokens(path, options).dtype})", flat, scan_bin)
    return _text_kind(path, suffix, options)


def _text_kind(path: Path, suffix: str, options: CorpusOptions) -> Kind:
    source = open_source(path)
    start = source.head.lstrip()[:1]
    if suffix in (".csv", ".tsv"):
        return CSV
    if start == b"[" and suffix in (".json", ".jsonl"):
        raise InputError(
            f"{path}: one JSON array, which can't be read piece by piece",
            "Write one record a line (JSON Lines), or Parquet.",
        )
    if b"\0" in source.head[:4096] and source.encoding == "utf-8":
        raise InputError(
            f"{path}: neither text nor a kind of corpus that is known",
            "Give JSON Lines, Parquet, CSV, text, .npy, or a .bin of tokens.",
        )
    if start == b"{" or suffix in (".jsonl", ".ndjson"):
        return JSON_LINES
    split = options.documents or documents_of(source)
    return PARAGRAPHS if split == "blank" else TEXT_LINES
