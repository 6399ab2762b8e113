"""Rows of the source written into the lake the ordinary way: prepared (``binlake.rows.upsert``), then committed.

A row is read anew, and its ordering value is the position it is read at: newer than whatever wrong row the lake holds,
older than every later event. So a repair beside a running stream never hides a change, and a repair that is done again,
after a crash too, changes nothing. Its commit belongs to the stream ``<name>.verify``, which covers no offsets.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import META_FIELDS, ChangeBatch, Op, TableSchema
from binlake.position.commit_record import CommitNotes
from binlake.position.recorded import RecordedRepair, repair_stream
from binlake.proof.verify.canonical import is_in
from binlake.proof.verify.columns import ColumnPlan, ComparedColumn
from binlake.proof.verify.rows import KnownRows
from binlake.proof.verify.settle import Look
from binlake.proof.verify.source_rows import SourceRows
from binlake.proof.verify.table_check import TableCheck
from binlake.proof.verify.tidy import RowRemoval
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.prepare import AcceptedRows, TableFacts, prepare
from binlake.settings import Settings, TableRules
from binlake.source.database.snapshot import SourcePosition, snapshot
from binlake.source.database.values import ValueReader
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.errors import UnsupportedError
from hudilake.locking.ownership import Locking
from hudilake.services.planned import one_by_one
from hudilake.storage import open_storage

_THREADS = 4
#: An ordering value below this, without a binlog file, is a Kafka offset and not the second of a snapshot.
_FIRST_SECOND = 1_000_000_000
_FILE_AND_PLACE = (1 << 52) - 1


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
        self._services = TableServices(one_by_one)

    def close(self) -> None:
        """Let go of what the writer holds."""
        self._services.close()

    def __call__(self, check: TableCheck, look: Look) -> int:
        """Repair the keys of a look; returns the number of rows that were written and deleted.

        Raises UnsupportedError for a table whose rows cannot be repaired one by one, TransientError where the source's
        table may have another name by then, and as ``write_and_commit``.
        """
        refuse_unrepairable(check)
        keys = pa.concat_tables([look.source.rows.select(check.key), look.lake.rows.select(check.key)])
        if self.tidy(check, look):
            look = check.look(keys)
        source = SourceRows(check.connection, check.described, whole_rows(check), check.pace)
        with snapshot(check.connection, replica=check.options.replica) as position:
            rows = source.of_keys(keys)
        check.refuse_unsure(position.order(self.settings.source))
        wanted = np.union1d(look.source.keys, look.lake.keys)
        assert look.lake.orders is not None
        stored = look.lake.where(look.lake.orders <= position.order(self.settings.source))
        return self.write(check, position, rows.where(is_in(rows.keys, wanted)), stored)

    def tidy(self, check: TableCheck, look: Look) -> int:
        """Take those rows of a look out of the lake that are there twice, not where its writer looks for them, or ahead
        of the source. Returns their number. Errors as ``write``."""
        assert look.lake.astray is not None
        keys = np.union1d(look.doubled, look.lake.keys[look.lake.astray])
        table = self._lake.get(replace(check.table.rules, compaction=None, retention=None)) if len(keys) else None
        if table is None:
            return 0
        tidying = RowRemoval(table, check.plan, keys, repair_stream(self.settings.name), check.impossible)
        return tidying.run(check.groups.of(look.lake.groups), str(look.position))

    def write(self, check: TableCheck, position: SourcePosition, rows: KnownRows, stored: KnownRows) -> int:
        """Write whole rows of the source in one commit, and delete those stored rows that are not among them.

        Args:
            check: of the table.
            position: at which the rows were read.
            rows: as ``whole_rows`` reads them.
            stored: rows of the lake, as ``check.plan`` reads them.
        """
        batch = change_batch(check, rows, stored, position.order(self.settings.source))
        rules = replace(check.table.rules, compaction=None, retention=None)
        accepted = self._prepared(check, batch, rules)
        table = self._lake.get_or_create(rules, accepted.target, accepted.columns)
        report = TaskTableReport(
            schema=accepted.schema,
            target=accepted.target,
            columns=accepted.columns,
            origins={check.fed_by.first},
            shared=check.shard is not None,
            counts=accepted.counts,
        )
        deletes = int(pc.sum(pc.equal(batch.rows.column("__op"), int(Op.DELETE))).as_py() or 0)
        notes = CommitNotes(repaired=RecordedRepair(str(position), len(rows), deletes))
        stream = repair_stream(self.settings.name)
        table.refresh(stream)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-repair") as pool:
            table_input = TableInput(report, NO_RANGES, accepted.parcels, notes=notes)
            write_and_commit(table, table_input, stream, 0, pool, self._services)
        return len(batch.rows)

    def _prepared(self, check: TableCheck, batch: ChangeBatch, rules: TableRules) -> AcceptedRows:
        known = self._lake.get(rules)
        facts = TableFacts()
        if known is not None:
            facts = TableFacts(
                truncates=known.truncates, columns=known.hudi.schema.names, bucketing=known.rows.own_bucketing
            )
        prepared = prepare(batch, rules, check.shard, facts)
        rejected = prepared.left_out.rejected
        if rejected or prepared.accepted is None:
            detail = rejected[0].detail if rejected else "no row was left"
            raise UnsupportedError(
                f"the source's rows cannot be written: {detail}",
                do_next="correct the table's rules, or its column at the source",
                table=str(check.origin),
            )
        return prepared.accepted


def refuse_unrepairable(check: TableCheck) -> None:
    """Raise UnsupportedError for a table without a key, and where ordering values are no places in the binlog: as the
    changes show it that the stream has read, or the newest row that the check has read."""
    if not check.plan.keys:
        raise UnsupportedError(
            "rows of a table without a key cannot be repaired one by one, nor fetched anew",
            do_next="give it a key in tables.overrides, or load it again under a new path",
            table=str(check.origin),
        )
    place = check.newest & _FILE_AND_PLACE if check.newest >= 0 else _FIRST_SECOND
    source = check.settings.source
    by_offset = source.format == "canal" or source.maxwell.order == "offset"
    if by_offset or (place < _FIRST_SECOND and not check.has_places):
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
    """The plan that reads whole rows of the source in lake types, the key's columns first in their canonical types."""
    described, source = check.described, check.settings.source
    keyed = [replace(c, lake_name=c.source.name) for c in check.plan.key]
    rest = [
        ComparedColumn(c, reader, c.name, reader.lake_type)
        for c in described.columns
        if c.type is not None and c.name not in check.key
        for reader in [ValueReader.of(c.name, c.type, source, nullable=c.nullable, in_key=False)]
    ]
    return ColumnPlan((*keyed, *rest), len(keyed), (), check.shard)


def change_batch(check: TableCheck, rows: KnownRows, stored: KnownRows, order: int) -> ChangeBatch:
    """The rows as upserts, each with the stored row that it replaces as its before image; the others as deletes.

    Arguments as ``Repairer.write``; ``order``: the ordering value of all of them.
    """
    readers = {c.source.name: c.reader for c in whole_rows(check).columns}
    columns = [readers[c.name].column for c in check.described.columns if c.name in readers]
    schema = pa.schema([pa.field(c.name, c.lake_type) for c in columns])
    kept = is_in(stored.keys, np.sort(rows.keys))
    place = {key: index for index, key in enumerate(rows.keys.tolist())}
    again = np.array([place[key] for key in stored.keys[kept].tolist()], dtype=np.int64)  # one for each stored row
    new = np.setdiff1d(np.arange(len(rows), dtype=np.int64), again)
    upserts = _as_schema(rows.rows, schema).take(pa.array(np.concatenate([again, new])))
    before, deletes = (_as_schema(stored.where(flags).rows, schema) for flags in (kept, ~kept))
    ops = np.repeat(np.array([Op.UPSERT, Op.DELETE], dtype=np.int8), [len(upserts), len(deletes)])
    both = pa.concat_tables([upserts, deletes])
    orders = np.full(len(both), order, dtype=np.int64)
    meta = {"__op": ops, "__order": orders, "__place": orders}
    for extra in META_FIELDS:
        values = meta.get(extra.name, np.zeros(len(both), dtype=np.int64))
        both = both.append_column(extra, pa.array(values, extra.type))
    described = TableSchema(check.table.source, tuple(columns), tuple(check.key))
    return ChangeBatch(described, "", both, before, np.arange(len(before), dtype=np.int64), check.fed_by.first)


def _as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in these columns and types; columns that they lack are null."""
    arrays = [
        rows.column(f.name).cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.table(arrays, schema=schema)
