"""Between numpy and Arrow by their buffers.

pyarrow's own `pa.array` and `to_numpy` import pandas where it is installed, which takes longer than
reading most logs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from stabdiag.model import EXACT, F64, I64, Mask


def float_array(value: F64, logged: Mask | None = None) -> pa.Array:
    """Return numbers as an Arrow array of float64; null where not logged."""
    validity = None if logged is None else _bits(logged)
    data = pa.py_buffer(np.ascontiguousarray(value, dtype=np.float64))
    return pa.Array.from_buffers(pa.float64(), len(value), [validity, data])


def as_float64(array: pa.Array) -> pa.Array:
    """Return whole numbers or floats of any width as float64; null where null.

    Arrow's own cast loads all of `pyarrow.compute`, a tenth of the time that a small log takes.
    """
    if pt.is_float64(array.type):
        return array
    data = array.buffers()[1]
    if data is None:
        return array.cast(pa.float64(), safe=False)
    end = array.offset + len(array)
    value = np.frombuffer(data, dtype=array.type.to_pandas_dtype(), count=end)[array.offset :]
    logged = valid_mask(array) if array.null_count else None
    return float_array(value.astype(np.float64), logged)


def is_rounded(array: pa.Array) -> bool:
    """Say whether float64 would round some of these whole numbers, which all fit in int64."""
    if not (pt.is_int64(array.type) or pt.is_uint64(array.type)):
        return False
    value = _filled(array)
    if not value.size:
        return False
    low, high = int(value.min()), int(value.max())
    return high < 2**63 and max(-low, high) > EXACT


def whole_values(array: pa.Array) -> I64:
    """Return whole numbers of 64 bits that fit in int64; 0 where null."""
    return _filled(array).astype(np.int64)


def whole_array(value: I64, logged: Mask | None = None) -> pa.Array:
    """Return whole numbers as an Arrow array of int64; null where not logged."""
    validity = None if logged is None else _bits(logged)
    data = pa.py_buffer(np.ascontiguousarray(value, dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), len(value), [validity, data])


def _filled(array: pa.Array) -> NDArray[np.int64] | NDArray[np.uint64]:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype=np.int64)
    end = array.offset + len(array)
    value = np.frombuffer(data, dtype=array.type.to_pandas_dtype(), count=end)[array.offset :]
    return np.where(valid_mask(array), value, 0) if array.null_count else value


def bool_array(mask: Mask) -> pa.Array:
    """Return a mask as an Arrow array."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def text_array(words: Sequence[str | None]) -> pa.Array:
    """Return words as an Arrow array of large strings; halves of surrogate pairs become "?"."""
    encoded = [b"" if word is None else word.encode("utf-8", "replace") for word in words]
    offsets = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in encoded], out=offsets[1:])
    validity = None
    if None in words:
        validity = _bits(np.array([word is not None for word in words], dtype=np.bool_))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(words), buffers)


def float_values(array: pa.Array) -> F64:
    """Return the numbers of an Arrow array of float64; NaN where null."""
    data = array.buffers()[1]
    if data is None:
        return np.full(len(array), np.nan)
    end = array.offset + len(array)
    value = np.frombuffer(data, dtype=np.float64, count=end)[array.offset :]
    return value if array.null_count == 0 else np.where(valid_mask(array), value, np.nan)


def valid_mask(array: pa.Array) -> Mask:
    """Return where an Arrow array is not null."""
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.bool_)
    if array.null_count == len(array):
        return np.zeros(len(array), dtype=np.bool_)
    return _mask(array.buffers()[0], array.offset, len(array))


def mask_values(array: pa.Array) -> Mask:
    """Return an Arrow array of booleans as a mask; False where null."""
    if not len(array):
        return np.zeros(0, dtype=np.bool_)
    return _mask(array.buffers()[1], array.offset, len(array)) & valid_mask(array)


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _mask(bits: pa.Buffer, offset: int, length: int) -> Mask:
    packed = np.frombuffer(bits, dtype=np.uint8)
    unpacked = np.unpackbits(packed, count=offset + length, bitorder="little")
    return unpacked[offset:].astype(np.bool_)
