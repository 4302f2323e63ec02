"""Token files, mapped into memory: .npy, flat .bin (nanoGPT, llm.c), Megatron .bin with .idx."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np

from stabdiag.batches.sources.samples import CorpusOptions, Sample, Scan, Shard
from stabdiag.errors import InputError, UsageError

T = TypeVar("T")
# llm.c: a header of 256 int32 begins with its magic number (`dev/data/data_common.py`).
_LLM_C = {20240520: "uint16", 20240801: "uint32"}
_LLM_C_HEADER = 1024
# Megatron-LM `megatron/core/datasets/indexed_dataset.py`: the magic, then the codes of types.
_MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
_MEGATRON_TYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}
_DTYPES = ("uint8", "uint16", "uint32", "int32", "int64")
_LOOKED_AT = 4096  # tokens that tell uint16 from uint32
_ZEROS = 0.99


@dataclass(frozen=True)
class Flat:
    """Tokens one after another, shape [N], with how the file was read."""

    tokens: Any
    dtype: str


def scan_npy(shard: Shard[T]) -> Scan[T]:
    """Look through a .npy file: rows of [N, T], or blocks of [N] tokens.

    Raises:
        InputError: it is damaged or holds no whole numbers.
    """
    array = mapped_array(shard.path)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
        shape = "x".join(map(str, array.shape))
        raise InputError(
            f"{shard.path}: {array.dtype} of shape {shape or '()'}, not token ids",
            "Save the token ids as integers of shape [N] or [N, T].",
        )
    if array.ndim == 2:
        return _scan(shard, len(array), lambda place: array[place])
    return _scan_flat(shard, array)


def mapped_array(path: Path) -> Any:
    """The array of a .npy file, mapped into memory.

    Raises:
        InputError: it is damaged, or holds objects.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 are read with a remark
            return np.load(path, mmap_mode="r", allow_pickle=False)
    # a damaged header is a Python literal that does not parse, or that means no array
    except (
        ValueError,
        TypeError,
        OSError,
        EOFError,
        SyntaxError,
        TokenError,
        OverflowError,
    ) as err:
        raise InputError(
            f"{path}: not a readable .npy file of numbers: {str(err).partition(chr(10))[0][:200]}",
            "Save the ids as an array of integers.",
        ) from err


def scan_bin(shard: Shard[T]) -> Scan[T]:
    """Look through a flat token file in blocks.

    Raises:
        InputError: its size does not fit its type.
    """
    return _scan_flat(shard, flat_tokens(shard.path, shard.options).tokens)


def scan_megatron(shard: Shard[T]) -> Scan[T]:
    """Look through a Megatron .bin by its .idx: a sample is a document as it was tokenized.

    Raises:
        InputError: the index is damaged or reaches beyond the tokens.
    """
    index = shard.path.with_suffix(".idx")
    with index.open("rb") as file:
        head = file.read(len(_MEGATRON_MAGIC) + 25)
    if not head.startswith(_MEGATRON_MAGIC) or len(head) < len(_MEGATRON_MAGIC) + 25:
        raise InputError(f"{index}: not a Megatron index", "Move it away, or copy it again.")
    _, code, count, _ = struct.unpack_from("<QBQQ", head, len(_MEGATRON_MAGIC))
    dtype = _MEGATRON_TYPES.get(code)
    begin = len(_MEGATRON_MAGIC) + 25
    if dtype is None or index.stat().st_size < begin + 12 * count:
        raise InputError(f"{index}: cut short, or of an unknown type ({code})", "Copy it again.")
    lengths = np.memmap(index, "<i4", "r", begin, (count,)) if count else np.zeros(0, np.int32)
    starts = (
        np.memmap(index, "<i8", "r", begin + 4 * count, (count,)) if count else np.zeros(0, int)
    )
    kind = np.dtype(dtype)
    tokens = _mapped(shard.path, dtype, 0)

    def document(place: int) -> Any:
        first = int(starts[place]) // kind.itemsize
        stop = first + int(lengths[place])
        if not 0 <= first <= stop <= len(tokens):
            raise InputError(
                f"{index}: document {place} lies beyond {shard.path.name}", "Copy both files again."
            )
        return tokens[first:stop]

    return _scan(shard, int(count), document)


def flat_tokens(path: Path, options: CorpusOptions) -> Flat:
    """The tokens of a flat .bin file; the type is the option's, the header's, or told by zeros.

    Raises:
        InputError: the file's size is no multiple of the type's.
        UsageError: the option names no type of tokens.
    """
    if options.dtype is not None and options.dtype not in _DTYPES:
        raise UsageError(
            f"--dtype is {options.dtype!r}, which is none of {', '.join(_DTYPES)}",
            "nanoGPT writes uint16.",
        )
    with path.open("rb") as file:
        head = file.read(4 * _LOOKED_AT)
    magic = _LLM_C.get(int.from_bytes(head[:4], "little"))
    if magic is not None and len(head) >= _LLM_C_HEADER:
        dtype = options.dtype or magic
        return Flat(_mapped(path, dtype, _LLM_C_HEADER), dtype)
    dtype = options.dtype or _told(head)
    return Flat(_mapped(path, dtype, 0), dtype)


def _told(head: bytes) -> str:
    """uint32 where the upper half of nearly every 32 bits is zero, else uint16."""
    halves = np.frombuffer(head[: len(head) // 4 * 4], dtype="<u2")
    upper, lower = halves[1::2], halves[::2]
    wide = upper.size > 0 and np.mean(upper == 0) > _ZEROS and np.mean(lower == 0) < 1 - _ZEROS
    return "uint32" if wide else "uint16"


def _mapped(path: Path, dtype: str, offset: int) -> Any:
    kind = np.dtype(dtype).newbyteorder("<")
    size = path.stat().st_size - offset
    if size % kind.itemsize:
        raise InputError(
            f"{path}: {size} bytes are no whole number of {dtype} tokens",
            f"Name its type with --dtype: {', '.join(_DTYPES)}.",
        )
    return np.memmap(path, kind, "r", offset) if size else np.zeros(0, dtype=kind)


def _scan_flat(shard: Shard[T], tokens: Any) -> Scan[T]:
    """Blocks of `block_size` tokens, counted from 0, or beginning at any token."""
    block = shard.options.block_size
    if block is None:
        raise UsageError(
            f"{shard.path}: {len(tokens):,} tokens one after another; how many make a sample?",
            "Give the length of a sequence with --block-size N.",
        )
    if shard.options.token_offsets:
        return _scan(shard, max(0, len(tokens) - block + 1), lambda p: tokens[p : p + block])
    return _scan(shard, len(tokens) // block, lambda p: tokens[p * block : (p + 1) * block])


def _scan(shard: Shard[T], size: int, tokens_at: Callable[[int], Any]) -> Scan[T]:
    found: Scan[T] = Scan(size=size)
    for place in shard.wanted.within(shard.first, shard.first + size):
        tokens = np.asarray(tokens_at(place - shard.first)).astype(np.int64)
        found.add(place, shard.take(Sample(tokens=tokens)), placed=True, name=None)
    return found
