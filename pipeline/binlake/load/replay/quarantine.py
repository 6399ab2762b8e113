"""Replays quarantined records: through the same steps as the stream, exactly once, and never over a newer row.

Each record passes the steps of the stream (decode, prepare, ``write_and_commit``) with the ordering value of its own
binlog position, so a newer row stays. The stream would drop the records, because they lie below the table's position.
Here the plan holds no positions, so they are applied, and the commit belongs to another stream, ``<name>.quarantine``,
which covers no offsets and moves no position.

A replay is not a batch of ``binlake.stream.batches.sequence``: the records come table by table, no new facts are kept,
no DDL is carried out, records that fail are restated in the quarantine table and not added to it, and no position
advances.

Exactly once: the commit records the names of the records it contains, so the table itself holds them. If a run dies
between that commit and the mark in the quarantine table, the next run finds the names and only sets the mark. A table
that is restored loses the commit together with its rows, and the records wait again. Records that the stream will
deliver itself (its table is behind, or the batch is not finished) are left to the stream.

A record that fails again stays in the quarantine table with its new reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from binlake.decode.changes import ControlKind, QuarantinedRecord, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.quarantine import Reason
from binlake.hbase.derive.faults import is_cell
from binlake.load.replay.quarantine_records import (
    QuarantineEntry,
    QuarantineSelection,
    ReplayResult,
    chunks,
    held_records,
)
from binlake.load.replay.quarantine_table import (
    LiveKeys,
    commit_times,
    forgets_deletes_since,
    replayed_records,
    replaying_rules,
)
from binlake.load.replay.quarantine_write import RecordWriter, refused_record
from binlake.load.replay.replay_dumps import dump_schemas
from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recovery import of_replays
from binlake.rows.upsert.fanout import fan_out
from binlake.rows.upsert.target import key_columns
from binlake.schema.apply.keeper import DdlKeeper
from binlake.schema.rules.plan import named
from binlake.settings import Settings, TableRules
from binlake.source.offsets import NO_OFFSETS
from binlake.stream.definitions.learned import Definitions
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.catalog import table_paths
from binlake.tables.ddl_topics import with_heard_topics
from binlake.tables.lake import Lake, locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.presence import known_tables
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.seal import Seal
from binlake.tables.services.table_services import TableServices
from hudilake.clock import now_ms
from hudilake.errors import ConfigError, LakeError
from hudilake.services.planned import one_by_one
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

_AT_ONCE = 5_000
_THREADS = 4
_UNORDERED = (
    "a record without a value has no place in the binlog, and the row of its key was ordered by one, or in another "
    "source.epoch: whether it is older is not known; binlake verify compares the row with the source"
)


@dataclass
class _Split:
    """Records, split by the result of decoding. ``histories``: lake table -> history table -> the places of the records
    that both take."""

    by_table: dict[SourceTable, list[QuarantineEntry]] = field(default_factory=dict)
    failed: dict[tuple[str, int, int], QuarantinedRecord] = field(default_factory=dict)
    filtered: list[QuarantineEntry] = field(default_factory=list)
    histories: dict[SourceTable, dict[SourceTable, set[tuple[str, int, int]]]] = field(default_factory=dict)


def replay(settings: Settings, selection: QuarantineSelection, *, even_too_old: bool = False) -> ReplayResult:
    """Replay the selected records that were not replayed yet.

    Args:
        settings: of the stream; it may be running.
        selection: the records to replay.
        even_too_old: also replay records that may be older than a delete which a compaction has dropped since.

    Raises ConfigError if the stream has no ledger, LostOwnershipError if another replay is running, StorageError,
    TransientError. Errors of single tables are in the result.
    """
    state = open_storage(settings.state_uri, settings.state_options())
    with StreamLease(state.sub("replay"), replay_stream(settings.name)):
        return _QuarantineReplay(settings, state, even_too_old).run(selection)


def _newest_records(settings: Settings, root: Storage) -> dict[str, RecordReader]:
    """What the newest commits of the lake's tables record, that of the quarantine among them, by path."""
    paths = [*table_paths(root, settings.tables.path.count("/") + 1), settings.quarantine_path]
    there = [path for path in paths if HudiTable.exists(root.sub(path))]
    return {path: RecordReader.newest_of(HudiTable.open(root.sub(path))) for path in there}


def replay_stream(name: str) -> str:
    """The stream name in the commits of a replay. No stream of the settings can have this name."""
    return f"{name}.quarantine"


class _QuarantineReplay:
    def __init__(self, settings: Settings, state: Storage, even_too_old: bool) -> None:
        self._settings = settings
        self._stream = replay_stream(settings.name)
        self._even_too_old = even_too_old
        self._root = open_storage(settings.lake.uri, settings.lake.storage_options())
        saved = Ledger.load(state, settings.name)
        ledger = saved or of_replays(settings.name, _newest_records(settings, self._root), settings.quarantine_path)
        if ledger is None:
            raise ConfigError(
                "the stream has no ledger, so the records that it will deliver again are not known",
                do_next="run the stream first, then replay",
                path=state.uri,
            )
        self._ledger, self._runs = ledger, saved is not None
        self._held = self._root.sub(settings.quarantine_path)
        self._lake = Lake(self._root, locking(settings.locking, f"replay {settings.name}"))
        for known in known_tables(settings, ledger):
            self._lake.expect(known)  # a lost table is not begun anew with these records
        self._services = TableServices(one_by_one)
        self._quarantine = QuarantineTable(settings, self._lake, self._services)
        self._seal = Seal(settings.quarantine.secret())
        self._registry = self._schemas()
        self._ddl = DdlKeeper(settings, self._lake, self._registry)
        self._writer = RecordWriter(
            settings, self._stream, self._lake, self._registry, self._ddl, ledger, self._services
        )
        self._done = ReplayResult()

    def run(self, selection: QuarantineSelection) -> ReplayResult:
        self._registry.refresh()
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-replay") as pool:
            self._restate(self._taken_back(selection), pool)
            waiting = held_records(self._held, dataclasses.replace(selection, replayed=False), self._seal, payload=True)
            self._done.selected = len(waiting)
            if waiting:
                self._open_known(pool)
            records = [held for held in waiting if not is_cell(held.topic)]
            for start in range(0, len(records), _AT_ONCE):
                self._restate(self._some(records[start : start + _AT_ONCE], pool), pool)
            self._derive([held for held in waiting if is_cell(held.topic)], pool)
        self._services.close()
        return self._done

    def _schemas(self) -> SchemaRegistry:
        """The known schemas; of a lake that replays alone have fed, those of the dumped topics."""
        settings, uri = self._settings, self._settings.dump.uri
        if self._runs or uri is None:
            return SchemaRegistry(with_heard_topics(settings, self._root))
        dumps = open_storage(uri, settings.dump.storage_options(uri, settings.lake))
        return dump_schemas(settings, Definitions(settings), dumps)

    def _derive(self, cells: Sequence[QuarantineEntry], pool: ThreadPoolExecutor) -> None:
        """Derive the rows of quarantined cells, and the wide tables of those tables of cells that took records."""
        if not (cells or any(store.cells_table in self._done.commits for store in self._settings.tables.cells)):
            return
        from binlake.hbase.derive.derivation import deriving  # the rules of cells are compiled when they are imported
        from binlake.load.replay.derived_rows import derive_after, derive_again

        with deriving(self._settings, self._root) as deriver:
            derive_after(deriver, self._settings, tuple(self._done.commits), self._done)
            changed = derive_again(deriver, self._settings, cells, self._done)
        self._restate(changed, pool)

    def _open_known(self, pool: ThreadPoolExecutor) -> None:
        """Open the tables that the stream has met: their commits name the statements that were carried out, and a
        RENAME TABLE in one of them decides where the records of another name belong. Raises LakeError."""
        for _ in pool.map(self._lake.get, map(self._rules_of, self._ledger.tables)):
            pass

    def _rules_of(self, source: SourceTable) -> TableRules:
        return replaying_rules(self._settings.table_rules(source))

    def _restate(self, changed: Sequence[QuarantineEntry], pool: ThreadPoolExecutor) -> None:
        if changed:
            self._quarantine.restate([held.row() for held in changed], self._stream, pool)

    def _taken_back(self, selection: QuarantineSelection) -> list[QuarantineEntry]:
        """Records whose commit was removed by a restore of their table: they wait again."""
        marked = held_records(self._held, dataclasses.replace(selection, replayed=True), self._seal, payload=False)
        gone: set[str] = set()
        for source, path in self._ledger.tables.items():
            mine = [held for held in marked if held.replayed_to is not None and held.source_table == str(source)]
            if mine and HudiTable.exists(self._root.sub(path)):
                known = commit_times(HudiTable.open(self._root.sub(path)))
                gone |= {held.name for held in mine if held.replayed_to not in known}
        if not gone:
            return []
        again = QuarantineSelection(names=frozenset(gone), replayed=True)
        return [held.waiting() for held in held_records(self._held, again, self._seal, payload=True)]

    def _some(self, records: Sequence[QuarantineEntry], pool: ThreadPoolExecutor) -> list[QuarantineEntry]:
        """Replay records; returns those whose row in the quarantine table has changed."""
        split = self._split(records)
        self._done.filtered += len(split.filtered)
        changed = [held.replayed(now_ms(), None, None) for held in split.filtered]
        for source, mine in split.by_table.items():
            try:
                changed += self._table(source, mine, split, pool)
            except LakeError as error:
                self._lake.forget(self._settings.table_rules(source).path)
                self._done.errors[str(source)] = error
        self._done.failed += len(split.failed)
        again = [h.failed_again(split.failed[h.place]) for h in records if h.place in split.failed]
        before = {held.place: held for held in records}
        return changed + [held for held in again if held != before[held.place]]

    # -- the decision for each record -------------------------------------------------------------------------------

    def _split(self, records: Sequence[QuarantineEntry]) -> _Split:
        split = _Split()
        sources_of: dict[tuple[str, int, int], list[SourceTable]] = {}
        topics = {held.topic for held in records}
        schemas, ddl = self._registry.schemas_for(topics), self._ddl.consult(self._ledger.tables, topics)
        options = dataclasses.replace(ddl.decoding(self._registry.options(frozenset())), doubts_tombstones=True)
        for chunk in chunks(records):
            decoded = named(decode(chunk, schemas, options), ddl).decoded
            decoded = fan_out(decoded, self._settings.tables)
            for batch in decoded.changes:
                if self._settings.selects(batch.origin or batch.schema.source):
                    for offset in batch.rows.column("__offset").to_pylist():
                        place = chunk.topic, chunk.partition, offset
                        sources_of.setdefault(place, []).append(batch.schema.source)
            for control in decoded.controls:
                if control.kind is ControlKind.TRUNCATE and self._settings.selects(control.origin or control.source):
                    place = control.topic, control.partition, control.offset
                    sources_of.setdefault(place, []).append(control.source)
            split.failed |= {(q.topic, q.partition, q.offset): q for q in decoded.quarantined}
        for held in records:
            sources = sources_of.get(held.place)
            if held.place in split.failed:
                continue
            if sources is None:
                split.filtered.append(held)
            else:
                histories = [one for one in dict.fromkeys(sources) if self._settings.tables.is_history(one)]
                own = next((one for one in histories if str(one) == held.source_table), None)
                source = own or next(one for one in sources if one not in histories)
                split.by_table.setdefault(source, []).append(held)
                for history in () if own else histories:
                    split.histories.setdefault(source, {}).setdefault(history, set()).add(held.place)
        return split

    def _is_left_to_stream(self, source: SourceTable, held: QuarantineEntry) -> bool:
        """Whether the stream will deliver a record itself: its position is not past it, or the table is behind."""
        if "/" in held.topic or not self._runs:  # a file's path: it came from a dump without Kafka offsets
            return False
        topic, partition = held.topic, held.partition
        behind = self._ledger.behind.get(source, NO_OFFSETS)
        is_behind = behind.knows(topic, partition) and held.offset >= behind.at(topic, partition)
        return is_behind or held.offset >= self._ledger.positions.at(topic, partition)

    # -- one table --------------------------------------------------------------------------------------------------

    def _table(
        self, source: SourceTable, records: list[QuarantineEntry], split: _Split, pool: ThreadPoolExecutor
    ) -> list[QuarantineEntry]:
        mine = [held for held in records if not self._is_left_to_stream(source, held)]
        self._done.left_to_stream += len(records) - len(mine)
        table = self._lake.get(self._rules_of(source))
        known = replayed_records(table.hudi) if table is not None else {}
        replayed_entries = [held for held in mine if (held.name, held.digest) in known]
        changed = [held.replayed(now_ms(), known[held.name, held.digest], str(source)) for held in replayed_entries]
        self._done.found += len(replayed_entries)
        mine = [held for held in mine if (held.name, held.digest) not in known]
        forgets = table is not None and bool(key_columns(table.hudi.config))
        if table is not None and forgets and not self._even_too_old:
            too_old = self._too_old(source, mine, table)
            self._done.too_old += len(too_old)
            mine = [held for held in mine if held.place not in too_old]
        if table is not None and forgets and self._settings.source.debezium.tombstone_deletes:
            unordered = self._unordered(source, mine, table)
            split.failed |= unordered
            mine = [held for held in mine if held.place not in unordered]
        for history, places in split.histories.get(source, {}).items():
            mine = self._into_history(history, [held for held in mine if held.place in places], split, pool)
        return changed + self._write(source, mine, table, split, pool) if mine else changed

    def _into_history(
        self, history: SourceTable, records: list[QuarantineEntry], split: _Split, pool: ThreadPoolExecutor
    ) -> list[QuarantineEntry]:
        """Write records into a history table before the lake table of their rows, whose commit is what marks them as
        replayed. Returns those that the history table has now; others are left to the stream, or failed."""
        records = [held for held in records if not self._is_left_to_stream(history, held)]
        table = self._lake.get(self._rules_of(history))
        known = replayed_records(table.hudi) if table is not None else {}
        news = [held for held in records if (held.name, held.digest) not in known]
        if news:
            written = self._writer.write(history, news, table, pool)
            if written.instant is not None:
                self._done.commits.setdefault(str(history), []).append(written.instant)
            split.failed |= written.failed
        return [held for held in records if held.place not in split.failed]

    def _too_old(
        self, source: SourceTable, records: Sequence[QuarantineEntry], table: LakeTable
    ) -> Collection[tuple[str, int, int]]:
        """The records that would create a row although a newer delete, dropped since, may have removed it."""
        since = forgets_deletes_since(table.hudi, self._settings.table_rules(source))
        old = [held for held in records if since is not None and held.kafka_ms <= since]
        live = LiveKeys(table)
        path = table.rules.path
        return {
            held.place for held in old if live.lack(self._writer.decoded(source, [held], table).parcels.get(path, ()))
        }

    def _unordered(
        self, source: SourceTable, records: Sequence[QuarantineEntry], table: LakeTable
    ) -> dict[tuple[str, int, int], QuarantinedRecord]:
        """The records without a value that delete a row of which it is not known whether it is older."""
        tombstones, live, path = [held for held in records if held.value is None], LiveKeys(table), table.rules.path
        return {
            held.place: refused_record(held, source, Reason.NO_POSITION, _UNORDERED)
            for held in tombstones
            if live.have_other_order(self._writer.decoded(source, [held], table).parcels.get(path, ()))
        }

    def _write(
        self,
        source: SourceTable,
        records: list[QuarantineEntry],
        table: LakeTable | None,
        split: _Split,
        pool: ThreadPoolExecutor,
    ) -> list[QuarantineEntry]:
        """Write records as the stream does. Records that are refused are added to the failed ones."""
        written = self._writer.write(source, records, table, pool)
        if written.instant is not None:
            self._done.commits.setdefault(str(source), []).append(written.instant)
        split.failed |= written.failed
        self._done.applied += len(written.taken)
        return [held.replayed(now_ms(), written.instant, str(source)) for held in written.taken]
