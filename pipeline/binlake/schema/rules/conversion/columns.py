"""A whole column's values in another type, as a server converts them in MODIFY COLUMN.

The session's ``sql_mode`` is not in the log. It need not be: a strict session refuses a statement where a value does
not fit, so in a statement of the log either all values fit or the session was not strict and cut them. Fractions of
seconds may be others (``why_mode_decides``).

Measured against MariaDB 11.4, type by type (``tests/binlake/schema/test_conversions.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.decode.types.zero_dates import texts_of, zeros_in
from binlake.schema.rules.conversion.declared import TypeGroup, kind_of, zerofill_width
from binlake.schema.rules.conversion.moments import LAST_TIMESTAMP_S, SECOND, to_moment
from binlake.schema.rules.conversion.numbers import (
    INTEGERS,
    integer_range,
    number_of,
    place_of,
    to_bits,
    to_decimal,
    to_integer,
    to_real,
    to_year,
)
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.texts import text_of, to_bytes, to_choice, to_text
from binlake.schema.rules.conversion.undetermined import why_ambiguous, why_undetermined
from hudilake.errors import UnsupportedError

_LOCAL = pa.timestamp("us")
_TEXT = parse_type("longtext")
#: Characters of the longest whole number, with its sign.
_DIGITS = 20


def converted(old: MysqlType, new: MysqlType, values: pa.Array, session: Session) -> pa.Array:
    """The values of a column that was ``old`` and is ``new``: as many, of the new type's lake type. Null stays null,
    and a value without a known form becomes null (``why_ambiguous``).

    Raises UnsupportedError if the values are not determined (``why_undetermined``).
    """
    if (why := why_undetermined(old, new, session)) is not None:
        raise UnsupportedError(f"{old.text} becomes {new.text}: {why}", do_next="load the table again")
    if old.dates_as_text or new.dates_as_text:
        return _between_texts(old, new, values, session)
    quick = _in_bulk(old, new, values)
    if quick is not None:
        return quick
    coded = values.dictionary_encode()
    distinct = _read(old, coded.dictionary, session)
    store = _store(old, new, session)
    reals = kind_of(new) is TypeGroup.REAL
    unknown = (None, "") if why_ambiguous(old, new) is not None else (None,)
    stored = [None if value in unknown or (value != value and not reals) else store(value) for value in distinct]
    return _written(new, stored, session).take(coded.indices)


def _between_texts(old: MysqlType, new: MysqlType, values: pa.Array, session: Session) -> pa.Array:
    """``converted`` where the lake has the old dates, the new ones, or both as text."""
    former, later = replace(old, dates_as_text=False), replace(new, dates_as_text=False)
    zeros = zeros_in(values) if old.dates_as_text else None
    dates = values if zeros is None else pc.if_else(zeros, pa.scalar(None, pa.string()), values)
    if old.dates_as_text:
        dates = dates.cast(_LOCAL).cast(former.lake_type) if former.base != "date" else dates.cast(pa.date32())
    changed = converted(former, later, dates, session)
    changed = texts_of(changed) if new.dates_as_text else changed
    return changed if zeros is None else pc.if_else(zeros, _zero_texts(values, former, new), changed)


def _zero_texts(texts: pa.Array, former: MysqlType, new: MysqlType) -> pa.Array:
    """The texts of zero dates in another type, null for what is not known (``why_ambiguous``). Other texts: anything"""
    day = pc.utf8_slice_codeunits(texts, 0, 10)
    if new.base == former.base and (new.length or 0) >= (former.length or 0):
        return texts
    if new.dates_as_text and new.base == "date":
        return day
    return pa.nulls(len(texts), new.lake_type)


def _in_bulk(old: MysqlType, new: MysqlType, values: pa.Array) -> pa.Array | None:
    """The commonest conversions without a step for each value; None for all others."""
    if old == new and old.text.lower() == new.text.lower():
        return values
    if old.base in INTEGERS and new.base in INTEGERS and not pa.types.is_decimal(values.type):
        low, high = integer_range(new)
        cut = pc.min_element_wise(
            pc.max_element_wise(values.cast(pa.int64()), max(low, -(1 << 63)), skip_nulls=False),
            min(high, (1 << 63) - 1),
            skip_nulls=False,
        )
        return cut.cast(new.lake_type)
    if old.base in INTEGERS and new.base == "varchar" and zerofill_width(old) is None and (new.length or 0) >= _DIGITS:
        return values.cast(pa.string())
    return None


def _read(old: MysqlType, values: pa.Array, session: Session) -> list[Any]:
    if old.base == "timestamp":
        values = pc.local_timestamp(values.cast(pa.timestamp("us", tz=session.zone))).cast(pa.int64())
    elif old.base == "datetime":
        values = values.cast(pa.int64())
    elif old.base == "date":
        values = values.cast(pa.int32())
    python_values: list[Any] = values.to_pylist()
    return python_values


def _written(new: MysqlType, stored: list[Any], session: Session) -> pa.Array:
    kind = new.lake_type
    if new.base == "timestamp":
        local = pa.array(stored, pa.int64()).cast(_LOCAL)
        moments = pc.assume_timezone(local, session.zone, ambiguous="earliest", nonexistent="latest").cast(kind)
        return _in_range(moments)
    if new.base == "datetime":
        return pa.array(stored, pa.int64()).cast(kind)
    if new.base == "date":
        return pa.array(stored, pa.int32()).cast(kind)
    return pa.array(stored, kind)


def _in_range(moments: pa.Array) -> pa.Array:
    """TIMESTAMPs; of those that the type cannot hold only the fraction of the second stays (null without one)."""
    size = moments.cast(pa.int64())
    fits = pc.and_(pc.greater_equal(size, SECOND), pc.less(size, (LAST_TIMESTAMP_S + 1) * SECOND))
    fraction = pc.subtract(size, pc.multiply(pc.floor_temporal(moments, unit="second").cast(pa.int64()), 1))
    left = pc.if_else(pc.equal(fraction, 0), pa.scalar(None, pa.int64()), fraction)
    return pc.if_else(fits, size, left).cast(moments.type)


def _store(old: MysqlType, new: MysqlType, session: Session) -> Callable[[Any], Any]:
    def number(value: Any) -> Any:  # noqa: ANN401 - any lake value
        return number_of(old, value)

    if new.base in INTEGERS:
        return to_integer(new, old)
    if new.base in ("float", "double"):
        return to_real(new, old)
    if new.base == "decimal":
        return to_decimal(new, old)
    if new.base == "bit":
        return to_bits(new, old)
    if new.base == "year":
        return to_year(new, old)
    if kind_of(new) is TypeGroup.MOMENT and kind_of(old) is TypeGroup.REAL:
        read = to_moment(new, _TEXT, number, rounds=not session.mariadb, today=session.today)
        return lambda value: read(text_of(old, value))
    if kind_of(new) is TypeGroup.MOMENT:
        return to_moment(new, old, number, rounds=not session.mariadb, today=session.today)
    if kind_of(new) is TypeGroup.CHOICE:
        return to_choice(new, old, lambda value: place_of(old, value))
    if kind_of(new) is TypeGroup.BYTES:
        return to_bytes(new, old)
    return to_text(new, old)
