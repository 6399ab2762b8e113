"""The earlier commits of the old table that Hudi's Spark writer continues, written in Hudi's format by binlake.

Hudi's own writer would need hours for them. The table is compacted, cleaned and archived regularly, as in normal use.
Its columns are those of the peer's DataFrame without the delete mark, which the peer's first write adds.
"""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pyarrow as pa

from bench.compaction import with_threads
from bench.events import Shape
from bench.kafka_load import table_events
from bench.model import rows_of
from bench.peers import ORDER
from bench.spec import Spec
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

_EVERY = 100
_RETENTION = CleaningConfig(commits=_EVERY)
_ARCHIVAL = ArchivalConfig(_EVERY + 20, _EVERY + 70)
_WHOLE = {"int": pa.int32(), "tinyint": pa.int32()}


def age(spec: Spec, *, metadata: bool) -> None:
    """Create the table of a spec with its commits."""
    work = spec.workload
    (shape,) = work.shapes()
    storage = open_storage((spec.lake / shape.table).as_uri(), {"fsync": "false"})
    config = TableConfig(shape.table, ("id",), ORDER, work.buckets)
    schema = pa.schema([f for f in _rows([], shape, 0).schema if f.name != RECORD_KEY_FIELD])
    # Hudi compacts a metadata table after 10 delta commits, and fails if that is the first action of a fresh JVM
    kept = MetadataConfig(compact_after=8, compact_at_most=8) if metadata else None
    table = HudiTable.create(storage, config, schema, kept)
    source = iter(table_events(work, shape))
    for number in range(work.age):
        _commit(table, shape, number, dict(islice(source, work.age_batch)), work.buckets)
        if number % _EVERY == _EVERY - 1 or number == work.age - 1:
            run(table, CompactionConfig(tombstone_retention_hours=0), with_threads, now=True)
            clean(table, _RETENTION)
            archive(table, _ARCHIVAL, _RETENTION)


def _commit(table: HudiTable, shape: Shape, number: int, last: dict[bytes, bytes], buckets: int) -> None:
    told = [json.loads(value) for value in last.values()]
    alive = [json.dumps(event["after"]).encode() for event in told if event["op"] != "d"]
    gone = np.array([event["before"]["id"] for event in told if event["op"] == "d"], dtype=np.int64)
    upserts = _rows(alive, shape, number)
    keys = pa.array(gone).cast(pa.string())
    deletes = pa.table({RECORD_KEY_FIELD: keys, ORDER: np.full(len(gone), number)}).sort_by(RECORD_KEY_FIELD)
    places = [bucket_ids(part.column(RECORD_KEY_FIELD), ("id",), buckets) for part in (upserts, deletes)]
    instant = table.begin()
    context = table.write_context(instant)
    results = []
    for bucket in range(buckets):
        chosen, away = (p.take(np.flatnonzero(at == bucket)) for p, at in zip((upserts, deletes), places, strict=True))
        if len(chosen) or len(away):
            group = FileGroupWrite("", file_id(shape.table, "", bucket), chosen, away)
            results.append(write_file_group(table.storage, context, group))
    table.commit(instant, results)
    if (trouble := table.maintain()) is not None:
        raise RuntimeError(trouble)


def _rows(images: list[bytes], shape: Shape, number: int) -> pa.Table:
    """Rows as in the peer's DataFrame; the ordering value is below every later offset."""
    rows = rows_of(images, shape)
    for at, (name, mysql) in enumerate(shape.types().items()):
        column = rows.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz="UTC"))
        rows = rows.set_column(at, name, column.cast(_WHOLE.get(mysql.split("(")[0], column.type)))
    rows = rows.append_column(ORDER, pa.array(np.full(len(rows), number, dtype=np.int64)))
    keyed = rows.add_column(0, RECORD_KEY_FIELD, rows.column("id").cast(pa.string()))
    return keyed.sort_by(RECORD_KEY_FIELD)
