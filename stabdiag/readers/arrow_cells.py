"""Arrow columns of any type to cells: structs taken apart, times in seconds, words as they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from stabdiag.readers.arrays import (
    as_float64,
    float_array,
    float_values,
    is_rounded,
    text_array,
    valid_mask,
)
from stabdiag.readers.kinds import Cells
from stabdiag.readers.lists import MixedLists, list_cell

_SECOND = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DAY = 86400.0


def leaf_cells(name: str, array: pa.Array) -> dict[str, Cells]:
    """Take a column apart into cells by name; the parts of a struct are called "name/part".

    Numbers come back as float64 (null: missing, NaN: logged), dates and times as seconds, text and
    lists as they are. What holds no metric (maps, unions) is left out.
    """
    if pt.is_struct(array.type):
        parts: dict[str, Cells] = {}
        for field, part in zip(array.type, array.flatten(), strict=True):
            parts |= leaf_cells(f"{name}/{field.name}", part)
        return parts
    cells = _cells(array)
    return {} if cells is None else {name: cells}


def _cells(array: pa.Array) -> Cells | None:
    kind = array.type
    if pt.is_dictionary(kind):
        try:
            return _cells(array.dictionary_decode())
        except pa.ArrowNotImplementedError:  # words as views, which Polars writes
            words = array.dictionary.cast(pa.large_string())
            return _cells(pa.DictionaryArray.from_arrays(array.indices, words).dictionary_decode())
    if pt.is_float64(kind):
        return array
    if pt.is_boolean(kind):
        return array.cast(pa.uint8()).cast(pa.float64())
    if pt.is_integer(kind) or pt.is_floating(kind):
        return array if is_rounded(array) else as_float64(array)
    if pt.is_null(kind):
        return array.cast(pa.float64(), safe=False)
    if pt.is_decimal(kind):
        return array.cast(pa.float64())
    if pt.is_temporal(kind):
        return _seconds(array)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _lists(array)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        words = [None if v is None else v.decode(errors="replace") for v in array.to_pylist()]
        return text_array(words)
    try:
        return array.cast(pa.large_string())  # the text types
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _seconds(array: pa.Array) -> pa.Array | None:
    kind = array.type
    if pt.is_date32(kind):
        unit = _DAY
        whole = array.cast(pa.int32())
    elif pt.is_interval(kind):
        return None
    else:
        unit = 1e-3 if pt.is_date64(kind) else _SECOND[kind.unit]
        whole = array.cast(pa.int32() if pt.is_time32(kind) else pa.int64())
    return float_array(float_values(whole.cast(pa.float64(), safe=False)) * unit, valid_mask(array))


def _lists(array: pa.Array) -> Cells:
    element = array.type.value_type
    if pt.is_string(element) or pt.is_large_string(element) or pt.is_float64(element):
        return array
    return MixedLists(tuple(None if v is None else list_cell(v) for v in array.to_pylist()))
