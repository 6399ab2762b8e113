"""How an open table completes a commit: checked against what others have committed, noted in the metadata table, and
then published as one instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from hudilake.commit.announced import intent_extra
from hudilake.commit.commit import CommitPlan, apply_commit
from hudilake.commit.intent import Intent
from hudilake.commit.late_completion import rolled_back_since
from hudilake.commit.late_files import make_first
from hudilake.commit.preconditions import refuse_planned
from hudilake.commit.rollback import may_go, roll_back
from hudilake.errors import LostOwnershipError, UnsupportedError
from hudilake.format.definition.schema import avro_schema, check_evolution, value_schema
from hudilake.format.files.file_group_write import WriteResult, write_stats
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT, Instant, State
from hudilake.table.begun import Begun
from hudilake.table.metadata_upkeep import MetadataUpkeep
from hudilake.table.overtaking import check_compactions, check_completed, merged_schema
from hudilake.table.table_state import TableState

#: Keys of extraMetadata, or a function that gives them.
Extra: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
_COMPLETED, _ROLLED_BACK = "another writer completed this instant", "another writer rolled this instant back"


@dataclass
class Publisher:
    """Publishes the commits of one open table.

    Args:
        state: of the table.
        upkeep: of its metadata table.
    """

    state: TableState
    upkeep: MetadataUpkeep
    _known_partitions: set[str] = field(default_factory=set)

    def publish(
        self,
        mine: Intent,
        begun: Begun,
        files: Sequence[WriteResult],
        extra: Extra,
        schema: pa.Schema | None,
        replaced: Mapping[str, tuple[str, ...]] | None,
    ) -> str:
        """Complete an instant under the table's lock; returns the completion time.

        Args:
            mine: what it writes.
            begun: what it began upon.
            files: what was written.
            extra, schema, replaced: as in ``HudiTable.commit``, which says the errors too.
        """
        state, instant = self.state, mine.instant
        inflight = self.inflight(instant)
        state.ownership.check(instant)
        if instant in rolled_back_since(state.storage, state.timeline, [inflight]):  # by a process that has died
            raise self._lost(instant, _ROLLED_BACK)
        self._check_not_overtaken(mine, begun)
        refuse_planned(mine, state.planned(), state.config.name)
        columns = state.schema
        if schema is not None:
            columns = merged_schema(state, instant, begun, value_schema(schema))
        self._check_columns(columns, files)
        keys = extra() if callable(extra) else extra
        stats = write_stats(instant, files)
        said = intent_extra(mine, {(stat.partition_path, stat.file_id) for stat in stats})
        self.upkeep.note(instant, files, columns)
        partitions = dict.fromkeys(stat.partition_path for stat in stats)
        new_partitions = tuple(p for p in partitions if p not in self._known_partitions)
        state.begin_partitions(new_partitions)
        avro = avro_schema(columns, state.config.name, with_meta=False)
        plan = CommitPlan(
            inflight=inflight,
            completion_time=state.clock.next(),
            metadata=_body(inflight, stats, {**keys, **said, SCHEMA_KEY: avro}, replaced),
            new_partitions=new_partitions,
        )
        completed = apply_commit(state.storage, plan)
        state.timeline.record(completed)
        state.timeline.remember(completed, plan.metadata)
        self._known_partitions.update(partitions)
        state.schema = columns
        if replaced is not None:
            state.begun.take_in([completed])  # to other instants that this object has begun
            state.take_in_buckets()
        return plan.completion_time

    def roll_back_dead(self, instant: str) -> None:
        """Roll back what dead writers have in flight, under the table's lock, before an instant completes.

        A completing call that a dead writer has sent may be carried out later. Its commit would have completed before
        this one, which knows nothing of it: neither its rows nor its writer's position. A clustering or a move to other
        buckets would replace the file groups that this one writes. Once it is rolled back such a call changes nothing
        (``late_completion``). A writer without heartbeats cannot tell; it did so at its start. So do instants go that
        this writer gave up and could not roll back: compaction and archival would wait for them. Raises StorageError.
        """
        state = self.state
        if not state.lock.shared and not state.begun.gave_up:
            return
        for pending in state.timeline.pending():
            time = pending.requested_time
            if time == instant or state.begun.of(time) or pending.identity[1] not in (state.action, REPLACE_COMMIT):
                continue
            is_begun = state.lock.shared and pending.state is State.INFLIGHT
            is_gone = state.begun.is_given_up(time) or (is_begun and state.ownership.is_abandoned(time))
            if is_gone and may_go(state.storage, pending):
                roll_back(state.storage, state.timeline, state.clock, pending, self.undo)
                state.begun.forget(time)

    def abort(self, instant: str) -> None:
        """Roll back an instant of ours, inflight or a planned clustering, under the table's lock. Errors as
        ``HudiTable.abort``."""
        state = self.state
        write = state.timeline.find(instant)
        planned = write is not None and write.action == CLUSTERING and not write.completed
        target = write if write is not None and planned else self.inflight(instant)
        roll_back(state.storage, state.timeline, state.clock, target, self.undo)
        state.begun.forget(instant)

    def undo(self, instant: str, rollback: str) -> None:
        """What comes before the files of an instant are deleted in a rollback: the active timeline begins before it,
        and its entries in the metadata table are undone. ``rollback``: its requested time. Raises LakeError."""
        state = self.state
        schema = avro_schema(state.schema, state.config.name, with_meta=False)
        make_first(state.storage, state.timeline, state.clock, state.action, instant, schema)
        self.upkeep.undo(instant, rollback)

    def _check_columns(self, columns: pa.Schema, files: Sequence[WriteResult]) -> None:
        """Raise UnsupportedError for columns under which older files cannot be read, unless every file group gets a new
        base file: none of them is read under the new columns then."""
        try:
            check_evolution(self.state.schema, columns)
        except UnsupportedError:
            based = {(file.partition_path, file.file_id) for file in files if file.is_base}
            if not based >= {(piece.partition_path, piece.file_id) for piece in self.state.file_slices()}:
                raise

    def _check_not_overtaken(self, mine: Intent, begun: Begun) -> None:
        check_completed(self.state, mine, begun)
        check_compactions(self.state, mine, begun)
        self.state.check_others()

    def inflight(self, instant: str) -> Instant:
        """A pending instant. Raises LostOwnershipError if it is pending no more."""
        inflight = self.state.timeline.find(instant)
        if inflight is None or inflight.state is not State.INFLIGHT:
            completed = inflight is not None and inflight.completed
            raise self._lost(instant, _COMPLETED if completed else _ROLLED_BACK)
        return inflight

    def _lost(self, instant: str, why: str) -> LostOwnershipError:
        return LostOwnershipError(
            why,
            do_next="another process writes to this table: stop it, or set locking",
            instant=instant,
            table=self.state.config.name,
        )


def _body(
    inflight: Instant,
    stats: tuple[WriteStat, ...],
    extra: Mapping[str, str],
    replaced: Mapping[str, tuple[str, ...]] | None,
) -> CommitMetadata:
    overwrite = "CLUSTER" if inflight.action == CLUSTERING else "INSERT_OVERWRITE"
    operation = "UPSERT" if replaced is None else overwrite
    return CommitMetadata(stats, extra, operation, replaced=replaced)
