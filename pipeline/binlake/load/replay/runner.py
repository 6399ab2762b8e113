"""Applies the portions of a dump as batches; they differ from the stream's in their source and their commit records.

The commits belong to another stream, ``<name>.replay``: they cover no offsets and move no position, so the stream and
its recovery ignore them. The ordering values of the events decide between rows, not the order of the writes.
"""

from __future__ import annotations

from binlake.decode.changes import SourceTable
from binlake.load.replay.coverage import DumpPortion
from binlake.load.replay.dump_policy import DumpPolicy
from binlake.settings import Settings
from binlake.source.dump_read import record_bytes
from binlake.source.offsets import OffsetRange, Ranges
from binlake.stream.batches.policy import Batch
from binlake.stream.batches.sequence import BatchResult, BatchSequence
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.engine import Engine
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from hudilake.clock import now_ms
from hudilake.commit.commit import OvertakenError
from hudilake.errors import LakeError, TransientError
from hudilake.storage import Storage

#: The prefix of a file's path in place of the topic of an offset range.
FILE = "dump:"
#: The approximate size of a record in bytes: the size of a batch is given in records.
_RECORD_BYTES = 600
_ATTEMPTS = 3


def replay_stream(name: str) -> str:
    """The stream name in the commits of a replay. No stream of the settings can have this name."""
    return f"{name}.replay"


def replaying(settings: Settings) -> Settings:
    """The settings of a replay: another stream name, a state directory below the stream's, the same tables and the same
    quarantine."""
    quarantine = settings.quarantine.model_copy(update={"path": settings.quarantine_path})
    state = settings.state.model_copy(update={"uri": f"{settings.state_uri}/replay_dumps"})
    return settings.model_copy(update={"name": replay_stream(settings.name), "quarantine": quarantine, "state": state})


def replay_lake(root: Storage, settings: Settings) -> Lake:
    """The lake's tables, with inline compaction, because a replay ends; the first rows may go to base files.

    ``settings``: as returned by ``replaying``. Raises ConfigError.
    """
    owner = locking(settings.locking, f"stream {settings.name}", one_run=True)
    return Lake(root, owner, ends=True, base_from_rows=settings.dump.base_files_from_rows)


class ReplayRunner:
    """Carries out the portions of one replay.

    Args:
        settings: as returned by ``replaying``.
        lake: the tables.
        state: the state directory of the replays.
        registry: the known schemas.
        services: compaction, cleaning and archival of the tables.
        uri: the dump's root.
        step: the hours that one directory of the dump holds.
    """

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        state: Storage,
        registry: SchemaRegistry,
        services: TableServices,
        uri: str,
        step: int,
    ) -> None:
        self._policy = DumpPolicy(settings, lake, state, uri, step)
        self._sequence = BatchSequence(settings, lake, registry, services, self._policy)

    def close(self) -> None:
        """Stop the threads."""
        self._sequence.close()

    def replay(self, portion: DumpPortion, number: int, engine: Engine) -> list[ProgressEvent]:
        """Apply a portion to every table it has rows for. Returns one progress event for each attempt.

        A table whose commit was overtaken is tried again; records that a table refuses go to quarantine. Raises
        LakeError: commits stay, and the next replay repeats the portion.
        """
        self._policy.begin(portion, number)
        records = {f"{FILE}{f.path}": max(1, record_bytes(f) // _RECORD_BYTES) for f in portion.files}
        ranges = Ranges(OffsetRange(name, 0, 0, count) for name, count in records.items())
        unmeasured = Ranges(OffsetRange(name, 0, 0, 0) for name in records)  # not shuffled: the driver can redo it
        try:
            first = self._attempt(ranges, number, engine, None)
        except OvertakenError:  # no table has committed
            first = self._attempt(unmeasured, number, engine, None)
        events = [first.event]
        for source, error in first.failed.items():
            events += self._again(unmeasured, number, engine, source, error)
        return events

    def _again(
        self, ranges: Ranges, number: int, engine: Engine, source: SourceTable, error: LakeError
    ) -> list[ProgressEvent]:
        """Repeat a portion for a table that failed. Returns the events of the attempts; raises the last error."""
        events: list[ProgressEvent] = []
        for _ in range(_ATTEMPTS):
            if not (isinstance(error, TransientError) or source in self._sequence.refused):
                break
            applied = self._attempt(ranges, number, engine, source)
            events.append(applied.event)
            if not applied.failed:
                return events
            error = applied.failed[source]
        raise error

    def _attempt(self, ranges: Ranges, number: int, engine: Engine, only: SourceTable | None) -> BatchResult:
        return self._sequence.apply(Batch(number, ranges, now_ms(), only=only), engine)
