"""The columns that a history table has beside those of its source: from which event on a version is valid, and until
which one. A version's place is the ordering value of its event; it is the last field of the record key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.upsert.collapse import Int64s
from hudilake.errors import UnsupportedError

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
VERSION_FIELDS: Final = (pa.field(START_AT, pa.int64()), pa.field(VALID_FROM, _TIME), *DERIVED_FIELDS)
_US_PER_MS: Final = 1000
_PLACE: Final = f",{START_AT}:-?[0-9]+$"


def check_names(columns: Iterable[str], table: str) -> None:
    """Raise UnsupportedError if the source has a column of one of these names, in any case."""
    own = {field.name for field in VERSION_FIELDS}
    if clashing := sorted(name for name in columns if name.lower() in own):
        raise UnsupportedError(
            f"the source has the column {', '.join(clashing)}, a name that a history table has for itself",
            do_next="leave the column out (columns.exclude), and keep it under another name (columns.computed)",
            table=table,
        )


def with_version_columns(rows: pa.Table, number: int, orders: Int64s, source_ms: Int64s) -> pa.Table:
    """n events with the VERSION_FIELDS before the column ``number``.

    Args:
        rows: n events.
        number: of the first column that is no value.
        orders: of the events, int64 of n.
        source_ms: the source's times, milliseconds since 1970, int64 of n; 0 for none.
    """
    times = pa.array(source_ms * _US_PER_MS, mask=source_ms <= 0).cast(_TIME)
    values = {START_AT: pa.array(np.asarray(orders, dtype=np.int64)), VALID_FROM: times}
    for place, field in enumerate(VERSION_FIELDS, start=number):
        rows = rows.add_column(place, field, values.get(field.name, pa.nulls(len(rows), field.type)))
    return rows


def keys_of_versions(record_keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The part of each record key that names the source's row: without the version's place. Strings of n."""
    return pc.replace_substring_regex(record_keys, _PLACE, "")
