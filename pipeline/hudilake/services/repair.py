"""Repairs of ``fsck``'s findings without data loss: leftovers of dead writers, and the metadata table.

Every step checks again before it acts, and can be repeated after a crash. No step changes or moves a file of a
completed commit, except the files of a commit whose own file is empty (``Repair.DISCARD_COMMIT``): a failed write.
What a step takes away or replaces is kept in the table (``kept``), and ``take_back`` makes the table what it was.

To rebuild the metadata table, it is dropped first and initialised last: in between, readers list storage. If a data
file is damaged it is only dropped, because the statistics of such a file cannot be computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudilake.clock import InstantClock, now_ms
from hudilake.commit.commit import drop_markers
from hudilake.commit.rollback import forget_pending, roll_back_pending
from hudilake.errors import ConfigError, LostOwnershipError
from hudilake.format.definition.config import TableConfig, load_config
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import PROPERTIES_PATH, dump_properties
from hudilake.format.files.names import REPAIRS_PATH, parse_base_name, parse_log_name, parse_written_name
from hudilake.format.timeline.instant import COMMIT, DELTA_COMMIT, REPLACE_COMMIT, SAVEPOINT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.fenced import fenced
from hudilake.locking.ownership import Locking, Ownership
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.initialise import drop, initialise
from hudilake.metadata.records.layout import INDEX_DEFINITIONS_PATH, METADATA_PATH, indexed_fields
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.services.rollback import roll_back
from hudilake.metadata.services.upkeep import recover
from hudilake.metadata.table import MetadataTable
from hudilake.read.index import INDEX_FAILURES
from hudilake.services.fsck.evidence import GRACE_MS, rolled_back_times
from hudilake.services.fsck.findings import Check, Finding, Repair, Severity
from hudilake.services.kept import RepairFolder, keeping
from hudilake.storage.base import AlreadyExistsError, Storage, UnfinishedWrites
from hudilake.table.table import HudiTable

_TABLE_WIDE = frozenset((Repair.ROLL_BACK, Repair.RECOVER_INDEX, Repair.REBUILD_INDEX))


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One step: on the file at ``path``, on the instant, or on the whole table."""

    repair: Repair
    path: str = ""
    instant: str = ""

    def __str__(self) -> str:
        target = self.path or self.instant
        return f"{self.repair.value}: {target}" if target else self.repair.value


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Steps in order. ``reindex``: False drops the metadata table without making a new one (damaged data)."""

    steps: tuple[RepairStep, ...]
    reindex: bool = True

    def lines(self) -> list[str]:
        """The steps as text."""
        note = "drop the metadata table; it is made anew once the damaged data files are restored"
        return [note if s.repair is Repair.REBUILD_INDEX and not self.reindex else str(s) for s in self.steps]


def plan_repair(findings: Iterable[Finding]) -> RepairPlan:
    """The safe repairs of the findings of ``fsck``."""
    all_findings = list(findings)
    steps = {_step(f.repair, f): None for f in all_findings if f.repair is not None}
    order = list(Repair)
    damaged = any(f.check is Check.CONTENT and f.severity is Severity.ERROR for f in all_findings)
    return RepairPlan(tuple(sorted(steps, key=lambda s: (order.index(s.repair), s.path))), reindex=not damaged)


def _step(repair: Repair, finding: Finding) -> RepairStep:
    return RepairStep(repair) if repair in _TABLE_WIDE else RepairStep(repair, finding.path, finding.instant)


def repair(
    storage: Storage, plan: RepairPlan, *, grace_ms: int = GRACE_MS, locking: Locking | None = None
) -> Iterator[str]:
    """Do the steps in order; yields a line for each step, done or no longer needed, and where former files are kept.

    Args:
        storage: the table's root. No writer may run: each commit of a writer makes a step fail.
        plan: from ``plan_repair``.
        grace_ms: files changed more recently are not moved.
        locking: the lock settings; the table's lock is held until the end.

    Raises UnsupportedError for a table that binlake must not change, ConfigError, LockHeldError, LostOwnershipError if
    a writer runs, CorruptDataError, StorageError.
    """
    load_config(storage)[0].check_changeable()
    ownership = Ownership(storage, locking)
    with ownership.lock:
        clock = InstantClock(Timeline.load(storage).latest_time())
        for earlier in storage.list_dirs(REPAIRS_PATH)[-1:]:
            clock.observe(earlier)  # the newest is taken back first, also where this machine's clock is behind
        folder = RepairFolder(storage, clock.next())
        kept = fenced(keeping(storage, folder), ownership.lock)
        yield from _Repairer(kept, plan, grace_ms, ownership, clock).run()
        if folder.is_used:
            yield f"the files as they were are kept in {folder.path}; binlake repair --take-back puts them back"


@dataclass
class _Repairer:
    storage: Storage
    plan: RepairPlan
    grace_ms: int
    ownership: Ownership
    clock: InstantClock
    _settings: MetadataConfig | None = None

    def run(self) -> Iterator[str]:
        repairs = {step.repair for step in self.plan.steps}
        if Repair.REBUILD_INDEX in repairs:
            if not repairs & {Repair.ROLL_BACK, Repair.DISCARD_COMMIT}:
                self._check_nothing_pending()
            self._drop_index()
        for step in self.plan.steps:
            yield self._do(step)
        if self._settings is not None and Repair.REBUILD_INDEX not in repairs:
            yield self._reindex()

    def _do(self, step: RepairStep) -> str:
        match step.repair:
            case Repair.DISCARD_COMMIT:
                return self._discard(step)
            case Repair.ROLL_BACK:
                return self._roll_back()
            case Repair.FORGET_SAVEPOINT:
                return self._forget_savepoint(step)
            case Repair.MOVE_FILE:
                return self._move_file(step)
            case Repair.MOVE_UNFINISHED:
                return self._move_unfinished(step)
            case Repair.MOVE_MARKERS:
                return self._move_markers(step)
            case Repair.ADD_PARTITION_METADATA:
                return self._add_partition_metadata(step)
            case Repair.RECOVER_INDEX:
                return self._recover_index()
            case Repair.REBUILD_INDEX:
                return self._reindex()

    def _timeline(self) -> Timeline:
        timeline = Timeline.load(self.storage)
        latest = timeline.latest_time()
        if latest is not None:
            with contextlib.suppress(ValueError):
                self.clock.observe(latest)
        return timeline

    def _config(self) -> TableConfig:
        return TableConfig.from_properties(self.storage.read(PROPERTIES_PATH))

    def _discard(self, step: RepairStep) -> str:
        """Delete the empty completed file: the instant is then pending, and is rolled back like any other."""
        timeline = self._timeline()
        last, info = timeline.last_completed(), self.storage.stat(step.path)
        if info is None or info.size or last is None or last.path != step.path:
            return f"left as it is: {step.path} is not the newest commit any more, or not empty"
        if not self._old_enough(step.path):
            return f"left as it is: {step.path} was changed just now"
        self.storage.delete(step.path)
        return f"{self._roll_back()} (its file was empty)"

    def _roll_back(self) -> str:
        timeline = self._timeline()
        for pending in timeline.pending():
            if pending.action in (COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
                self._check_dead(pending)
        index = self._index_to_follow(timeline)

        def undo_entries(instant: str, rollback: str) -> None:
            nonlocal index
            if index is None:
                return
            try:
                roll_back(index, instant, rollback)
            except INDEX_FAILURES:
                self._drop_index()
                index = None

        rolled_back = roll_back_pending(self.storage, timeline, self.clock, self.ownership.is_abandoned, undo_entries)
        if index is not None:
            recover(index)
        return f"rolled back {', '.join(rolled_back) or 'nothing'}"

    def _forget_savepoint(self, step: RepairStep) -> str:
        timeline = self._timeline()
        unfinished = [i for i in timeline.pending() if (i.action, i.requested_time) == (SAVEPOINT, step.instant)]
        if not unfinished or not self._old_enough(unfinished[0].path):
            return f"left as it is: {step.path} is new, or the savepoint is finished"
        forget_pending(self.storage, timeline, unfinished[0])
        return f"removed {step.path}"

    def _index_to_follow(self, timeline: Timeline) -> MetadataTable | None:
        """The metadata table. One that cannot undo a rollback's entries is dropped, and initialised again at the
        end."""
        try:
            return self._metadata_table(timeline)
        except INDEX_FAILURES:
            self._drop_index()
            return None

    def _check_dead(self, pending: Instant) -> None:
        """Raise LostOwnershipError if the writer continued after the table was checked."""
        paths = [pending.in_state(state).path for state in (State.REQUESTED, State.INFLIGHT)]
        old = all(self._old_enough(path) for path in paths)
        if not old or not self.ownership.is_abandoned(pending.requested_time):
            raise LostOwnershipError(
                "a pending commit was begun or continued just now: its writer is alive",
                do_next="stop the writer, then run binlake fsck again",
                instant=pending.requested_time,
            )

    def _check_nothing_pending(self) -> None:
        pending = [i for i in self._timeline().pending() if i.action in (COMMIT, DELTA_COMMIT, REPLACE_COMMIT)]
        if pending:
            raise LostOwnershipError(
                "the writer of a pending commit may be alive: the metadata table cannot be rebuilt meanwhile",
                do_next="stop the writer and wait for the grace time, or finish the commit",
                instant=pending[0].requested_time,
            )

    def _old_enough(self, path: str) -> bool:
        info = self.storage.stat(path)
        return info is None or now_ms() - info.modified_ms >= self.grace_ms

    def _move_file(self, step: RepairStep) -> str:
        name = step.path.rpartition("/")[2]
        parsed = parse_written_name(name)
        timeline = self._timeline()
        if parsed is None or timeline.find(parsed.instant) is not None or not self._old_enough(step.path):
            return f"left as it is: {step.path} belongs to an instant now, or is new"
        if timeline.is_completed(parsed.instant) and parsed.instant not in rolled_back_times(self.storage, timeline):
            return f"left as it is: readers use {step.path}"
        self.storage.delete(step.path)
        return f"moved {step.path} away"

    def _move_unfinished(self, step: RepairStep) -> str:
        directory = step.path.rpartition("/")[0]
        if not isinstance(self.storage, UnfinishedWrites) or not self._old_enough(step.path):
            return f"left as it is: {step.path} is new"
        if step.path not in {info.path for info in self.storage.unfinished(directory)}:
            return f"left as it is: {step.path} is not half-written"
        self.storage.delete(step.path)
        return f"moved {step.path} away"

    def _move_markers(self, step: RepairStep) -> str:
        instant = self._timeline().find(step.instant)
        if instant is not None and not instant.completed:
            return f"left as it is: {step.instant} is pending"
        drop_markers(self.storage, step.instant)
        return f"moved the markers of {step.instant} away"

    def _add_partition_metadata(self, step: RepairStep) -> str:
        partition = step.path.rpartition("/")[0]
        names = [info.path.rpartition("/")[2] for info in self.storage.list(partition)]
        parsed = [name for text in names if (name := parse_log_name(text) or parse_base_name(text)) is not None]
        first = min(name.instant for name in parsed) if parsed else ""
        depth = partition.count("/") + 1 if partition else 0
        body = dump_properties({"commitTime": first, "partitionDepth": str(depth)}, "partition metadata")
        with contextlib.suppress(AlreadyExistsError):
            self.storage.create(step.path, body)
        return f"wrote {step.path}"

    def _metadata_table(self, timeline: Timeline) -> MetadataTable | None:
        config = self._config()
        if not config.metadata_partitions:
            return None
        schema = HudiTable.open(self.storage).schema
        return MetadataTable.open(self.storage, config, timeline, self.clock, schema)

    def _recover_index(self) -> str:
        index = self._metadata_table(self._timeline())
        if index is None:
            return "left as it is: there is no metadata table any more"
        recover(index)
        return "finished or undid what was pending in the metadata table"

    def _drop_index(self) -> None:
        config = self._config()
        self._settings = settings_of(self.storage, config, self._timeline())
        drop(self.storage, config)

    def _reindex(self) -> str:
        settings = self._settings
        if not self.plan.reindex or settings is None:
            return "dropped the metadata table: readers list storage now"
        timeline = self._timeline()
        schema = HudiTable.open(self.storage).schema
        listed = initialise(self.storage, self._config(), timeline, self.clock, schema, settings)
        return f"rebuilt the metadata table: {', '.join(listed.metadata_partitions)}"


def settings_of(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataConfig:
    """The settings of a table's metadata table, as far as its remaining files show them."""
    listed = set(config.metadata_partitions)
    if foreign := sorted(listed - config.kept_partitions):
        raise ConfigError(
            f"the table has metadata partitions that binlake cannot rebuild: {', '.join(foreign)}",
            do_next="drop those indexes with Hudi, or rebuild the metadata table with Hudi",
            table=config.name,
        )
    base = MetadataConfig()
    return MetadataConfig(
        columns=_indexed(storage),
        column_stats=MetadataPartition.COLUMN_STATS in listed,
        bloom_filters=MetadataPartition.BLOOM_FILTERS in listed,
        column_stats_file_groups=_group_count(storage, MetadataPartition.COLUMN_STATS, timeline)
        or base.column_stats_file_groups,
        bloom_file_groups=_group_count(storage, MetadataPartition.BLOOM_FILTERS, timeline) or base.bloom_file_groups,
        record_index_file_groups=_group_count(storage, MetadataPartition.RECORD_INDEX, timeline)
        or base.record_index_file_groups,
    )


def _indexed(storage: Storage) -> tuple[str, ...] | None:
    try:
        columns = indexed_fields(storage.read(INDEX_DEFINITIONS_PATH))
    except INDEX_FAILURES:
        return None
    return tuple(c for c in columns if not c.startswith("_hoodie_")) if columns else None


def _group_count(storage: Storage, partition: MetadataPartition, timeline: Timeline) -> int:
    """The number of file groups of a metadata partition, the most that have the same owner; 0 if it is unknown."""
    if not storage.list(f"{METADATA_PATH}/{partition.value}"):
        return 0
    try:
        groups = MetadataReader.open(storage, [partition.value], timeline).groups[partition]
        return max((group.index + 1 for group in groups), default=0)
    except INDEX_FAILURES:
        return 0
