"""Decimals as ``Bytes.toBytes(BigDecimal)`` writes them: the scale as four bytes, then the unscaled number."""

from __future__ import annotations

import decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.encoded_bytes import bytes_and_bounds, decimals_from_twos_complement
from binlake.hbase.rules.piecewise import ConvertedValues, Int64s, binary_array, piecewise

_SCALE_BYTES: Final = 4
#: Digits of Arrow's widest decimal. A scale that is further from the column's than this fits for zero alone.
_WIDEST: Final = 76
_CONTEXT: Final = decimal.Context(prec=100)


def decode_decimals(values: pa.Array, precision: int, scale: int) -> ConvertedValues:
    """Decimals in the column's scale; one that is not exact there, or has too many digits, is bad.

    Args:
        values: binary array of n without nulls.
        precision, scale: of the column, at most 38 digits.
    """
    data, bounds = bytes_and_bounds(values)
    bad = np.diff(bounds) <= _SCALE_BYTES
    long_enough = np.flatnonzero(~bad)
    heads = bounds[:-1][long_enough, None] + np.arange(_SCALE_BYTES)
    scales = np.ascontiguousarray(data[heads.ravel()]).view(">i4")
    kind = pa.decimal128(precision, scale)
    parts: list[pa.Array] = [pa.nulls(int(bad.sum()), kind)]
    places: list[Int64s] = [np.flatnonzero(bad)]
    for stored in np.unique(scales):
        same = long_enough[scales == stored]
        conversion = _of_one_scale(values.take(pa.array(same)), int(stored), kind)
        bad[same[conversion.bad]] = True
        parts.append(conversion.values)
        places.append(same)
    back = np.argsort(np.concatenate(places), kind="stable")
    return ConvertedValues(pa.concat_arrays(parts).take(pa.array(back)), bad)


def _of_one_scale(values: pa.Array, stored: int, kind: pa.DataType) -> ConvertedValues:
    def convert(part: pa.Array) -> pa.Array:
        if len(part) == 1:
            return pa.array([_exact(part[0].as_py(), stored, kind)], kind)
        return _at_once(part, stored, kind)

    return piecewise(convert, values, kind)


def _at_once(values: pa.Array, stored: int, kind: pa.DataType) -> pa.Array:
    """Null for a number that does not fit. Raises ValueError if one is longer than Arrow computes with."""
    shift = kind.scale - stored
    if abs(shift) > _WIDEST:
        raise ValueError(f"a scale of {stored}")
    data, bounds = bytes_and_bounds(values)
    kept = np.ones(len(data), dtype=bool)
    kept[(bounds[:-1, None] + np.arange(_SCALE_BYTES)).ravel()] = False
    unscaled = binary_array(data[kept], np.diff(bounds) - _SCALE_BYTES, np.ones(len(values), dtype=bool))
    numbers = decimals_from_twos_complement(unscaled, _WIDEST, max(0, -shift))
    numbers.validate(full=True)
    fits = pc.less(pc.abs(numbers), _power(kind.precision - max(0, shift), numbers.type))
    if shift < 0:
        fits = pc.and_(fits, pc.equal(pc.round(numbers), numbers))
    fitting = pc.if_else(fits, numbers, pa.scalar(None, numbers.type))
    shifted = fitting.cast(pa.decimal256(_WIDEST, max(0, shift)))
    in_scale = pa.Array.from_buffers(pa.decimal256(_WIDEST, kind.scale), len(values), shifted.buffers())
    return in_scale.cast(kind)


def _power(digits: int, kind: pa.DataType) -> pa.Scalar:
    """The least number of more than so many digits; if the type has none, its greatest number, which is not whole."""
    if max(0, digits) < _WIDEST - kind.scale:
        return pa.scalar(decimal.Decimal(10) ** max(0, digits), kind)
    return pa.scalar(decimal.Decimal("9" * _WIDEST).scaleb(-kind.scale, _CONTEXT), kind)


def _exact(value: bytes, stored: int, kind: pa.DataType) -> decimal.Decimal:
    """One decimal. Raises ValueError if the column cannot hold it."""
    unscaled = int.from_bytes(value[_SCALE_BYTES:], "big", signed=True)
    shift = kind.scale - stored if unscaled else 0
    if abs(shift) > _WIDEST:
        raise ValueError(f"a scale of {stored}")
    number, rest = (unscaled * 10**shift, 0) if shift >= 0 else divmod(unscaled, 10**-shift)
    if rest or abs(number) >= 10**kind.precision:
        raise ValueError("a decimal that its column cannot hold")
    return decimal.Decimal(number).scaleb(-kind.scale, _CONTEXT)
