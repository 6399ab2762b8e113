"""Placed rows of facts -> parcels: for an aggregated table every event counts, and an update has two halves.

The half that an update or a delete takes away has the old values and the place of the old row. A half says of which
fact it is, so that the writer can tell an event that is delivered again (``binlake.rows.merging.engines.heights``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.engines.contributions import check_functions, contributions, without_values
from binlake.rows.upsert.place import Images, PlacedRows
from binlake.rows.upsert.route import KEY, ORDER_COLUMNS, AppliedRecords, RoutedRows, counted, former, pack_by_place
from hudilake.errors import UnsupportedError
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.merging import Function

#: Columns of a parcel of facts beside ORDER_COLUMNS, LONG: the topic partition, and the fact at its place. Both are
#: hashes, which commits keep.
FEED: Final = "__feed"
FACT: Final = "__fact"


def route_facts(
    rows: PlacedRows,
    functions: Mapping[str, Function],
    applied: AppliedRecords,
    truncated_order: int | Int64s,
) -> RoutedRows:
    """Route placed rows to the file groups of an aggregated table. Arguments: ``binlake.rows.upsert.route.route``.

    ``functions``: by lake column. Raises UnsupportedError for a source table without a key, and as ``contributions``.
    """
    if not rows.schema.key:
        raise UnsupportedError(
            "facts without a primary key at the source cannot be told apart when they are delivered again",
            do_next="give the source's table a primary key, or exclude the table",
            table=str(rows.schema.source),
        )
    check_functions(functions, rows.target)
    fresh = applied.fresh(rows.rows)
    wanted = fresh & (rows.orders > truncated_order)
    counts = counted(fresh, wanted)
    if not wanted.any():
        return RoutedRows([], counts)
    rows = rows.where(wanted)
    halves = without_values(_halves(rows, rows.rows, rows.images, functions), functions, rows.before_at)
    paths = rows.paths
    if rows.before is not None and len(rows.before_at):
        gone = _halves(rows, former(rows, rows.before), rows.before, functions)
        gone = without_values(gone, functions, np.arange(len(gone)))
        halves = pa.concat_tables([halves, gone.cast(halves.schema)])
        paths = pa.concat_arrays([paths, rows.before.paths])
    feed = mmh3.hash64(f"{rows.topic}\n{rows.rows.column('__partition')[0].as_py()}".encode())[0]
    halves = halves.append_column(FEED, pa.array(np.full(len(halves), feed, dtype=np.int64)))
    return RoutedRows(list(pack_by_place(halves, paths, rows.target)), counts)


def _halves(rows: PlacedRows, half: pa.Table, placed: Images, functions: Mapping[str, Function]) -> pa.Table:
    """The halves that are added, or taken away: KEY, contributions, ORDER_COLUMNS, FACT.

    Args:
        rows: the batch.
        half: n rows with the values of the half, and META_FIELDS.
        placed: the images at whose places they are.
        functions: by lake column.
    """
    from binlake.rows.upsert.engines.hashing import hashes  # needs compiled loops, seconds to import

    key = [rows.names[column] for column in rows.schema.key]
    texts = [record_keys(half, key), placed.keys, placed.paths]
    facts = hashes(pc.binary_join_element_wise(*[pc.fill_null(t, "") for t in texts], "\0"))
    values = half.select([n for n in half.column_names if not n.startswith("__")])
    made = contributions(values.add_column(0, pa.field(KEY, pa.string()), placed.keys), functions, rows.target.source)
    for name in ORDER_COLUMNS:
        made = made.append_column(half.schema.field(name), half.column(name))
    return made.append_column(FACT, pa.array(facts))
