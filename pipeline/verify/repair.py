"""Rows of the source written into the lake the ordinary way: through ``upsert.prepare`` and the table commit.

A row is read anew, and its ordering value is the position it is read at: newer than whatever wrong row the lake holds,
older than every later event. So a repair beside a running stream never hides a change, and a repair that is done again,
after a crash too, changes nothing. Its commit belongs to the stream ``<name>.verify``, which covers no offsets.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pipeline.decode.changes import META_FIELDS, ChangeBatch, Column, Op, TableSchema
from pipeline.errors import UnsupportedError
from pipeline.hudi.locking.ownership import Locking
from pipeline.lake.lake import Lake, locking
from pipeline.lake.table_commit import TableInput, write_and_commit
from pipeline.lake.table_services import TableServices
from pipeline.position.commit_record import CommitNotes
from pipeline.position.recorded import RecordedRepair
from pipeline.settings import Settings, TableRules
from pipeline.source.offsets import NO_RANGES
from pipeline.storage import open_storage
from pipeline.tasks.plan import TableReport
from pipeline.upsert.prepare import Accepted, TableFacts, prepare
from pipeline.upsert.truncates import NOTHING_TRUNCATED
from pipeline.verify.columns import ColumnPlan, ComparedColumn
from pipeline.verify.rows import Flags, is_in
from pipeline.verify.settle import Look
from pipeline.verify.source.snapshot import SourcePosition, snapshot
from pipeline.verify.source.source_table import DescribedTable
from pipeline.verify.source_rows import SourceRows
from pipeline.verify.table_check import TableCheck

_THREADS = 4
#: An ordering value below this, without a binlog file, is a Kafka offset and not the second of a snapshot.
_FIRST_SECOND = 1_000_000_000
_FILE_AND_PLACE = (1 << 52) - 1


def repair_stream(name: str) -> str:
    """The stream name in the commits of a repair. No stream of the settings can have this name."""
    return f"{name}.verify"


@dataclass
class Repairer:
    """Writes rows of the source into the tables of a lake.

    Args:
        settings: of the stream; it may be running.
        lake: the tables; None opens those of the settings.
    """

    settings: Settings
    lake: Lake | None = None
    _lake: Lake = field(init=False)
    _services: TableServices = field(init=False)

    def __post_init__(self) -> None:
        root = open_storage(self.settings.lake.uri, self.settings.lake.storage_options())
        own: Locking = locking(self.settings.locking, f"verify {self.settings.name}")
        self._lake = self.lake or Lake(root, own)
        self._services = TableServices(lambda function, operations: [function(operation) for operation in operations])

    def close(self) -> None:
        """Let go of what the writer holds."""
        self._services.close()

    def __call__(self, check: TableCheck, look: Look) -> int:
        """Repair the keys of a look; returns the number of rows that were written and deleted.

        Raises UnsupportedError for a table whose rows cannot be repaired one by one, and as ``write_and_commit``.
        """
        refuse_unrepairable(check, look)
        keys = pa.concat_tables([look.source.rows.select(check.key), look.lake.rows.select(check.key)])
        plan = whole_rows(check)
        source = SourceRows(check.connection, check.described, plan, check.pace)
        with snapshot(check.connection, replica=check.options.replica) as position:
            order = position.order(self.settings.source)
            rows = source.of_keys(keys)
        stored = look.lake.where(look.lake.orders <= order) if look.lake.orders is not None else look.lake
        wanted = np.union1d(look.source.keys, look.lake.keys)
        rows = rows.where(is_in(rows.keys, wanted))
        kept = is_in(stored.keys, np.sort(rows.keys))
        return self.write(check, position, rows.rows, (stored.rows, kept, stored.keys), rows.keys)

    def write(
        self,
        check: TableCheck,
        position: SourcePosition,
        rows: pa.Table,
        stored: tuple[pa.Table, Flags, np.ndarray],
        keys: np.ndarray,
    ) -> int:
        """Write whole rows, and delete stored ones, in one commit at a position.

        Args:
            check: of the table.
            position: at which the rows were read.
            rows: n whole rows of the source, in lake types under the source's names.
            stored: m rows of the lake, which of them the source still has, and the hash of each one's key.
            keys: the hash of each key of ``rows``.
        """
        held, kept, held_keys = stored
        order = position.order(self.settings.source)
        batch = change_batch(check, rows, keys, order, (held, kept, held_keys))
        rules = dataclasses.replace(check.table.rules, compaction=None, retention=None)
        accepted = self._prepared(check, batch, rules)
        table = self._lake.get_or_create(rules, accepted.target, accepted.columns)
        note = RecordedRepair(str(position), len(rows), int((~kept).sum()))
        report = TableReport(
            schema=accepted.schema,
            target=accepted.target,
            columns=accepted.columns,
            origins={check.origin},
            sharded=check.shard is not None,
            counts=accepted.counts,
        )
        table.refresh(repair_stream(self.settings.name))
        table_input = TableInput(report, NO_RANGES, accepted.parcels, notes=CommitNotes(repaired=note))
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-repair") as pool:
            write_and_commit(table, table_input, repair_stream(self.settings.name), 0, pool, self._services)
        return len(batch.rows)

    def _prepared(self, check: TableCheck, batch: ChangeBatch, rules: TableRules) -> Accepted:
        known = self._lake.get(rules)
        facts = TableFacts(truncates=known.truncates if known is not None else NOTHING_TRUNCATED)
        prepared = prepare(batch, rules, check.shard, facts)
        if prepared.rejected or prepared.accepted is None:
            detail = prepared.rejected[0].detail if prepared.rejected else "no row was left"
            raise UnsupportedError(
                f"the source's rows cannot be written: {detail}",
                do_next="correct the table's rules, or its column at the source",
                table=str(check.origin),
            )
        return prepared.accepted


def refuse_unrepairable(check: TableCheck, look: Look) -> None:
    """Raise UnsupportedError for a table without a key, and where ordering values are no places in the binlog."""
    if not check.plan.keys:
        raise UnsupportedError(
            "rows of a table without a key cannot be repaired one by one",
            do_next="bring the table anew (binlake table resync)",
            table=str(check.origin),
        )
    orders = look.lake.orders
    places = orders & _FILE_AND_PLACE if orders is not None and len(orders) else np.array([_FIRST_SECOND])
    source = check.settings.source
    if source.format == "canal" or source.maxwell.order == "offset" or int(places.max()) < _FIRST_SECOND:
        raise UnsupportedError(
            "the rows of this table are ordered by Kafka's offsets, so a row of the source has no place among them",
            do_next="raise source.epoch and bring the table anew",
            table=str(check.origin),
        )
    partition = check.table.rules.partition
    if partition is not None and partition.column not in {c.source.name for c in check.plan.columns}:
        raise UnsupportedError(
            f"the partition column {partition.column!r} is not compared, so a stored row's place is not known",
            do_next="bring the table anew (binlake table resync)",
            table=str(check.origin),
        )


def whole_rows(check: TableCheck) -> ColumnPlan:
    """The plan that reads whole rows of the source in lake types, the key's columns first."""
    described: DescribedTable = check.described
    ordered = [*check.key, *(c.name for c in described.columns if c.name not in check.key)]
    columns = [described.column(name) for name in ordered]
    whole = tuple(ComparedColumn(c, c.name, c.type.lake_type) for c in columns if c.type is not None)
    keyed = tuple(dataclasses.replace(c, canonical=k.canonical) for c, k in zip(whole, check.plan.key, strict=False))
    return ColumnPlan((*keyed, *whole[len(keyed) :]), len(keyed), (), check.shard)


def change_batch(
    check: TableCheck, rows: pa.Table, keys: np.ndarray, order: int, stored: tuple[pa.Table, Flags, np.ndarray]
) -> ChangeBatch:
    """The rows as upserts, each with the stored row that it replaces as its before image; the others as deletes.

    Arguments as ``Repairer.write``; ``order``: the ordering value of all of them.
    """
    held, kept, held_keys = stored
    columns = [c for c in check.described.columns if c.type is not None]
    schema = pa.schema([pa.field(c.name, c.type.lake_type) for c in columns if c.type is not None])
    place = {key: at for at, key in enumerate(keys.tolist())}
    again = np.array([place[key] for key in held_keys[kept].tolist()], dtype=np.int64)  # a row for each stored row
    new = np.setdiff1d(np.arange(len(keys)), again)
    upserts = _as_schema(rows, schema).take(pa.array(np.concatenate([again, new]).astype(np.int64)))
    before, deletes = (_as_schema(held.filter(pa.array(flags)), schema) for flags in (kept, ~kept))
    both = pa.concat_tables([upserts, deletes])
    ops = np.repeat(np.array([Op.UPSERT, Op.DELETE], dtype=np.int8), [len(upserts), len(deletes)])
    meta = {"__op": ops, "__order": np.full(len(both), order, dtype=np.int64)}
    for field_ in META_FIELDS:
        values = meta.get(field_.name, np.zeros(len(both), dtype=np.int64))
        both = both.append_column(field_, pa.array(values, field_.type))
    described = TableSchema(
        check.table.source,
        tuple(Column(c.name, "", c.type.lake_type, c.type_text) for c in columns if c.type is not None),
        check.described.key,
    )
    return ChangeBatch(described, "", both, before, np.arange(len(before), dtype=np.int64), check.origin)


def _as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in these columns and types; columns that they lack are null."""
    arrays = [
        rows.column(f.name).cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.table(arrays, schema=schema)
