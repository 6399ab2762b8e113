"""Looks at one stream again and again, and keeps what it saw: the stream, its tables, and the last hour of its lag.

A look reads the lease, the ledger and two further files beside it, whatever the number of tables. A table is looked at
anew when the ledger says that the stream has committed to it, or when its timeline has changed; timelines are listed in
turn, so many at a look. So a lake at rest costs a fixed number of storage calls, and a page none at all. Before the
first tables are looked at, all that the ledger has are shown by what it says; the worst of them are looked at first.

A lake in motion is looked at within shares of one processor's time: tables that were seen before wait for their turn,
and rows of which keys must be merged are counted again more seldom still. When the lake comes to rest, all is exact.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from binlake.cli.console.costs import OpenTables, ProcessorShare
from binlake.cli.console.looked import LookedTable, StreamView, TimelineMark, waits_for
from binlake.cli.console.table_picture import TablePictures
from binlake.decode.changes import SourceTable
from binlake.position.last_words import LastWords
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.monitoring.held import KafkaFacts, held_tables
from binlake.stream.monitoring.status import (
    StatusSources,
    StreamStatus,
    TableStatus,
    kafka_facts,
    state_of,
    stream_status,
)
from binlake.tables.catalog import catalog_table_at, table_paths
from binlake.tables.presence import judged
from binlake.tables.quarantine import waiting_records
from hudilake.clock import monotonic_s, now_ms
from hudilake.errors import LakeError
from hudilake.read import TableReader
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

_log = logging.getLogger(__name__)

#: Seconds between two looks at the ledger and the lease; a run that has died is seen at the next one.
LOOK_S = 1.0
#: Tables that one look takes in anew at most, and timelines that it lists to find such tables.
TABLES_A_LOOK = 25
LISTED_A_LOOK = 25
#: Rows are counted if no more bytes than these must be merged: a page must not slow its stream.
COUNT_BYTES = 8 << 20
COUNT_NONE = -1
#: Of one processor: for looks at tables that were seen before, and for counting their rows again.
LOOK_SHARE, COUNT_SHARE = 0.03, 0.01
_KAFKA_S, _KAFKA_TIMEOUT_S = 5.0, 5.0
_PATHS_S = 60.0
_BUSY_MS = 5_000
_KEPT_S, _KEPT = 30.0, 120
#: Pages are refreshed when something but an age has changed, else after so many seconds.
_AGES_S = 5.0


@dataclass
class _WatchMemory:
    """What the looks have found so far, for the thread that looks.

    ``applied``: by path, at the table's last look. ``uncounted``: the paths whose rows are of an earlier look, the
    oldest first. ``refreshed``: what pages were last refreshed for; ``refreshed_s``: when. ``taken``: tables looked at.
    """

    paths: list[str] = field(default_factory=list)
    looked: dict[str, LookedTable] = field(default_factory=dict)
    applied: dict[str, tuple[Offsets, str]] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    quarantine: TimelineMark | None = None
    waiting: Counter[str] = field(default_factory=Counter)
    turn: int = 0
    listed_s: float = float("-inf")
    kept_s: float = float("-inf")
    lags: deque[int | None] = field(default_factory=lambda: deque(maxlen=_KEPT))
    ages: dict[str, deque[int | None]] = field(default_factory=dict)
    uncounted: dict[str, None] = field(default_factory=dict)
    taken: int = 0
    refreshed: object = None
    refreshed_s: float = float("-inf")


class StreamWatch:
    """The watch of one stream. ``view`` and ``pictures`` may be read by any thread.

    Args:
        settings: of the stream.
        conf: the settings file, for the commands that are shown.
        ask_kafka: whether Kafka is asked for the ends of the topics.
    """

    def __init__(self, settings: Settings, conf: str, *, ask_kafka: bool = True) -> None:
        self.settings, self.conf = settings, conf
        self._root = open_storage(settings.lake.uri, settings.lake.storage_options())
        self._state = open_storage(settings.state_uri, settings.state_options())
        self._known = _WatchMemory()
        self._tables = OpenTables(self._root)
        self.pictures = TablePictures(self._root, settings.name, settings.locking.heartbeat_timeout_seconds)
        self._looking, self._counting = ProcessorShare(LOOK_SHARE), ProcessorShare(COUNT_SHARE)
        self._facts: KafkaFacts | None = None
        self._kafka = "" if ask_kafka else "not asked"
        self._ask_kafka = ask_kafka
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.view = StreamView(settings.name, conf)

    def start(self) -> None:
        """Look at intervals, in threads of its own: one for the storage, one for Kafka."""
        work = [self._look_often] + ([self._ask_often] if self._ask_kafka else [])
        self._threads = [threading.Thread(target=one, name="binlake-watch", daemon=True) for one in work]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * _KAFKA_TIMEOUT_S)

    def look(self, *, sparing: bool = False) -> StreamView:
        """Look once. What cannot be read is in the view; raises no LakeError.

        ``sparing``: whether tables that were seen before may wait until their share of the processor is free.
        """
        try:
            view = self._looked(sparing)
        except LakeError as error:
            view = replace(self.view, looked_ms=now_ms(), error=error)
        self.view = replace(view, version=self.view.version + self._differs(view))
        return self.view

    def look_whole(self) -> None:
        """Look until no table is unseen and Kafka has answered, or has not. Raises the LakeError of a stream whose
        state cannot be read."""
        while self.look().unseen and self.view.error is None:
            pass
        if self.view.error is not None:
            raise self.view.error
        if self._ask_kafka:
            self.ask_kafka()
            self.look()

    def ask_kafka(self) -> None:
        """Ask Kafka once for what it keeps. Raises no LakeError."""
        ledger = self.view.stream.ledger if self.view.stream is not None else None
        if ledger is None:
            return
        try:
            self._facts, self._kafka = kafka_facts(self.settings, ledger, _KAFKA_TIMEOUT_S), ""
        except LakeError as error:
            self._facts, self._kafka = None, error.what

    # -- private ------------------------------------------------------------------------------------------------------

    def _look_often(self) -> None:
        while not self._stop.wait(0 if self.view.unseen else LOOK_S):
            self.look(sparing=True)

    def _ask_often(self) -> None:
        while not self._stop.wait(1.0 if self._facts is None and not self._kafka else _KAFKA_S):
            self.ask_kafka()

    def _differs(self, view: StreamView) -> bool:
        """Whether a page of a view differs from the page before in more than ages, or its ages have become old."""
        known, stream = self._known, view.stream
        of_stream = None
        if stream is not None:
            run = (stream.run.pid, stream.run.alive) if stream.run is not None else None
            of_stream = (run, stream.ledger, stream.ends, stream.kafka, stream.in_hand)
        content = (of_stream, view.error, view.last_words, view.held, view.unseen, view.quarantined, known.taken)
        if content == known.refreshed and monotonic_s() - known.refreshed_s < _AGES_S:
            return False
        known.refreshed, known.refreshed_s = content, monotonic_s()
        return True

    def _looked(self, sparing: bool) -> StreamView:
        stream = stream_status(self.settings, None)
        stream.facts, stream.kafka = self._facts, self._kafka
        stream.ends = self._facts.ends if self._facts is not None else None
        self._find_paths(stream.ledger)
        due = self._due(stream, sparing)
        if self.view.stream is None:
            self.view = self._view_of(stream, due)
        if due:
            with self._looking.spending():
                self._take_in(due[:TABLES_A_LOOK], stream.ledger, sparing)
        self._keep(stream)
        return self._view_of(stream, due[TABLES_A_LOOK:])

    def _view_of(self, stream: StreamStatus, due: Sequence[str]) -> StreamView:
        """What is known now. ``due``: the paths that the next looks take in."""
        known, ledger = self._known, stream.ledger
        held = tuple(held_tables(ledger, stream.requests, self._facts, self.conf)) if ledger is not None else ()
        tables = {
            path: replace(
                one,
                waiting=waits_for(one.source, ledger, self._facts) if one.source is not None else None,
                ages=tuple(known.ages.get(path, ())),
            )
            for path, one in {**self._unread(ledger), **known.looked}.items()
        }
        return StreamView(
            self.settings.name,
            self.conf,
            stream,
            held,
            MappingProxyType(tables),
            len(due),
            LastWords.load(self._state),
            tuple(known.lags),
            known.waiting.total(),
            now_ms(),
            version=self.view.version,
        )

    def _unread(self, ledger: Ledger | None) -> dict[str, LookedTable]:
        """The tables that were not looked at yet, by path, as the ledger knows them."""
        known = self._known
        unread = {path: source for source, path in (ledger.tables.items() if ledger is not None else ())}
        return {
            path: LookedTable(path, str(source), source, None, None, None, 0, by_ledger=_ledger_state(source, ledger))
            for path, source in unread.items()
            if path in known.paths and path not in known.looked
        }

    def _find_paths(self, ledger: Ledger | None) -> None:
        """The paths of the lake's tables: those of the ledger, and at intervals those that a listing finds."""
        known = self._known
        if monotonic_s() - known.listed_s >= _PATHS_S:
            known.paths = table_paths(self._root, self.settings.tables.path.count("/") + 1)
            known.listed_s = monotonic_s()
            known.foreign.clear()
        of_ledger = set(ledger.tables.values()) if ledger is not None else set()
        known.paths = sorted({*known.paths, *of_ledger} - known.foreign)
        for gone in known.looked.keys() - set(known.paths):
            del known.looked[gone]
            known.uncounted.pop(gone, None)

    def _due(self, stream: StreamStatus, sparing: bool) -> list[str]:
        """The paths to look at: first those never seen, the worst by the ledger before all others, then those that
        changed by the ledger, then by a listing, then one whose rows were not counted."""
        known, ledger = self._known, stream.ledger
        unseen = self._worst_first([path for path in known.paths if path not in known.looked], ledger)
        if sparing and self._looking.rests:
            return unseen
        seen = [path for path in known.paths if path in known.looked]
        changed = [path for path in seen if known.applied.get(path) != _applied(known.looked[path], ledger)]
        # a table that is locked or worked on is looked at again, so that a writer that hangs is seen
        busy = {path for path in seen if _is_busy(known.looked[path])} - set(changed)
        rest = [path for path in seen if path not in {*changed, *busy}]
        start, known.turn = known.turn % max(1, len(rest)), known.turn + LISTED_A_LOOK
        listed = (rest[start:] + rest[:start])[:LISTED_A_LOOK]
        moved = [path for path in listed if TimelineMark.of(self._root.sub(path)) != known.looked[path].mark]
        due = [*unseen, *changed, *moved, *sorted(busy)]
        late = [] if sparing and self._counting.rests else [path for path in known.uncounted if path not in due]
        return [*due, *late[:1]]

    def _worst_first(self, unseen: Sequence[str], ledger: Ledger | None) -> list[str]:
        if ledger is None or not unseen:
            return list(unseen)
        sources = {path: source for source, path in ledger.tables.items()}

        def order(path: str) -> tuple[bool, int]:
            source = sources.get(path)
            waiting = waits_for(source, ledger, self._facts) if source is not None else None
            return source not in ledger.behind, -(waiting or 0)

        return sorted(unseen, key=order)

    def _take_in(self, paths: list[str], ledger: Ledger | None, sparing: bool) -> None:
        known = self._known
        mark = TimelineMark.of(self._root.sub(self.settings.quarantine_path))
        if mark != known.quarantine:
            known.waiting, known.quarantine = waiting_records(self.settings, self._root), mark
        sources = StatusSources.load(self.settings, ledger, known.waiting)
        for path in paths:
            looked = self._look_at(path, sources, sparing)
            known.taken += 1
            if looked is None:
                known.foreign.add(path)
                known.looked.pop(path, None)
                continue
            known.looked[path] = looked
            known.applied[path] = _applied(looked, ledger)

    def _look_at(self, path: str, sources: StatusSources, sparing: bool) -> LookedTable | None:
        """A table as it is now; None if it is none of this stream's. Its rows may be of an earlier look."""
        storage = self._root.sub(path)
        mark = TimelineMark.of(storage)
        before = self._known.looked.get(path)
        try:
            table = self._tables.at(path)
            place = catalog_table_at(self.settings, self._root, path, table)
            if place is None:
                return None
            status = sources.of(place, COUNT_NONE, table)
            counted_ms = self._count(status, table, before, sparing)
            since_ms = _lock_since_ms(before, status)
            return LookedTable(path, place.name, place.source, mark, status, None, now_ms(), None, since_ms, counted_ms)
        except LakeError as error:
            self._tables.close(path)
            _log.debug("%s cannot be looked at: %s", path, error, extra={"event": "not_looked_at", "table": path})
            name, source = (before.name, before.source) if before is not None else (path, None)
            return LookedTable(path, name, source, mark, None, judged(storage, error), now_ms())

    def _count(self, status: TableStatus, table: HudiTable, before: LookedTable | None, sparing: bool) -> int | None:
        """Give a status its rows, or those of an earlier look. Returns when these were counted, in ms since the epoch.
        Errors as ``TableReader.count``."""
        known = self._known
        known.uncounted.pop(status.path, None)
        former = before.status.rows if before is not None and before.status is not None else None
        if status.unmerged_bytes > COUNT_BYTES:
            return None
        if sparing and status.unmerged_bytes and self._counting.rests and before is not None and former is not None:
            known.uncounted[status.path] = None
            status.rows = former
            return before.counted_ms or before.looked_ms
        with self._counting.spending() if status.unmerged_bytes else nullcontext():
            status.rows = TableReader(table).count()
        return None

    def _keep(self, stream: StreamStatus) -> None:
        """Keep a value for the lines of the last hour, at intervals."""
        known = self._known
        if monotonic_s() - known.kept_s >= _KEPT_S:
            known.lags.append(stream.lag)
            for path, one in known.looked.items():
                known.ages.setdefault(path, deque(maxlen=_KEPT)).append(one.behind_ms)
            for gone in known.ages.keys() - known.looked.keys():
                del known.ages[gone]
            known.kept_s = monotonic_s()


def _ledger_state(source: SourceTable, ledger: Ledger | None) -> str:
    state = state_of(source, ledger)
    return "unread" if state == "ok" else state


def _applied(looked: LookedTable, ledger: Ledger | None) -> tuple[Offsets, str]:
    """What the ledger says of a table that a further look would show."""
    if ledger is None or looked.source is None:
        return Offsets(), ""
    source = looked.source
    words = [
        word
        for word, of in (("behind", ledger.behind), ("paused", ledger.paused), ("stopped", ledger.stopped))
        if source in of
    ]
    return ledger.applied(source), " ".join(words)


def _is_busy(looked: LookedTable) -> bool:
    """Whether a writer holds a table's lock or works on an instant, and the last look is some time ago."""
    status = looked.status
    if status is None or not (status.lock or status.writers or status.pending):
        return False
    return now_ms() - looked.looked_ms >= _BUSY_MS


def _lock_since_ms(before: LookedTable | None, status: TableStatus) -> int | None:
    """When a table's lock was first seen with its present holder."""
    if status.lock is None:
        return None
    former = before.status.lock if before is not None and before.status is not None else None
    same = former is not None and (former.owner, former.host, former.pid) == (
        status.lock.owner,
        status.lock.host,
        status.lock.pid,
    )
    return before.lock_since_ms if same and before is not None else now_ms()
