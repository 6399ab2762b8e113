"""Replays dumps of change events into the tables, through the same steps as the stream: decode, route, merge, commit.

Exactly once: commits name the files they hold (``coverage``), so a second replay of the same hours finds nothing to do,
a late file in an hour that was replayed is taken, and a replay continues where a dead one stopped. Hours may be
replayed in any order and while the stream runs: the ordering values of the events decide, not the order of arrival.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Literal

from binlake.decode.changes import RawRecords
from binlake.load.replay.age import refuse_too_old
from binlake.load.replay.coverage import DumpCoverage, DumpPortion, portions
from binlake.load.replay.engine import DumpPlace
from binlake.load.replay.runner import ReplayRunner, replay_lake, replay_stream, replaying
from binlake.position.in_hand import JobProgress
from binlake.position.lease import StreamLease
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile, DumpLayout, Window, is_hidden, is_hidden_directory
from binlake.source.dump_packing import refuse_closed
from binlake.source.dump_read import read_dump, record_bytes
from binlake.source.dump_versions import earlier_identities
from binlake.source.scan_read import Scan, root_of_scan
from binlake.stream.definitions.learned import Definitions
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.engine import Engine
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.ddl_topics import with_heard_topics
from binlake.tables.services.table_services import TableServices
from hudilake.errors import BadInputError, ConfigError, TransientError
from hudilake.services.planned import MapTasks
from hudilake.storage import Storage, open_storage

#: How to treat files that were replayed with another content: raise an error, take the present content, or leave them.
Rewritten = Literal["refuse", "take", "skip"]
_CHUNK_RECORDS = 10_000


@dataclass(frozen=True)
class ReplayWorkers:
    """The workers of a replay: the engine that reads the files of a portion, and the executor of compactions."""

    engine: Callable[[DumpPlace, Iterable[DumpFile]], Engine]
    map_tasks: MapTasks


#: Creates the workers; called only if there is work.
OpenWorkers = Callable[[], AbstractContextManager[ReplayWorkers]]


@dataclass
class ReplayReport:
    """The result of a replay.

    Args:
        uri: the dump's root.
        step: the hours that one directory of the dump holds.
        found: the files of the requested hours.
        covered: how many of them were replayed before.
        late: files of hours from which other files were replayed before.
        rewritten: files that were replayed with another content before, and were left or taken.
        repeated: portions that an earlier replay had begun.
        taken: the files that this replay took.
        events: the progress events.
        stopped: whether a stop was requested before all files were taken.
    """

    uri: str
    step: int
    found: list[DumpFile] = field(default_factory=list)
    covered: int = 0
    late: int = 0
    rewritten: list[DumpFile] = field(default_factory=list)
    repeated: int = 0
    taken: list[DumpFile] = field(default_factory=list)
    events: list[ProgressEvent] = field(default_factory=list)
    stopped: bool = False


def replay_dumps(
    settings: Settings,
    source: str | None,
    window: Window,
    workers: OpenWorkers,
    *,
    rewritten: Rewritten = "refuse",
    even_too_old: bool = False,
    scan: Scan | None = None,
    root: Storage | None = None,
    on_progress: Callable[[ProgressEvent], None] = lambda event: None,
    hand: JobProgress | None = None,
    stop: threading.Event | None = None,
) -> ReplayReport:
    """Replay the files of a dump that the tables do not have yet.

    Args:
        settings: of the stream whose tables they go to; it may be running.
        source: the dump's root; None for ``dump.uri``.
        window: the hours to replay.
        workers: creates the workers.
        rewritten: how to treat files that changed since they were replayed.
        even_too_old: also take hours whose deletes a table may have dropped (``age``).
        scan: the files are exported scans of a table of an HBase-like store; None for dumps of change events.
        root: the lake's root; None for the root in the settings.
        on_progress: called after every portion.
        hand: hears how far it is.
        stop: set it to end the replay after the current portion.

    Raises ConfigError, BadInputError for rewritten files or too much bad input, CorruptDataError for files that nothing
    here opens, LostOwnershipError if another replay of the stream is running, StorageError; commits stay, and the next
    replay continues from there.
    """
    uri = _root(settings, source)
    place = DumpPlace(uri, settings.dump.storage_options(uri, settings.lake), scan)
    state = open_storage(replaying(settings).state_uri, settings.state_options())
    with StreamLease(state, replay_stream(settings.name)):
        lake = root or open_storage(settings.lake.uri, settings.lake.storage_options())
        replay = _DumpReplay(settings, lake, place, window, rewritten, even_too_old)
        return replay.run(workers, on_progress, stop or threading.Event(), hand or replay_progress())


def replay_progress() -> JobProgress:
    """How far a replay is: in files."""
    return JobProgress("replay", "files")


def _root(settings: Settings, source: str | None) -> str:
    uri = source or settings.dump.uri
    if uri is None:
        raise ConfigError("the place of the dump is not known", do_next="give --from, or dump.uri in the settings")
    return uri


class _DumpReplay:
    def __init__(
        self,
        settings: Settings,
        root: Storage,
        place: DumpPlace,
        window: Window,
        rewritten: Rewritten,
        even_too_old: bool,
    ) -> None:
        self._stream, self._settings = settings, replaying(settings)
        self._place, self._window, self._rewritten = place, window, rewritten
        self._even_too_old = even_too_old
        self._layout = DumpLayout.of(settings.dump)
        step = self._layout.step if place.scan is None else 1
        self._storage = place.storage()
        self._root = root
        self._begun_files: dict[str, DumpFile] = {}
        self._report = ReplayReport(self._storage.uri, step)
        self._covers = self._storage.uri if place.scan is None else root_of_scan(self._storage.uri, place.scan.table)

    def run(
        self,
        workers: OpenWorkers,
        on_progress: Callable[[ProgressEvent], None],
        stop: threading.Event,
        hand: JobProgress,
    ) -> ReplayReport:
        work = self._plan()
        if work:
            hand.begin(self._storage.uri, sum(len(portion.files) for portion in work))
            with workers() as where:
                self._carry_out(work, where, on_progress, stop, hand)
            hand.end()
        return self._report

    def _plan(self) -> list[DumpPortion]:
        """The portions that are left to replay; those that were begun come first."""
        settings, report = self._settings, self._report
        report.found = self._found()
        if not report.found and not self._storage.list("") and not self._storage.list_dirs(""):
            raise ConfigError("there is nothing at the dump's place", do_next="correct --from", path=self._storage.uri)
        coverage = DumpCoverage.load(settings, self._root, self._covers, settings.name, self._window)
        coverage = coverage.with_erased(self._storage, report.found)
        begun = self._begun(coverage)
        if not (report.found or begun) and self._place.scan is None:
            self._refuse_absent()
        known = coverage.with_files(file for portion in begun for file in self._present(portion.files))
        report.rewritten = known.changed(report.found)
        if report.rewritten and self._rewritten == "refuse":
            raise _changed(report.rewritten, self._place)
        again = set(report.rewritten) if self._rewritten == "take" else set()
        paths = known.paths
        fresh = [file for file in report.found if file.path not in paths or file in again]
        for file in fresh:
            refuse_closed(f"{self._storage.uri}/{file.path}")
        report.repeated = len(begun)
        report.covered = sum(file.identity in coverage.identities for file in report.found)
        report.late = sum(file.hour in coverage.hours for file in fresh if file not in again)
        if fresh and not self._even_too_old:
            refuse_too_old(settings, self._root, fresh, report.step)
        sizes = {file.path: record_bytes(file) for file in fresh}
        return [*begun, *portions(fresh, settings.dump.commit_bytes, sizes)]

    def _found(self) -> list[DumpFile]:
        """The files that are asked for."""
        if self._place.scan is not None:
            return self._place.scan.find(self._storage)
        return self._layout.find(self._storage, self._window, (self._settings.dump.ddl_path,))

    def _refuse_absent(self) -> None:
        """Raise ConfigError or TransientError if the hours without a file do not lie between others of the dump: then
        nothing tells that they were quiet."""
        first, end, hidden = self._window.first, self._window.end, (self._settings.dump.ddl_path,)
        older = first is not None and self._layout.has(self._storage, Window(None, first), hidden)
        newer = end is not None and self._layout.has(self._storage, Window(end), hidden)
        if older and not newer:
            raise TransientError(
                "the dump has no file of these hours, and none of later ones",
                do_next="replay again when the dump has reached them",
                path=self._storage.uri,
            )
        if newer and not older:
            raise ConfigError("the dump begins after these hours", do_next="correct them", path=self._storage.uri)
        if not older:
            raise ConfigError(
                f"the dump has no file whose path is of the form {self._layout.template}",
                do_next="correct dump.path, or --from",
                path=self._storage.uri,
            )

    def _begun(self, coverage: DumpCoverage) -> list[DumpPortion]:
        """The portions that were begun and whose files are unchanged."""
        files_by_path = {file.path: file for file in self._report.found}
        begun = []
        for portion in coverage.open:
            here = [files_by_path.get(file.path) or self._stat(file) for file in portion.files]
            if all(file is None or file.identity in coverage.identities for file in here):
                continue  # their present content was replayed since
            if all(self._is(a, b) for a, b in zip(here, portion.files, strict=True)):
                there = [file for file in here if file is not None]
                self._begun_files |= {file.path: file for file in there}
                named = zip(there, portion.files, strict=True)
                files = (replace(file, size=as_.size, modified_ms=as_.modified_ms) for file, as_ in named)
                begun.append(DumpPortion(tuple(files), portion.done))
            elif self._rewritten != "take":
                raise _changed(list(portion.files), self._place, "a replay of these files was interrupted, and since")
        return begun

    def _is(self, here: DumpFile | None, file: DumpFile) -> bool:
        """Whether a file is what it was, but for rows that were erased from it."""
        if here is None or here.identity == file.identity:
            return here is not None
        return file.identity in earlier_identities(self._storage, here)

    def _present(self, files: Iterable[DumpFile]) -> list[DumpFile]:
        """The files as they are now: those of a portion that was begun may have been written by an erasure since."""
        return [self._begun_files.get(file.path, file) for file in files]

    def _stat(self, file: DumpFile) -> DumpFile | None:
        """The present state of a file outside the requested hours, of a portion with other files inside them."""
        info = self._storage.stat(file.path)
        return None if info is None else DumpFile(file.hour, file.path, info.size, info.modified_ms)

    def _carry_out(
        self,
        work: Sequence[DumpPortion],
        workers: ReplayWorkers,
        on_progress: Callable[[ProgressEvent], None],
        stop: threading.Event,
        hand: JobProgress,
    ) -> None:
        settings, report = self._settings, self._report
        engine = workers.engine(self._place, [file for portion in work for file in self._present(portion.files)])
        lake, services = replay_lake(self._root, settings), TableServices(workers.map_tasks)
        state = open_storage(settings.state_uri, settings.state_options())
        runner = ReplayRunner(settings, lake, state, self._schemas(), services, self._covers, report.step)
        try:
            for number, portion in enumerate(work):
                if stop.is_set():
                    report.stopped = True
                    return
                for event in runner.replay(portion, number, engine):
                    report.events.append(event)
                    on_progress(event)
                report.taken += portion.files
                hand.reach(len(report.taken), f"has applied portion {number + 1} of {len(work)}")
        finally:
            runner.close()

    def _schemas(self) -> SchemaRegistry:
        dumped = None if self._place.scan is not None else self._storage
        return dump_schemas(self._settings, Definitions(self._stream), dumped)


def dump_schemas(settings: Settings, definitions: Definitions, dumps: Storage | None) -> SchemaRegistry:
    """The known schemas: from the dumped DDL, else from the DDL topics; and always from the settings.

    Args:
        settings: of the stream, or of its replay.
        definitions: which the stream has learned.
        dumps: the dump's root; None for files that are no dump of records.
    """
    dumped = [] if dumps is None else _ddl(dumps, settings.dump.ddl_path)
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    settings = with_heard_topics(settings, root)
    if dumped:
        settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"ddl_topics": ()})})
    registry = SchemaRegistry(settings)
    registry.learn(definitions.load())
    for records in dumped:
        registry.learn(records.values)
    return registry


def _ddl(storage: Storage, directory: str) -> list[RawRecords]:
    """The dumped records of the schema change topics, in order."""
    below = storage.sub(directory)
    infos = [info for info in below.walk("") if not _is_hidden_path(info.path)]
    files = [DumpFile(0, info.path, info.size, info.modified_ms) for info in infos]
    chunks = [chunk for file in sorted(files) for chunk in read_dump(below, file, _CHUNK_RECORDS)]
    return sorted(chunks, key=lambda chunk: (chunk.topic, chunk.partition, int(chunk.offsets[0])))


def _is_hidden_path(path: str) -> bool:
    *directories, name = path.split("/")
    return is_hidden(name) or any(map(is_hidden_directory, directories))


def _changed(
    files: Sequence[DumpFile], place: DumpPlace, since: str = "files were replayed, and since"
) -> BadInputError:
    names = ", ".join(file.path for file in files[:5])
    return BadInputError(
        f"{since} then they were written again or removed: {names}",
        do_next="if they hold the same events as before, give --rewritten skip; to take what they hold now, "
        "--rewritten take: rows are decided by the order of events, and rows whose events are gone stay",
        path=place.uri,
        files=len(files),
    )
