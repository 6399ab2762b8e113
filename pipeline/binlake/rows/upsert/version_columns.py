"""The columns that a history table has beside those of its source: from which event on a version is valid, and until
which one; of a bitemporal table also when the lake knew it so; of a table of changes where a change was and what it
did. A place is the ordering value of an event; it is in the record key, after the source's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.upsert.collapse import Int64s
from hudilake.errors import UnsupportedError
from hudilake.format.definition.merging import Engine

#: LONG: the ordering values of the event that made the version, and of the next event of its key; null for none.
START_AT: Final = "start_at"
END_AT: Final = "end_at"
#: The source's times of the two events.
VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
IS_CURRENT: Final = "is_current"

_TIME: Final = pa.timestamp("us", tz="UTC")
#: What the writer works out of a key's other versions; null in events.
DERIVED_FIELDS: Final = (
    pa.field(END_AT, pa.int64()),
    pa.field(VALID_TO, _TIME),
    pa.field(IS_CURRENT, pa.bool_()),
)
_BEGIN: Final = (pa.field(START_AT, pa.int64()), pa.field(VALID_FROM, _TIME))
VERSION_FIELDS: Final = (*_BEGIN, *DERIVED_FIELDS)
#: LONG: the instant of the commit that made the row, as a number; it is in the record key, after the place.
KNOWN_AT: Final = "known_at"
#: The time of that commit, and of the one from which on the lake knew better.
KNOWN_FROM: Final = "known_from"
KNOWN_TO: Final = "known_to"
#: What the writer works out; null in events.
KNOWN_FIELDS: Final = (pa.field(KNOWN_AT, pa.int64()), pa.field(KNOWN_FROM, _TIME), pa.field(KNOWN_TO, _TIME))
#: STRING: what a change did, in the words of Spark's change data feeds.
CHANGE_TYPE: Final = "change_type"
#: STRING: the transaction of the change, in the words of its message; null where the message names none.
SOURCE_TRANSACTION: Final = "source_transaction"
INSERT: Final = "insert"
UPDATE_BEFORE: Final = "update_preimage"
UPDATE_AFTER: Final = "update_postimage"
DELETE: Final = "delete"
_US_PER_MS: Final = 1000
_PLACE: Final = f",{START_AT}:-?[0-9]+(,{CHANGE_TYPE}:[a-z_]+|,{KNOWN_AT}:([0-9]+|__null__))?$"
#: Engine -> the columns, and those of them in the record key.
_FIELDS: Final[Mapping[Engine, tuple[pa.Field, ...]]] = {
    "scd2": VERSION_FIELDS,
    "bitemporal": (*VERSION_FIELDS, *KNOWN_FIELDS),
    "changes": (*_BEGIN, pa.field(CHANGE_TYPE, pa.string()), pa.field(SOURCE_TRANSACTION, pa.string())),
}
_KEY_FIELDS: Final[Mapping[Engine, tuple[str, ...]]] = {
    "scd2": (START_AT,),
    "bitemporal": (START_AT, KNOWN_AT),
    "changes": (START_AT, CHANGE_TYPE),
}


def key_fields(engine: Engine) -> tuple[str, ...]:
    """The columns of a history table that are in its record key."""
    return _KEY_FIELDS[engine]


def check_names(columns: Iterable[str], table: str, engine: Engine) -> None:
    """Raise UnsupportedError if the source has a column of one of these names, in any case."""
    own = {field.name for field in _FIELDS[engine]}
    if clashing := sorted(name for name in columns if name.lower() in own):
        raise UnsupportedError(
            f"the source has the column {', '.join(clashing)}, a name that a history table has for itself",
            do_next="leave the column out (columns.exclude), and keep it under another name (columns.computed)",
            table=table,
        )


def with_version_columns(
    rows: pa.Table,
    number: int,
    orders: Int64s,
    source_ms: Int64s,
    engine: Engine = "scd2",
    transactions: pa.Array | None = None,
) -> pa.Table:
    """n events with the columns of a history table before the column ``number``; null where the writer works them out.

    Args:
        rows: n events.
        number: of the first column that is no value.
        orders: of the events, int64 of n.
        source_ms: the source's times, milliseconds since 1970, int64 of n; 0 for none.
        engine: of the table.
        transactions: of the events, string of n; None for none.
    """
    values = {START_AT: pa.array(np.asarray(orders, dtype=np.int64)), VALID_FROM: times_of(source_ms)}
    if transactions is not None:
        values[SOURCE_TRANSACTION] = transactions
    for place, field in enumerate(_FIELDS[engine], start=number):
        rows = rows.add_column(place, field, values.get(field.name, pa.nulls(len(rows), field.type)))
    return rows


def times_of(ms: Int64s) -> pa.Array:
    """n times of a history table. ``ms``: milliseconds since 1970, int64 of n; 0 for none."""
    return pa.array(ms * _US_PER_MS, mask=ms <= 0).cast(_TIME)


def keys_of_versions(record_keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The part of each record key that names the source's row: without the version's place. Strings of n."""
    return pc.replace_substring_regex(record_keys, _PLACE, "")


def key_of_version(keys: pa.Array | pa.ChunkedArray, places: pa.Array) -> pa.Array | pa.ChunkedArray:
    """The record keys of the versions of n of the source's rows, by their keys, that begin at these places (int64)."""
    return pc.binary_join_element_wise(keys, f",{START_AT}:", places.cast(pa.string()), "").cast(pa.string())


def key_of_known(keys: pa.Array | pa.ChunkedArray, known_at: int) -> pa.Array | pa.ChunkedArray:
    """The record keys of n versions, by those without it, as the commit of the instant ``known_at`` knows them."""
    return pc.binary_join_element_wise(keys, str(known_at), f",{KNOWN_AT}:")


def key_of_change(keys: pa.Array, places: pa.Array, types: pa.Array) -> pa.Array:
    """The record keys of n changes. ``types``: CHANGE_TYPE of each; other arguments as for ``key_of_version``."""
    return pc.binary_join_element_wise(key_of_version(keys, places), types, f",{CHANGE_TYPE}:")
