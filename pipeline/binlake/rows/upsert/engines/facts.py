"""Change batches of facts -> parcels: for an aggregated table every event counts, and an update has two halves.

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

from binlake.decode.changes import ChangeBatch
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.engines.contributions import check_functions, contributions, without_values
from binlake.rows.upsert.engines.hashing import hashes
from binlake.rows.upsert.route import KEY, MOVED_AWAY, ORDER_COLUMNS, Routed, fresh_rows, pack_by_place, placed
from binlake.rows.upsert.target import Target, lake_names
from binlake.settings.merging import Function
from hudilake.errors import UnsupportedError
from hudilake.format.definition.keys import record_keys

#: Columns of a parcel of facts beside ORDER_COLUMNS, LONG: the topic partition, and the fact at its place. Both are
#: hashes, which commits keep.
FEED: Final = "__feed"
FACT: Final = "__fact"


def route_facts(
    batch: ChangeBatch,
    target: Target,
    functions: Mapping[str, Function],
    applied_until: Mapping[int, int],
    truncated_order: int | Int64s,
) -> Routed:
    """Route a change batch to the file groups of an aggregated table. Arguments: ``binlake.rows.upsert.route.route``.

    ``functions``: by lake column. Raises UnsupportedError for a source table without a key, and as ``contributions``.
    """
    if not batch.schema.key:
        raise UnsupportedError(
            "facts without a primary key at the source cannot be told apart when they are delivered again",
            do_next="give the source's table a primary key, or exclude the table",
            table=str(batch.schema.source),
        )
    check_functions(functions, target)
    routed, images = Routed(), placed(batch, target)
    fresh = fresh_rows(images.rows, applied_until)
    wanted = fresh & (images.rows.column("__order").to_numpy() > truncated_order)
    routed.counts.already_applied = len(fresh) - int(fresh.sum())
    routed.counts.read, routed.counts.superseded = int(fresh.sum()), int(fresh.sum() - wanted.sum())
    if not wanted.any():
        return routed
    names = lake_names([c.name for c in batch.schema.columns], batch.schema.source)
    key = [names[column] for column in batch.schema.key]
    halves = _halves(images.rows, images.paths, key, functions, target)
    updated = images.before_at
    halves = without_values(halves, functions, updated).filter(pa.array(wanted))
    paths = images.paths.filter(pa.array(wanted))
    if images.before is not None and len(updated):
        old = images.rows.take(pa.array(updated))
        for name in images.before.column_names:
            old = old.set_column(old.column_names.index(name), name, images.before.column(name))
        op = pa.array(np.full(len(old), MOVED_AWAY, dtype=np.int8))
        old = old.set_column(old.column_names.index("__op"), old.schema.field("__op"), op)
        gone = _halves(old, images.before_paths, key, functions, target)
        gone = without_values(gone, functions, np.arange(len(gone)))
        inside = pa.array(wanted[updated])
        halves = pa.concat_tables([halves, gone.filter(inside).cast(halves.schema)])
        paths = pa.concat_arrays([paths, images.before_paths.filter(inside)])
    feed = mmh3.hash64(f"{batch.topic}\n{images.rows.column('__partition')[0].as_py()}".encode())[0]
    halves = halves.append_column(FEED, pa.array(np.full(len(halves), feed, dtype=np.int64)))
    routed.parcels += list(pack_by_place(halves, paths, target))
    return routed


def _halves(
    rows: pa.Table, paths: pa.Array, key: list[str], functions: Mapping[str, Function], target: Target
) -> pa.Table:
    """Placed rows as halves: KEY, contributions, ORDER_COLUMNS, FACT."""
    texts = [record_keys(rows, key), rows.column(KEY).combine_chunks(), paths]
    facts = hashes(pc.binary_join_element_wise(*[pc.fill_null(t, "") for t in texts], "\0"))
    values = [n for n in rows.column_names if n != KEY and not n.startswith("__")]
    made = contributions(rows.select([KEY, *values]), functions, target.source)
    for name in ORDER_COLUMNS:
        made = made.append_column(rows.schema.field(name), rows.column(name))
    return made.append_column(FACT, pa.array(facts))
